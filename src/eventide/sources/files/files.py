"""Files, folders and patterns as a stream of the local engine.

Law: files are read oldest first, each once and to its end; a folder or pattern is looked at again for new ones when
all are read. The position names the files read and how far the open one was read, so no row comes twice or is missed;
a file that was read in part and is another one now is refused.

>>> import os, tempfile; import pyarrow.parquet as pq
>>> from eventide.plan.declared.stream import Input, columns
>>> path = os.path.join(tempfile.mkdtemp(), "a.parquet")
>>> pq.write_table(pa.table({"t": [1, 2, 3]}), path)
>>> files = Files(Stream("s", columns("t BIGINT"), time="t", input=Input("parquet", path)))
>>> files.take(2, 0).to_pydict(), files.take(2, 0).num_rows, files.take(2, 0), files.ended
({'t': [1, 2], '_malformed': [None, None]}, 1, None, True)
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from eventide.errors import DeclarationError, InputError
from eventide.plan.declared.stream import Stream
from eventide.sources.files.listing import Listing
from eventide.sources.files.readers import OPENERS, FileReader, TableFile, TextFile
from eventide.sources.local_input import PolledInput
from eventide.sources.options import input_of, needs_path
from eventide.sources.text.reader import LineFormat, local_options

LINES = frozenset({"csv", "json", "text"})
FORMATS = LINES | OPENERS.keys()
ROUND_FILES = 1000
"""Files that a round opens at most, unless the stream says otherwise: what was read is safe with the commit."""

HISTORY_ROWS = 1_000_000
"""Rows of the past that are taken at a time."""

HEAD = 1024
"""Bytes at the beginning of a file that was read in part, by which it is known again."""


class Files(PolledInput):
    """The rows of files, in the order of the files."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        given = input_of(stream)
        if given.max_offsets is not None:
            raise DeclarationError(
                f"stream {stream.name!r}: files have no offsets: limit a round by max_files or max_rows"
            )
        self._stream = stream
        self._kind = given.format
        self._max_files = given.max_files or ROUND_FILES
        owner = f"stream {stream.name!r}"
        options = local_options(owner, given)
        self._lines = LineFormat(owner, stream.columns, given.format, options) if given.format in LINES else None
        self._listing = Listing(owner, needs_path(stream, given))
        self._queue: list[str] = []
        self._open: tuple[str, FileReader] | None = None
        self._mark: _Mark | None = None
        self._parts: list[_Part] = []

    @property
    def ended(self) -> bool:
        """Whether the one file there is was read; a folder never ends."""
        return self._caught_up and self._listing.fixed

    def _look(self, max_rows: int) -> pa.Table | None:
        tables: list[pa.Table] = []
        wanted, opened = max_rows, 0
        while wanted > 0:
            if self._open is None:
                if opened == self._max_files or not self._open_next():
                    break
                opened += 1
            assert self._open is not None
            table = self._read_on(*self._open, wanted)
            if table is not None and table.num_rows:
                tables.append(table)
                wanted -= table.num_rows
        return pa.concat_tables(tables) if tables else None

    def _read_on(self, path: str, reader: FileReader, max_rows: int) -> pa.Table | None:
        """The next rows of the open file, which is closed at its end; both are noted, to be done again if need be."""
        start = reader.offset
        table = reader.read(max_rows)
        rows = 0 if table is None else table.num_rows
        part = _Part(
            self._listing.name_of(path), start, reader.offset, rows, table is None, self._opened_as().saved(path)
        )
        last = self._parts[-1] if self._parts else None
        if last is not None and (last.file, last.stop, last.done) == (part.file, part.start, False):
            self._parts[-1] = replace(part, start=last.start, rows=last.rows + rows)
        else:
            self._parts.append(part)
        if table is None:
            self._finish(path, reader)
        return table

    def _finish(self, path: str, reader: FileReader) -> None:
        reader.close()
        self._listing.done(path)
        self._open = None

    def _opened_as(self) -> _Mark:
        assert self._mark is not None
        return self._mark

    def _open_next(self) -> bool:
        """Open the file that comes next; the folder is looked at again only when all files found are read."""
        if not self._queue:
            self._queue = self._listing.unread()
        if not self._queue:
            return False
        self._caught_up = False
        self._begin(self._queue.pop(0), 0)
        return True

    def _begin(self, path: str, offset: int) -> None:
        self._open = (path, self._reader(path, offset))
        self._mark = _Mark.of(path)

    def _reader(self, name: str, offset: int) -> FileReader:
        if self._lines is not None:
            return TextFile(self._lines, name, offset)
        return TableFile(self._stream, name, self._kind, offset)

    def position(self) -> dict[str, Any]:
        """The files read, and the one that is open with how far it was read."""
        return {**self._listing.saved(), "open": self._open_file()}

    def _open_file(self) -> dict[str, Any] | None:
        if self._open is None:
            return None
        path, reader = self._open
        return {"file": self._listing.name_of(path), "offset": reader.offset, **self._opened_as().saved(path)}

    def seek(self, position: dict[str, Any]) -> None:
        """Read on from a saved position."""
        self._listing.restore(position)
        if position["open"] is not None:
            name = str(position["open"]["file"])
            # Earlier versions kept the path as it was written.
            path = self._listing.path_of(name if "folder" in position else os.path.basename(name))
            try:
                self._check_same(path, position["open"])
                self._begin(path, int(position["open"]["offset"]))
            except (InputError, OSError) as failure:
                reason = failure.strerror if isinstance(failure, OSError) else failure
                raise InputError(
                    f"stream {self._stream.name!r}: {path} was read in part and cannot be read on: {reason}"
                ) from failure

    def portion(self) -> dict[str, Any]:
        """What was read of which files since this was last asked."""
        parts, self._parts = self._parts, []
        return {"files": [asdict(part) for part in parts]}

    def repeat(self, portion: dict[str, Any]) -> tuple[pa.Table | None, bool]:
        """Read the same parts of the same files again; those that have come since wait for the next `take`."""
        tables: list[pa.Table] = []
        try:
            exact = all(self._again(_Part(**part), tables) for part in portion["files"])
        except (InputError, OSError):
            exact = False
        self._parts = []
        return pa.concat_tables(tables) if tables else None, exact

    def _again(self, part: _Part, tables: list[pa.Table]) -> bool:
        """Add the rows of a part; whether they are what they were."""
        path = self._listing.path_of(part.file)
        self._check_same(path, part.mark)
        if self._open is None:
            self._begin(path, part.start)
        assert self._open is not None
        opened, reader = self._open
        if opened != path or reader.offset != part.start:
            return False
        wanted = part.rows
        while reader.offset < part.stop and (table := reader.read(max(1, wanted))) is not None:
            wanted -= table.num_rows
            tables.append(table)
        exact = wanted == 0 and reader.offset == part.stop
        if exact and part.done:
            self._finish(path, reader)
        return exact

    def history(self, position: dict[str, Any], rows: int = HISTORY_ROWS) -> Iterator[pa.Table]:
        """All rows before a position, so many at a time; where a file of them is gone, an error says so."""
        before = Listing(self._listing.owner, self._listing.path)
        before.restore(position)
        for path in before.read_before():
            yield from self._up_to(path, None, rows)
        if position["open"] is not None:
            yield from self._up_to(before.path_of(str(position["open"]["file"])), int(position["open"]["offset"]), rows)

    def _up_to(self, path: str, stop: int | None, rows: int) -> Iterator[pa.Table]:
        """The rows of a file to its end, or to a place in it."""
        if not os.path.exists(path):
            raise InputError(
                f"stream {self._stream.name!r}: {path} was read, and cannot be read again: it is gone. Put it back, or "
                "let the query begin at the present"
            )
        reader = self._reader(path, 0)
        try:
            while stop is None or reader.offset < stop:
                start = reader.offset
                table = reader.read(rows)
                if table is None:
                    break
                if stop is None or reader.offset <= stop:
                    yield table
                    continue
                # Places are bytes in text, so it shows afterwards that these were too many.
                reader.close()
                reader, rows = self._reader(path, start), max(1, rows // 2)
        finally:
            reader.close()

    def _check_same(self, path: str, before: dict[str, Any]) -> None:
        """Refuse a file that is not the one that was read in part: the rest of that one would be lost silently."""
        if "digest" not in before:
            return
        now = _Mark.of(path, int(before["known"]))
        if now.size < int(before["size"]) or now.digest != before["digest"]:
            raise InputError(
                f"it is another file now ({now.size:,} bytes, and it had {before['size']:,}). Put the first one back "
                "under this name and let the other one have a new name; or start anew with another checkpoint"
            )

    def close(self) -> None:
        """Close the file that is open."""
        if self._open is not None:
            self._open[1].close()
            self._open = None


@dataclass(frozen=True)
class _Part:
    """What was read of a file: from where to where, how many rows, whether to its end, and which file that was."""

    file: str
    start: int
    stop: int
    rows: int
    done: bool
    mark: dict[str, Any]


@dataclass(frozen=True)
class _Mark:
    """A file as it was when it was opened: which, how large, and how it begins."""

    number: int
    size: int
    known: int
    digest: str

    @staticmethod
    def of(path: str, known: int = HEAD) -> _Mark:
        with open(path, "rb") as file:
            head, found = file.read(known), os.fstat(file.fileno())
        return _Mark(found.st_ino, found.st_size, len(head), hashlib.sha256(head).hexdigest())

    def saved(self, path: str) -> dict[str, Any]:
        """As plain JSON; a file that is still written to has grown since."""
        try:
            found = os.stat(path)
            size = found.st_size if found.st_ino == self.number else self.size
        except OSError:
            size = self.size
        return {"size": size, "known": self.known, "digest": self.digest}
