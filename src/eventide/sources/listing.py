"""Which files an input still has to read, in the order in which Spark's file source would: oldest first, then by name.

Law: a file is read once, known by its path; what is written to it afterwards is not read (`Follow` does that). Names
that begin with `_` or `.` are not data. A file that turns up with a time older than seven days before the newest one
read is passed over, so that the memory of files read stays bounded; this too is Spark's rule.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from eventide.errors import InputError

OLDEST = 7 * 24 * 3600 * 1_000_000_000
"""Nanoseconds that a file may be older than the newest one read."""


def is_pattern(path: str) -> bool:
    """Whether a path may match several files.

    >>> is_pattern("in/*.csv"), is_pattern("in/a.csv")
    (True, False)
    """
    return glob.has_magic(path)


@dataclass
class Listing:
    """The files under a path (a file, a folder or a pattern), and those of them that were read."""

    owner: str
    path: str
    read: dict[str, int] = field(default_factory=dict)
    newest: int = -1

    def __post_init__(self) -> None:
        if not is_pattern(self.path) and not os.path.exists(self.path):
            raise InputError(
                f"{self.owner}: there is nothing at {self.path}: check the path, or make the folder before the "
                "stream starts"
            )

    @property
    def fixed(self) -> bool:
        """Whether the path is one file, so that no other will ever be found there."""
        return not is_pattern(self.path) and os.path.isfile(self.path)

    def unread(self) -> list[str]:
        """Files that were not read, the one to read first first."""
        found = []
        for name in self._names():
            if name in self.read:
                continue
            try:
                modified = os.stat(name).st_mtime_ns
            except FileNotFoundError:
                continue  # gone between listing and looking
            if modified >= self.newest - OLDEST:
                found.append((modified, name))
        return [name for _, name in sorted(found)]

    def _names(self) -> list[str]:
        try:
            if is_pattern(self.path):
                names = glob.glob(self.path, recursive=True)
            elif os.path.isdir(self.path):
                names = [entry.path for entry in os.scandir(self.path)]
            else:
                names = [self.path]
        except OSError as failure:
            raise InputError(f"{self.owner}: {self.path} cannot be listed: {failure.strerror}") from failure
        return [name for name in names if Path(name).name[:1] not in ("_", ".") and os.path.isfile(name)]

    def done(self, name: str) -> None:
        """A file was read to its end, or is gone."""
        try:
            modified = os.stat(name).st_mtime_ns
        except FileNotFoundError:
            modified = self.newest
        self.read[name] = modified
        self.newest = max(self.newest, modified)
        if len(self.read) % 1000 == 0:
            self.read = {path: at for path, at in self.read.items() if at >= self.newest - OLDEST}

    def saved(self) -> dict[str, Any]:
        """The memory as plain JSON."""
        return {"read": dict(self.read), "newest": self.newest}

    def restore(self, saved: dict[str, Any]) -> None:
        """The memory as it was saved."""
        self.read = {str(name): int(at) for name, at in saved["read"].items()}
        self.newest = int(saved["newest"])
