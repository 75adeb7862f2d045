"""Where the results of a run go: the sinks that a script names, the screen, or lines of JSON.

Law: all queries that go to the console share one screen. With JSON asked for they share standard output instead; a
query that names files writes its files either way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

from eventide.commands.json_lines import JsonLines
from eventide.errors import DeclarationError
from eventide.language.script import Script
from eventide.sinks.by_name import check_sink, sink_of
from eventide.sinks.sink import Sink

if TYPE_CHECKING:
    import rich.console

    from eventide.sinks.console import Console

ROWS_SHOWN = 20
ALL_ROWS = 1_000_000_000
"""Into a pipe or a file go all results of a round, unless the script says otherwise."""


@dataclass(frozen=True)
class Outputs:
    """Sinks by query; `screen` is the one that draws, `lines` the one that writes JSON, where there is one."""

    sinks: dict[str, Sink]
    screen: Console | None = None
    lines: JsonLines | None = None


def outputs_of(
    script: Script,
    json_to: BinaryIO | None = None,
    below: Callable[[], str] | None = None,
    console: rich.console.Console | None = None,
) -> Outputs:
    """The sinks of a script. `json_to`: results for the console go there as JSON. `below`: the screen's last line.

    >>> from eventide.language.script import Output
    >>> from eventide.plan.declared.program import Program
    >>> outputs_of(Script(Program(()), (Output("q", "csv", "out"),))).sinks["q"].format
    'csv'
    """
    check_outputs(script)
    sinks: dict[str, Sink] = {}
    shown = [output for output in script.outputs if output.kind.lower() == "console"]
    screen, lines = None, None
    if shown and json_to is not None:
        lines = JsonLines(json_to)
        sinks |= {output.query: lines for output in shown}
    elif shown:
        # What it draws with is loaded only to draw.
        from eventide.sinks.console import Console

        screen = Console(1, console, below)
        usual = ROWS_SHOWN if screen.is_live else ALL_ROWS
        screen = Console(max(int(dict(output.options).get("rows", usual)) for output in shown), console, below)
        sinks |= {output.query: screen for output in shown}
    for output in script.outputs:
        if output.query not in sinks:
            sinks[output.query] = sink_of(output.kind, output.path, dict(output.options))
    return Outputs(sinks, screen, lines)


def check_outputs(script: Script) -> None:
    """Refuse a script that sends results where they cannot go; nothing is made.

    >>> from eventide.language.script import Output
    >>> from eventide.plan.declared.program import Program
    >>> check_outputs(Script(Program(()), (Output("q", "console", None, (("rows", "many"),)),)))
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: query 'q': rows='many' is not a number of rows
    """
    for output in script.outputs:
        try:
            check_sink(output.kind, output.path, dict(output.options))
        except DeclarationError as error:
            raise DeclarationError(f"query {output.query!r}: {error}") from error
