"""Where the results of a run go: the sinks that a script names, the screen, or lines of JSON.

Law: all queries that go to the console share one screen. With JSON asked for they share standard output instead; a
query that names files writes its files either way.

*JSON lines.* The sink behind `--json`. One object for each result row, `query`, `kind`, `window_start`, `window_end`,
`round` first, then the columns of the query. The lines of a round are written at once, when it is about to be
committed. What was written cannot be taken back: a round that comes again after a crash is written again, under the
same number.

>>> import io
>>> output = io.BytesIO()
>>> sink = JsonLines(output)
>>> sink.emit(Results.of_table("speeds", 42, pa.table({"query": ["speeds"], "kind": ["final"], "window_start": [0],
...     "window_end": [300], "round": [42], "rows": [2], "heartbeat": [310], "detector": ["A"], "mean": [51.5]})))
>>> print(output.getvalue().decode(), end="")
{"query":"speeds","kind":"final","window_start":0,"window_end":300,"round":42,"detector":"A","mean":51.5}
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa

from eventide.commands.process import ReaderGoneError
from eventide.errors import DeclarationError, EngineError
from eventide.language.script import Script
from eventide.results.results import Results
from eventide.sinks.lines import LineWriter
from eventide.sinks.sink import Sink, check_sink, sink_of

if TYPE_CHECKING:
    import rich.console

    from eventide.sinks.console import Console

LEFT_OUT = ("rows", "heartbeat")
"""Columns of every result that the lines do not have; the sinks that write files do."""


class JsonLines:
    """Writes the results of all queries to one output; `written` counts them."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._lines: dict[str, tuple[list[str], LineWriter]] = {}
        self._lock = threading.Lock()
        self.written = 0

    def emit(self, results: Results) -> None:
        """Write the rows of a round."""
        if not results.rows:
            return
        if results.query not in self._lines:
            names = [name for name in results.schema.names if name not in LEFT_OUT]
            schema = pa.schema([results.schema.field(name) for name in names])
            self._lines[results.query] = names, LineWriter("json", schema)
        names, lines = self._lines[results.query]
        text = b"".join(lines.of(pa.Table.from_batches([batch]).select(names)) for batch in results.batches())
        try:
            with self._lock:
                self._output.write(text)
                self._output.flush()
        except BrokenPipeError as gone:
            raise ReaderGoneError("nobody reads the results on standard output any more") from gone
        except OSError as error:
            raise EngineError(f"results cannot be written to standard output: {error.strerror}") from error
        self.written += results.rows

    def rewind(self, query: str, last: int) -> None:
        """Nothing can be taken back; the number of the round tells what came again."""

    def close(self) -> None:
        """Standard output stays open: it is not ours."""


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

    >>> from eventide.language.script import OutputTarget
    >>> from eventide.plan.declared.program import Program
    >>> outputs_of(Script(Program(()), (OutputTarget("q", "csv", "out"),))).sinks["q"].format
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

    >>> from eventide.language.script import OutputTarget
    >>> from eventide.plan.declared.program import Program
    >>> check_outputs(Script(Program(()), (OutputTarget("q", "console", None, (("rows", "many"),)),)))
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: query 'q': rows='many' is not a number of rows
    """
    for output in script.outputs:
        try:
            check_sink(output.kind, output.path, dict(output.options))
        except DeclarationError as error:
            raise DeclarationError(f"query {output.query!r}: {error}") from error
