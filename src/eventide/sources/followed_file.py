"""One file under `Follow`: read as far as it is written, and known again after a restart.

Law: a `Mark` matches a file only if the bytes that were read first are still there and at least as many as were read.

>>> import tempfile
>>> file = tempfile.NamedTemporaryFile(); _ = file.write(b"one"); file.flush()
>>> mark = Mark(os.stat(file.name).st_ino, 3, hashlib.sha256(b"one").hexdigest(), 3, None)
>>> mark.found(file.name) == file.name, Mark.restored(mark.saved()) == mark
(True, True)
"""

from __future__ import annotations

import hashlib
import os
import weakref
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from eventide.sources.text_rows import LineFormat, TextRows

HEAD = 1024
"""Bytes at the beginning of a file by which it is known."""


@dataclass(frozen=True)
class Mark:
    """A file and how far it was read: its number, how many first bytes are known and their digest, the header."""

    number: int
    known: int
    digest: str
    offset: int
    names: tuple[str, ...] | None
    modified: int = 0
    """When it was last written to, in nanoseconds."""

    def saved(self) -> dict[str, Any]:
        """As plain JSON."""
        return {**asdict(self), "names": None if self.names is None else list(self.names)}

    @staticmethod
    def restored(saved: dict[str, Any]) -> Mark:
        """From plain JSON."""
        return Mark(**{**saved, "names": None if saved["names"] is None else tuple(saved["names"])})

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

    def __init__(self, how: LineFormat, path: str, mark: Mark | None = None) -> None:
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

    def mark(self) -> Mark:
        """This file and how far it was read."""
        found = os.fstat(self._raw.descriptor)
        head = self._head
        return Mark(found.st_ino, len(head), _digest(head), self._rows.offset, self._rows.names, found.st_mtime_ns)

    def close(self) -> None:
        """Let go of the file."""
        self._raw.close()
