"""The input of a stream, its options by name, and what every format needs of them.

Options are Spark's own and do not tell capital letters apart. Some defaults differ from Spark's: the first line of a
CSV file names its columns (`header` true); in CSV a quote inside quotes is doubled (`escape` is the quote), as nearly
every program writes it; single quotes are no JSON; and dates in JSON are not guessed (Spark would take "20200101" for
that many days after 1970).

>>> from eventide.plan.expressions.columns import columns
>>> stream = Stream("s", columns("n BIGINT"), time="n", input=Input("CSV", "in", options=(("HEADER", "false"),)))
>>> given = input_of(stream)
>>> given.format, text_options(given)["header"], text_options(given)["escape"]
('csv', 'false', '"')
"""

from __future__ import annotations

from dataclasses import replace

from eventide.errors import DeclarationError
from eventide.plan.declared.stream import Input, Stream
from eventide.plan.sql.reduce import MALFORMED

DEFAULTS = {
    "csv": {"header": "true", "sep": ",", "quote": '"', "escape": '"'},
    "json": {"allowsinglequotes": "false", "enabledatetimeparsingfallback": "false"},
}


def input_of(stream: Stream) -> Input:
    """The declared input, its format in small letters; an error when the stream has none, or a name is taken."""
    if stream.input is None:
        raise DeclarationError(f"stream {stream.name!r} has no input: declare where its rows come from")
    if any(column.name.lower() == MALFORMED for column in stream.columns):
        raise DeclarationError(
            f"stream {stream.name!r} cannot have a column {MALFORMED!r}: rows that cannot be read are kept under "
            "that name; declare another one"
        )
    return replace(stream.input, format=stream.input.format.lower())


def text_options(given: Input) -> dict[str, str]:
    """The options of a text format, small letters in their names; those of CSV filled up with our defaults."""
    return _filled(given.format, {name.lower(): value for name, value in given.options})


def split_options(given: Input) -> tuple[dict[str, str], dict[str, str]]:
    """The options for parsing the column `value` (written `value.format`, `value.sep`, ...) and those of the source.

    >>> of_value, of_source = split_options(Input("socket", options=(("port", "9"), ("value.format", "csv"))))
    >>> of_value["format"], of_value["sep"], of_source
    ('csv', ',', {'port': '9'})
    """
    prefix = "value."
    inside = {name.lower()[len(prefix) :]: value for name, value in given.options if name.lower().startswith(prefix)}
    source = {name: value for name, value in given.options if not name.lower().startswith(prefix)}
    # Inside a value there is no first line that names columns.
    return _filled(inside.get("format", ""), {**inside, "header": "false"} if inside else {}), source


def _filled(kind: str, options: dict[str, str]) -> dict[str, str]:
    if "delimiter" in options:
        options["sep"] = options.pop("delimiter")
    if kind == "csv" and "quote" in options:
        options.setdefault("escape", options["quote"])
    return {**DEFAULTS.get(kind, {}), **options}


def needs_path(stream: Stream, given: Input) -> str:
    """The path of an input that cannot do without."""
    if not given.path:
        raise DeclarationError(f"stream {stream.name!r} reads {given.format} and has no path: say where it is")
    return given.path
