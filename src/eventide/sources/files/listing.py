"""Which files an input still has to read, in the order in which Spark's file source would: oldest first, then by name.

Law: a file is read once; what is written to it afterwards is not read (`Follow` does that). A file is known by its name
below the folder, however the path to the folder is written and wherever the folder was moved; and by its identity (its
number on the disk, size and time), under whatever name. In another folder than the one that was read (a copy) a name
alone proves nothing: there a file is known if its name, size and content are. Names that begin with `_` or `.` are not
data. A file that turns up with a time older than seven days before the newest one read is passed over, so that the
memory of files read stays bounded; a time in the future counts as now.
"""

from __future__ import annotations

import glob
import hashlib
import logging
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from eventide.errors import InputError
from eventide.storage.storage import with_place

OLDEST = 7 * 24 * 3600 * 1_000_000_000
"""Nanoseconds that a file may be older than the newest one read."""

ENDS = 4096
"""Bytes at either end of a file that tell its content."""

LOG = logging.getLogger(__name__)


def is_pattern(path: str) -> bool:
    """Whether a path may match several files.

    >>> is_pattern("in/*.csv"), is_pattern("in/a.csv")
    (True, False)
    """
    return glob.has_magic(path)


def folder_of(path: str) -> str:
    """The folder that names are counted from: the path itself, or its last part without a pattern.

    >>> folder_of("in/2026-*/*.csv"), folder_of("*.csv")
    ('in', '.')
    """
    if is_pattern(path):
        while is_pattern(path):
            path = os.path.dirname(path)
        return path or "."
    return path if os.path.isdir(path) else os.path.dirname(path) or "."


@dataclass(frozen=True)
class ReadFile:
    """A file that was read: by when, how large, which, and what was in it; unknown parts are None."""

    modified: int
    size: int | None = None
    number: int | None = None
    digest: str | None = None

    @staticmethod
    def at(path: str) -> ReadFile:
        """The file at a path, as it is now."""
        found = os.stat(path)
        return ReadFile(found.st_mtime_ns, found.st_size, found.st_ino, digest_of(path, found.st_size))

    @staticmethod
    def restored(saved: Any) -> ReadFile:
        """From plain JSON; earlier versions kept the time alone."""
        return ReadFile(int(saved)) if isinstance(saved, int) else ReadFile(*saved)

    @property
    def identity(self) -> tuple[int | None, int | None, int]:
        """What no other file has, and a renamed file keeps."""
        return self.number, self.size, self.modified

    def saved(self) -> list[Any]:
        """The file as plain data, for JSON."""
        return [self.modified, self.size, self.number, self.digest]


@dataclass
class Listing:
    """The files under a path (a file, a folder or a pattern), and those of them that were read."""

    owner: str
    path: str
    read: dict[str, ReadFile] = field(default_factory=dict)
    newest: int = -1
    _identities: set[tuple[int | None, int | None, int]] = field(default_factory=set)
    _doubtful: set[str] = field(default_factory=set)
    _passed_over: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        if not is_pattern(self.path) and not os.path.exists(self.path):
            raise InputError(
                f"{self.owner}: there is nothing at {with_place(self.path)}: check the path, or make the folder before "
                "the stream starts"
            )

    @property
    def fixed(self) -> bool:
        """Whether the path is one file, so that no other will ever be found there."""
        return not is_pattern(self.path) and os.path.isfile(self.path)

    def unread(self) -> list[str]:
        """Files that were not read, the one to read first first."""
        found = []
        for name, path in self._files():
            if name in self.read and name not in self._doubtful:
                continue
            try:
                there = os.stat(path)
                if self._was_read(name, path, there):
                    continue
            except FileNotFoundError:
                continue  # gone between listing and looking
            if there.st_mtime_ns >= self.newest - OLDEST:
                found.append((there.st_mtime_ns, path))
            elif name not in self._passed_over:
                self._passed_over.add(name)
                LOG.warning(
                    "%s: %s is more than 7 days older than what was read, and is passed over",
                    self.owner,
                    path,
                    extra={"event": "file passed over"},
                )
        return [path for _, path in sorted(found)]

    def read_before(self) -> list[str]:
        """The files that were read to their end, the first one first; those that memory has let go of, too."""
        there = {name: path for name, path in self._files() if name not in self.read}
        forgotten = [path for path in there.values() if os.stat(path).st_mtime_ns < self.newest - OLDEST]
        remembered = [
            self.path_of(name) for name, _ in sorted(self.read.items(), key=lambda one: (one[1].modified, one[0]))
        ]
        return [*sorted(forgotten), *remembered]

    def _was_read(self, name: str, path: str, there: os.stat_result) -> bool:
        """Whether a file is one that was read under another name, or in a folder that this one is a copy of."""
        if (there.st_ino, there.st_size, there.st_mtime_ns) in self._identities:
            self.read[name] = ReadFile.at(path)
            self._doubtful.discard(name)
            return True
        if name in self._doubtful:
            self._doubtful.discard(name)
            before = self.read.pop(name)
            if before.size == there.st_size and before.digest == digest_of(path, there.st_size):
                self._remember(name, ReadFile.at(path))
                return True
        return False

    def _files(self) -> Iterator[tuple[str, str]]:
        """The files that are there: their names below the folder, and their paths."""
        folder = folder_of(self.path)
        try:
            if is_pattern(self.path):
                paths = glob.glob(self.path, recursive=True)
            elif os.path.isdir(self.path):
                paths = [entry.path for entry in os.scandir(self.path)]
            else:
                paths = [self.path]
        except OSError as failure:
            raise InputError(f"{self.owner}: {self.path} cannot be listed: {failure.strerror}") from failure
        for path in paths:
            if os.path.basename(path)[:1] not in ("_", ".") and os.path.isfile(path):
                yield os.path.relpath(path, folder), path

    def name_of(self, path: str) -> str:
        """The name of a file below the folder."""
        return os.path.relpath(path, folder_of(self.path))

    def path_of(self, name: str) -> str:
        """Where a file is now that had this name below the folder."""
        return os.path.join(folder_of(self.path), name)

    def done(self, path: str) -> None:
        """A file was read to its end, or is gone."""
        try:
            file = ReadFile.at(path)
        except FileNotFoundError:
            file = ReadFile(self.newest)
        self._remember(self.name_of(path), file)
        # The clock of whoever wrote it may be wrong, by years: it must not make all later files too old.
        self.newest = max(self.newest, min(file.modified, time.time_ns()))
        if len(self.read) % 1000 == 0:
            self.read = {name: one for name, one in self.read.items() if one.modified >= self.newest - OLDEST}
            self._identities = {one.identity for one in self.read.values()}

    def _remember(self, name: str, file: ReadFile) -> None:
        self.read[name] = file
        if file.number is not None:
            self._identities.add(file.identity)

    def saved(self) -> dict[str, Any]:
        """The memory as plain JSON."""
        read = {name: one.saved() for name, one in self.read.items()}
        return {"folder": _place(folder_of(self.path)), "read": read, "newest": self.newest}

    def restore(self, saved: dict[str, Any]) -> None:
        """The memory as it was saved."""
        self.read, self._identities, self._doubtful = {}, set(), set()
        for name, one in saved["read"].items():
            # Earlier versions kept the path as it was written.
            known = str(name) if "folder" in saved else os.path.basename(str(name))
            self._remember(known, ReadFile.restored(one))
        self.newest = min(int(saved["newest"]), time.time_ns())
        before, now = saved.get("folder"), _place(folder_of(self.path))
        if before is not None and before["path"] != now["path"] and before["number"] != now["number"]:
            self._doubtful = {name for name, one in self.read.items() if one.digest is not None}


def digest_of(path: str, size: int) -> str:
    """A digest of both ends of a file, which tells one from another of its size."""
    with open(path, "rb") as file:
        ends = file.read(ENDS)
        if size > ENDS:
            file.seek(max(ENDS, size - ENDS))
            ends += file.read(ENDS)
    return hashlib.sha256(ends).hexdigest()[:16]


def _place(folder: str) -> dict[str, Any]:
    """A folder by its full path and its number, of which a move leaves one as it is."""
    try:
        number = os.stat(folder).st_ino
    except OSError:
        number = None
    return {"path": os.path.realpath(folder), "number": number}
