"""One file of CSV, JSON or plain lines, packed or not, read from any byte on.

>>> import os, tempfile
>>> from eventide.plan.expressions.columns import columns
>>> path = os.path.join(tempfile.mkdtemp(), "a.json")
>>> with open(path, "w") as file:
...     _ = file.write('{"t": 1}\\n{"t": 2}\\n')
>>> how = LineFormat("stream 's'", columns("t BIGINT"), "json")
>>> first = TextFile(how, path, 0)
>>> first.read(1)["t"].to_pylist(), TextFile(how, path, first.offset).read(9)["t"].to_pylist()
([1], [2])
"""

from __future__ import annotations

import pyarrow as pa

from eventide.errors import InputError
from eventide.sources.line_blocks import opened
from eventide.sources.text_rows import LineFormat, TextRows


class TextFile:
    """A file of lines, of which the first `offset` bytes were already read."""

    def __init__(self, how: LineFormat, path: str, offset: int) -> None:
        self._how = how
        self._path = path
        try:
            self._rows = TextRows(how, path, opened(path))
            if offset:
                self._rows.read_header()
                names = self._rows.names
                self._rows.close()
                self._rows = TextRows(how, path, opened(path))
                self._rows.skip_to(offset, names)
        except OSError as failure:
            raise self._unreadable(failure) from failure

    @property
    def offset(self) -> int:
        """Bytes read so far."""
        return self._rows.offset

    def read(self, max_rows: int) -> pa.Table | None:
        """The rows of the next lines, or None at the end."""
        try:
            return self._rows.read(max_rows)
        except (OSError, EOFError) as failure:
            raise self._unreadable(failure) from failure

    def _unreadable(self, failure: Exception) -> InputError:
        return InputError(f"{self._how.owner}: {self._path} cannot be read as {self._how.kind}: {failure}")

    def close(self) -> None:
        """Let go of the file."""
        self._rows.close()
