"""Spark's own log of what was read, brought in line with our last committed round.

Law: Spark starts with the batch after our last one, or runs our last one again, which is then passed over. It keeps
`offsets/N` when batch N starts and `commits/N` when it has ended; a batch without a commit is run again with the same
rows. So taking back is removing: commits after our last batch, and offsets after the batch that is to run again. That
is needed when our last record was damaged and an older one is continued from. Where Spark does not remember our last
batch nothing can be continued: it would count from 0 again, and rows would be taken twice or not at all.

A source of files has a log of its own, of which files it has found, one entry ahead of `offsets`. An entry that no
offset has reached would make the next batch larger than it was meant to be, so it goes too; the files are found again.

From both logs together follows which files a batch is made of, before any of them is read.

What Spark writes is safe from the death of the process; `confirm` makes it safe from that of the machine, before a
record of ours stands on it.
"""

from __future__ import annotations

import json
import logging
import re
from pathlib import PurePosixPath

from eventide.engine.checkpoint.record import checksum
from eventide.errors import CheckpointError, EngineError
from eventide.sources.moved_files import SOURCES
from eventide.storage.storage import Storage

log = logging.getLogger(__name__)

OFFSETS, COMMITS = "spark/offsets", "spark/commits"
NUMBERED = re.compile(r".*/(\d+)(\.compact)?")
TOPICS = re.compile(r'\{"[^"]+":\{')
OF_FILES = re.compile(rb'\n\{"path":.*"batchId":')


class SparkLog:
    """Spark's log of what was read, in a checkpoint."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._confirmed = set[str]()

    def take_back(self, last_batch: int) -> None:
        """Let Spark continue after `last_batch`."""
        if last_batch >= 0 and not self._storage.exists(f"{OFFSETS}/{last_batch}"):
            raise CheckpointError(
                f"Spark's log of what was read has no batch {last_batch} in {self._storage.where}/{OFFSETS}: the "
                "checkpoint was made by the local engine, or files of it are gone. Continue with the local engine, "
                "restore them from a copy, or start anew with another checkpoint"
            )
        for folder, last in ((COMMITS, last_batch), (OFFSETS, last_batch + 1)):
            self._remove_after(folder, last, last_batch)
        # Halves of files that a crash or a full disk left. In a log that should be empty Spark minds them.
        for name in self._storage.list("spark", hidden=True):
            if PurePosixPath(name).name.startswith(".") and name.endswith(".tmp"):
                self._storage.remove(name)
        self._take_back_files()

    def take_back_begun(self, last_batch: int) -> None:
        """Forget the batch that was begun after this one, too: it is to be another one."""
        self._remove_after(OFFSETS, last_batch, last_batch)
        self._take_back_files()

    def _remove_after(self, folder: str, last: int, last_batch: int) -> None:
        for number, name in self._entries(folder).items():
            if number > last:
                log.warning(
                    "taking back %s: the last good round ends with batch %d",
                    name,
                    last_batch,
                    extra={"event": "batches taken back"},
                )
                self._storage.remove(name)
                self._storage.remove(f"{folder}/.{number}.crc")

    def confirm(self, batch: int) -> None:
        """With the next commit, what Spark wrote until this batch began is on the disk."""
        if self._storage.near:
            written = {f"{OFFSETS}/{batch}", *self._storage.list(SOURCES)}
            for name in written - self._confirmed:
                self._storage.adopt(name)
            self._confirmed = written

    def portion(self, batch: int) -> dict[str, str]:
        """A text that identifies the rows of a batch: equal only for equal rows."""
        return {"offsets": checksum(self._storage.read(f"{OFFSETS}/{batch}"))}

    def files_of(self, batch: int) -> list[tuple[str, ...] | None]:
        """The files of a batch, as URIs, for each source in the order of the streams; None where that is not known.

        A log that does not read as expected tells nothing, and breaks nothing: Spark knows its files.
        """
        try:
            before = self._reached(batch - 1) if batch else {}
            return [self._found(source, before.get(source), last) for source, last in self._reached(batch).items()]
        except (EngineError, LookupError, ValueError) as unknown:
            log.warning("the files of batch %d are not known: %s", batch, unknown, extra={"event": "batch not known"})
            return []

    def files_before(self, source: int, batch: int) -> tuple[str, ...] | None:
        """All files of a source, by its place among all, in the batches up to one; None where that is not known."""
        last = self._reached(batch).get(str(source))
        return None if last is None else self._found(str(source), None, last)

    def offsets_before(self, source: int, batch: int) -> tuple[dict[str, dict[str, int]], str] | None:
        """Where a source of topics began, as far as Spark has noted it, and how far it was read by a batch.

        None where a source is no topic, or has not been read.
        """
        _, _, *offsets = self._storage.read(f"{OFFSETS}/{batch}").decode().splitlines()
        if not TOPICS.match(offsets[source]):
            return None
        first = f"{SOURCES}/{source}/0"
        # A byte 0 and a version stand before it.
        began = self._storage.read(first).decode().splitlines()[-1] if self._storage.exists(first) else "{}"
        return json.loads(began), offsets[source]

    def _found(self, source: str, after: int | None, last: int | None) -> tuple[str, ...] | None:
        """The files in the entries of a source's log after one and up to another."""
        if last is None:
            return None
        entries = self._entries(f"{SOURCES}/{source}")
        files = []
        for number in range(0 if after is None else after + 1, last + 1):
            if number not in entries:
                return None
            _, *lines = self._storage.read(entries[number]).decode().splitlines()
            files += [entry["path"] for entry in map(json.loads, lines) if entry["batchId"] == number]
        return tuple(files)

    def _take_back_files(self) -> None:
        """Of files that were found, forget those that are part of no batch yet."""
        batches = self._entries(OFFSETS)
        reached = self._reached(max(batches)) if batches else {}
        for source in {PurePosixPath(name).parent for name in self._storage.list(SOURCES)}:
            last = reached.get(source.name, -1)
            if last is None:
                continue
            beyond = [name for number, name in self._entries(str(source)).items() if number > last]
            # An entry that holds all earlier ones too may be the only one that has them.
            if any(name.endswith(".compact") for name in beyond):
                continue
            for name in beyond:
                if OF_FILES.search(self._storage.read(name)):
                    self._storage.remove(name)
                    self._storage.remove(f"{source}/.{PurePosixPath(name).name}.crc")

    def _reached(self, batch: int) -> dict[str, int | None]:
        """How far each source of files was read by a batch, -1 for not at all; None for other sources."""
        _, _, *offsets = self._storage.read(f"{OFFSETS}/{batch}").decode().splitlines()
        return {str(number): _entry(offset) for number, offset in enumerate(offsets)}

    def _entries(self, folder: str) -> dict[int, str]:
        found = (NUMBERED.fullmatch(name) for name in self._storage.list(folder))
        return {int(one[1]): one[0] for one in found if one is not None}


def _entry(offset: str) -> int | None:
    """The last entry of a log of files that an offset covers.

    >>> _entry('{"logOffset":11}'), _entry("-"), _entry('{"topic":{"0":7}}')
    (11, -1, None)
    """
    if offset == "-":
        return -1
    try:
        entry = json.loads(offset)
    except ValueError:
        return None
    return int(entry["logOffset"]) if isinstance(entry, dict) and entry.keys() == {"logOffset"} else None
