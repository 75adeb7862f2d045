"""Results as lines of JSON on standard output: the sink behind `--json`.

Law: one object for each result row, `query`, `kind`, `window_start`, `window_end`, `round` first, then the columns of
the query. The lines of a round are written at once, when it is about to be committed. What was written cannot be taken
back: a round that comes again after a crash is written again, under the same number.

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
from typing import BinaryIO

import pyarrow as pa

from eventide.commands.endings import ReaderGoneError
from eventide.errors import EngineError
from eventide.results.results import Results
from eventide.sinks.lines import Lines

LEFT_OUT = ("rows", "heartbeat")
"""Columns of every result that the lines do not have; the sinks that write files do."""


class JsonLines:
    """Writes the results of all queries to one output; `written` counts them."""

    def __init__(self, output: BinaryIO) -> None:
        self._output = output
        self._lines: dict[str, tuple[list[str], Lines]] = {}
        self._lock = threading.Lock()
        self.written = 0

    def emit(self, results: Results) -> None:
        """Write the rows of a round."""
        if not results.rows:
            return
        if results.query not in self._lines:
            names = [name for name in results.schema.names if name not in LEFT_OUT]
            schema = pa.schema([results.schema.field(name) for name in names])
            self._lines[results.query] = names, Lines("json", schema)
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
