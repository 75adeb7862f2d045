"""Options of CSV and JSON that the local engine keeps; any other is refused rather than ignored.

>>> from eventide.plan.declared.stream import Input
>>> local_options("stream 's'", Input("csv", "in", options=(("sep", ";"),)))["sep"]
';'
>>> local_options("stream 's'", Input("csv", "in", options=(("multiLine", "true"),)))
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: stream 's': the local engine has no option multiline=true for csv: leave it out, or \
use the Spark engine
"""

from __future__ import annotations

from eventide.errors import DeclarationError
from eventide.plan.declared.stream import Input
from eventide.sources.input_of import text_options

# Options with the values that change nothing; None: any value.
KEPT: dict[str, dict[str, set[str] | None]] = {
    "csv": {
        "header": {"true", "false"},
        "sep": None,
        "quote": None,
        "escape": None,
        "nullvalue": None,
        "multiline": {"false"},
        "enforceschema": {"true", "false"},
    },
    "json": {"multiline": {"false"}, "allowsinglequotes": {"false"}, "enabledatetimeparsingfallback": {"false"}},
    "text": {"wholetext": {"false"}},
}
EVERYWHERE: dict[str, set[str] | None] = {"encoding": {"utf-8"}, "charset": {"utf-8"}}


def local_options(owner: str, given: Input) -> dict[str, str]:
    """The options of a text input, filled up with the defaults, or an error for one that cannot be kept."""
    options = text_options(given)
    known = {**KEPT.get(given.format, {}), **EVERYWHERE}
    for name, value in options.items():
        allowed = known.get(name, set())
        if allowed is not None and value.lower() not in allowed:
            raise DeclarationError(
                f"{owner}: the local engine has no option {name}={value} for {given.format}: leave it out, or use the "
                "Spark engine"
            )
    if given.format == "csv":
        _check_csv(owner, options)
    return options


def _check_csv(owner: str, options: dict[str, str]) -> None:
    if len(options["sep"].encode()) != 1 or options["sep"] in "\r\n":
        raise DeclarationError(
            f"{owner}: the separator {options['sep']!r} is not one plain character: use , ; | or a tab"
        )
    if len(options["quote"].encode()) > 1 or options["escape"] != options["quote"]:
        raise DeclarationError(
            f"{owner}: in the local engine a quote is one plain character (or none) and escapes itself: leave out "
            "quote and escape, or use the Spark engine"
        )
