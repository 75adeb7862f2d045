"""Follow files that grow, as `tail -F` does: lines of JSON, CSV or text, also through rotations.

Laws. A last line without an end waits until it is ended. When the file is replaced (renamed away and made anew), what
was still in the old one is read first, its last line even without an end; then those that bore the name meanwhile in
their order; then the new one from its beginning. When it was emptied and written anew, the rest is read from its copy,
if there is one, and then the file from its beginning. A file that is not there yet is waited for.

A position knows the file by its number on the disk and its first bytes. After a restart it is found again, also under
another name in the same folder, and read on. What is gone or compressed meanwhile cannot be read, and is reported.

>>> import os, tempfile
>>> from eventide.plan.declared.stream import Input, columns
>>> path = os.path.join(tempfile.mkdtemp(), "log")
>>> log = open(path, "w"); _ = log.write('{"t": 1}\\n{"t": '); log.flush()
>>> followed = Follow(Stream("s", columns("t BIGINT"), time="t", input=Input("follow", path)))
>>> followed.take(9, 0)["t"].to_pylist(), followed.take(9, 0)
([1], None)
>>> _ = log.write("2}\\n"); log.close()
>>> followed.take(9, 0)["t"].to_pylist()
[2]
>>> followed.close()

*Marks.* A file is read as far as it is written, and known again after a restart. A `FileMark` matches a file only if
the bytes that were read first are still there, at least as many as were read.

>>> import tempfile
>>> file = tempfile.NamedTemporaryFile(); _ = file.write(b"one"); file.flush()
>>> mark = FileMark(os.stat(file.name).st_ino, 3, hashlib.sha256(b"one").hexdigest(), 3, None)
>>> mark.found(file.name) == file.name, FileMark.restored(mark.saved()) == mark
(True, True)

*Rotation.* A followed `app.log` becomes `app.log.1`, `app.log-20260131` or `app-2026.log`. Behind a file that was read
come the files of the same family that were written to after it, in the order in which they were last written to; then
the one that bears the name itself. A copy of what was read is not read again.

>>> is_rotated("app.log.1", "app.log"), is_rotated("app-2026-01-31.log", "app.log"), is_rotated("apple.log", "app.log")
(True, True, False)
"""

from __future__ import annotations

import hashlib
import logging
import os
import weakref
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa

from eventide.errors import DeclarationError, InputError
from eventide.plan.declared.stream import Stream
from eventide.sources.local_input import PolledInput
from eventide.sources.options import input_of, needs_path
from eventide.sources.text.reader import LineFormat, TextRows
from eventide.storage.storage import with_place

HEAD = 1024
"""Bytes at the beginning of a file by which it is known."""


@dataclass(frozen=True)
class FileMark:
    """A file and how far it was read: its number, how many first bytes are known and their digest, the header."""

    number: int
    known: int
    digest: str
    offset: int
    names: tuple[str, ...] | None
    modified: int = 0
    """When it was last written to, in nanoseconds."""

    def saved(self) -> dict[str, Any]:
        """The mark as plain data, for JSON."""
        return {**asdict(self), "names": None if self.names is None else list(self.names)}

    @staticmethod
    def restored(saved: dict[str, Any]) -> FileMark:
        """A mark from plain data."""
        return FileMark(**{**saved, "names": None if saved["names"] is None else tuple(saved["names"])})

    def matches(self, path: str) -> bool:
        """Whether the file at `path` begins with what was read."""
        try:
            with open(path, "rb") as file:
                head = file.read(self.known)
                return os.fstat(file.fileno()).st_size >= self.offset and _digest(head) == self.digest
        except OSError:
            return False

    def found(self, path: str) -> str | None:
        """Where the file is now: the same number under any name in the folder, or the same bytes under its own."""
        folder = os.path.dirname(path) or "."
        with os.scandir(folder) as entries:
            renamed = [entry.path for entry in entries if entry.is_file() and entry.inode() == self.number]
        places = [path, *renamed] if os.path.exists(path) and os.stat(path).st_ino == self.number else [*renamed, path]
        return next((place for place in places if self.matches(place)), None)


def _digest(head: bytes) -> str:
    return hashlib.sha256(head).hexdigest()


class _Bytes:
    """An open file, closed when nobody holds it any more."""

    def __init__(self, path: str) -> None:
        self.descriptor = os.open(path, os.O_RDONLY)
        self._closing = weakref.finalize(self, os.close, self.descriptor)

    def read(self, size: int = -1, /) -> bytes:
        return os.read(self.descriptor, size)

    def close(self) -> None:
        self._closing()


class FollowedFile:
    """An open file that may grow, be renamed, or be written anew."""

    def __init__(self, how: LineFormat, path: str, mark: FileMark | None = None) -> None:
        self._raw = _Bytes(path)
        self._rows = TextRows(how, path, self._raw, growing=True)
        self._head = b""
        if mark is not None:
            self._head = os.pread(self._raw.descriptor, mark.known, 0)
            os.lseek(self._raw.descriptor, mark.offset, os.SEEK_SET)
            self._rows.start_at(mark.offset, mark.names)

    def read(self, max_rows: int) -> pa.Table | None:
        """The rows of the lines that have ended; None if there are none yet."""
        rows = self._rows.read(max_rows)
        if len(self._head) < HEAD:
            self._head = os.pread(self._raw.descriptor, min(HEAD, self._rows.offset), 0)
        return rows

    def read_to_the_end(self, max_rows: int) -> pa.Table | None:
        """The rows that are left, a last line without an end included."""
        self._rows.finish()
        return self._rows.read(max_rows)

    @property
    def offset(self) -> int:
        """Bytes read so far."""
        return self._rows.offset

    def rewritten(self) -> bool:
        """Whether the file was emptied since, or begins otherwise than what was read of it."""
        if os.fstat(self._raw.descriptor).st_size < self._rows.offset:
            return True
        return os.pread(self._raw.descriptor, len(self._head), 0) != self._head

    def replaced(self, path: str) -> bool:
        """Whether another file bears the name now."""
        mine, there = os.fstat(self._raw.descriptor), os.stat(path)
        return (mine.st_dev, mine.st_ino) != (there.st_dev, there.st_ino)

    def mark(self) -> FileMark:
        """This file and how far it was read."""
        found = os.fstat(self._raw.descriptor)
        head = self._head
        return FileMark(found.st_ino, len(head), _digest(head), self._rows.offset, self._rows.names, found.st_mtime_ns)

    def close(self) -> None:
        """Let go of the file."""
        self._raw.close()


BETWEEN = (".", "-", "_")
COMPRESSED = (".gz", ".bz2", ".xz", ".zst", ".zip", ".lz4")


def is_rotated(name: str, of: str) -> bool:
    """Whether a file may be one that had the name `of` before."""
    stem, ending = os.path.splitext(of)
    behind = name.startswith(of) and name[len(of) :].startswith(BETWEEN)
    within = bool(ending) and name.startswith(stem) and name.endswith(ending) and name != of
    return behind or (within and name[len(stem) : -len(ending)].startswith(BETWEEN))


def rotated_after(path: str, read: FileMark) -> tuple[list[str], list[str]]:
    """The files of the family written to after the one that was read, first to last; and those that are compressed."""
    folder, base = os.path.dirname(path) or ".", os.path.basename(path)
    found: list[tuple[int, str]] = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if is_rotated(entry.name, base) and entry.is_file():
                there = entry.stat()
                # A number alone proves nothing: that of a file that is gone is given to another.
                known = read.matches(entry.path) and (read.known > 0 or there.st_ino == read.number)
                if there.st_mtime_ns > read.modified and not known:
                    found.append((there.st_mtime_ns, entry.path))
    paths = [one for _, one in sorted(found)]
    return [p for p in paths if not p.endswith(COMPRESSED)], [p for p in paths if p.endswith(COMPRESSED)]


def copy_of(path: str, read: FileMark) -> str | None:
    """Where the content went of a file that was emptied and is written anew, as `copytruncate` of logrotate does."""
    folder, base = os.path.dirname(path) or ".", os.path.basename(path)
    with os.scandir(folder) as entries:
        names = sorted(entry.path for entry in entries if is_rotated(entry.name, base) and entry.is_file())
    return next((name for name in names if read.known and read.matches(name)), None)


LOG = logging.getLogger(__name__)


class Follow(PolledInput):
    """The lines of a growing file; the option `format` says what they are (by default json)."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        given = input_of(stream)
        owner = f"stream {stream.name!r}"
        self._path = needs_path(stream, given)
        options = {name.lower(): value for name, value in given.options}
        kind = options.pop("format", "json")
        if kind not in ("json", "csv", "text"):
            raise DeclarationError(f"{owner} cannot follow {kind}: give the option format as json, csv or text")
        if os.path.isdir(self._path):
            raise InputError(f"{owner}: {self._path} is a folder: follow a file in it, or read the folder as {kind}")
        self._how = LineFormat(owner, stream.columns, kind, options)
        self._file: FollowedFile | None = None
        self._after: FileMark | None = None
        self._warned: set[str] = set()
        self._steps: list[dict[str, Any]] = []

    @property
    def ended(self) -> bool:
        """Never: a file may always grow."""
        return False

    def _look(self, max_rows: int) -> pa.Table | None:
        try:
            while True:
                if self._file is None:
                    self._file = self._next()
                if self._file.rewritten():
                    self._emptied(self._file.mark())
                    continue
                start = self._file.offset
                tables = self._file.read(max_rows)
                if tables is not None and tables.num_rows:
                    return self._noted(self._file, start, tables, to_the_end=False)
                if tables is None and not self._file.replaced(self._path):
                    return None
                if tables is None:
                    # Written between our last look and the renaming, or never ended.
                    tables = self._file.read_to_the_end(max_rows)
                    if tables is not None:
                        return self._noted(self._file, start, tables, to_the_end=True)
                    self._after = self._file.mark()
                    self.close()
        except FileNotFoundError:
            if not self._warned:
                self._warned.add(self._path)
                LOG.warning(
                    "%s: there is nothing at %s yet: it is waited for",
                    self._how.owner,
                    with_place(self._path),
                    extra={"event": "file awaited"},
                )
            return None
        except OSError as failure:
            raise InputError(f"{self._how.owner}: {self._path} cannot be followed: {failure.strerror}") from failure

    def _noted(self, file: FollowedFile, start: int, tables: pa.Table, to_the_end: bool) -> pa.Table:
        """Keep in mind which rows were taken, to be taken again if need be."""
        step = {"file": file.mark().saved(), "start": start, "rows": tables.num_rows, "to_the_end": to_the_end}
        self._steps.append(step)
        return tables

    def _next(self) -> FollowedFile:
        """The file behind the one that was read: one that bore the name meanwhile, or the one that bears it now."""
        if self._after is None:
            return FollowedFile(self._how, self._path)
        waiting, compressed = rotated_after(self._path, self._after)
        for path in compressed:
            if path not in self._warned:
                self._warned.add(path)
                LOG.warning(
                    "%s: %s was compressed before it was read: its rows are missing",
                    self._how.owner,
                    path,
                    extra={"event": "file compressed unread"},
                )
        return FollowedFile(self._how, waiting[0] if waiting else self._path)

    def _emptied(self, mark: FileMark) -> None:
        """Read on in the copy of a file that is written anew, or else in that file from its beginning."""
        self.close()
        copied = copy_of(self._path, mark)
        self._file = FollowedFile(self._how, self._path if copied is None else copied, None if copied is None else mark)

    def position(self) -> dict[str, Any]:
        """Which file, and how far it was read."""
        after = None if self._after is None else self._after.saved()
        return {"file": None if self._file is None else self._file.mark().saved(), "after": after}

    def seek(self, position: dict[str, Any]) -> None:
        """Read on in the file that was read then, wherever it is now."""
        after = position.get("after")
        self._after = None if after is None else FileMark.restored(after)
        if position["file"] is not None:
            mark = FileMark.restored(position["file"])
            where = mark.found(self._path) or copy_of(self._path, mark)
            if where is not None:
                self._file = FollowedFile(self._how, where, mark)
            else:
                self._after = mark
                LOG.warning(
                    "%s: the file that was read last as %s is gone: what was written to it behind byte %d is missing",
                    self._how.owner,
                    self._path,
                    mark.offset,
                    extra={"event": "file gone"},
                )

    def portion(self) -> dict[str, Any]:
        """What was read of which files since this was last asked."""
        steps, self._steps = self._steps, []
        return {"steps": steps}

    def repeat(self, portion: dict[str, Any]) -> tuple[pa.Table | None, bool]:
        """Read the same lines again, wherever their files are now."""
        tables: list[pa.Table] = []
        exact = True
        for step in portion["steps"]:
            mark = FileMark.restored(step["file"])
            rows = self._again(mark, int(step["start"]), int(step["rows"]), bool(step["to_the_end"]))
            tables += rows
            exact = sum(one.num_rows for one in rows) == step["rows"]
            if not exact:
                break
        return pa.concat_tables(tables) if tables else None, exact

    def _again(self, mark: FileMark, start: int, rows: int, to_the_end: bool) -> list[pa.Table]:
        """The rows of a file from one byte to another; none if the file is not what it was."""
        where = mark.found(self._path) or copy_of(self._path, mark)
        if where is None:
            return []
        if self._file is None or self._file.mark().number != mark.number or self._file.offset != start:
            if self._file is not None:
                self._after = self._file.mark()
            self.close()
            self._file = FollowedFile(
                self._how, where, replace(mark, offset=start, names=mark.names if start else None)
            )
        read = self._file.read_to_the_end if to_the_end else self._file.read
        tables: list[pa.Table] = []
        while self._file.offset < mark.offset and (table := read(max(1, rows))) is not None:
            tables.append(table)
            rows -= table.num_rows
        return tables

    def close(self) -> None:
        """Close the file that is open."""
        if self._file is not None:
            self._file.close()
            self._file = None
