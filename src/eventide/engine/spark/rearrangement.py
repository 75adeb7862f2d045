"""Spark's log of what was read, brought in line with a program whose streams are others.

Laws. Spark knows sources by their places among all; streams that stay keep what was read of them, whatever their new
place. A stream that is new has not been read, and one that is gone leaves nothing. *All or nothing*: what is to be
written is noted first, as a whole, and done again by the next start if this one dies: the log is never half of each.

>>> arranged('v1\\n{}\\n{"logOffset":4}\\n-', ["a", "b"], ["c", "a"])
'v1\\n{}\\n-\\n{"logOffset":4}'
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import PurePosixPath

from eventide.errors import CheckpointError
from eventide.sources.moved_files import SOURCES, SourceFolders, noted_text
from eventide.storage.storage import Storage

OFFSETS = "spark/offsets"
CHANGE = "spark-change.json"
"""What is being written, while it is."""
NOT_READ = "-"


def arranged(text: str, before: Sequence[str], now: Sequence[str]) -> str:
    """The offsets of a batch, a line for each stream, for other streams."""
    version, settings, *lines = text.splitlines()
    if len(lines) != len(before):
        raise CheckpointError(
            f"Spark's log has {len(lines)} sources where the program had {len(before)} streams: nothing can be changed "
            "in this checkpoint. Give the changed program another one"
        )
    known = dict(zip(before, lines, strict=True))
    return "\n".join([version, settings, *(known.get(name, NOT_READ) for name in now)])


class Rearrangement:
    """Spark's log in a checkpoint, and the streams that it is about."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def finish(self) -> None:
        """Do what a start before this one has begun."""
        if not self._storage.exists(CHANGE):
            return
        change = json.loads(self._storage.read(CHANGE))
        for name in change["remove"]:
            self._storage.remove(name)
        for name, text in change["write"].items():
            place = PurePosixPath(name)
            self._storage.remove(str(place.with_name(f".{place.name}.crc")))
            self._storage.write(name, text.encode())
        self._storage.remove(CHANGE)

    def begin(self, before: SourceFolders, now: Sequence[str], read: Collection[str]) -> None:
        """Let the log speak of these streams; `read` are those of which rows have been read."""
        if lost := [name for name in read if name in now and name not in before.streams]:
            raise CheckpointError(
                f"Spark's log in {self._storage.where} does not know how far {', '.join(lost)} was read: it is that of "
                f"a program with {', '.join(before.streams)}. Restore the checkpoint from a copy of one moment, or "
                "start anew with another one"
            )
        write: dict[str, str] = {}
        for name in self._storage.list(OFFSETS):
            write[name] = arranged(self._storage.read(name).decode(), before.streams, now)
        old = self._storage.list(SOURCES, hidden=True)
        places = {stream: str(place) for place, stream in enumerate(before.streams)}
        folders = {}
        for number, stream in enumerate(now):
            if (place := places.get(stream)) is None:
                continue
            for name in self._storage.list(f"{SOURCES}/{place}"):
                rest = PurePosixPath(name).relative_to(f"{SOURCES}/{place}")
                write[f"{SOURCES}/{number}/{rest}"] = self._storage.read(name).decode()
            if place in before.folders:
                folders[str(number)] = before.folders[place]
        change = {"remove": old, "write": {**write, **noted_text(SourceFolders(tuple(now), folders))}}
        self._storage.write(CHANGE, json.dumps(change).encode())
        self.finish()
