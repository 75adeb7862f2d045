"""The checkpoint: the folder from which an engine continues after any death.

Law: `commit` is the one moment at which a round happens. Before it, a restart finds the round before; after it, this
one. A record counts only if it is whole and every file it names is there, as it was written; so `last` is the newest round
that can really be continued from, and what a crash, a torn file or a flipped bit leaves is never taken for state.

In the folder: `rounds/0000000042.json`, the records; `intents/0000000043.json`, what a round is going to be;
`slices/...`, state that is too large for a record; `lock/`. The last `keep` records stay, with all their files; what is
older goes. Files below `slices/` that no kept record names are garbage of a crash, and go with the first commit after it.

>>> from tempfile import mkdtemp
>>> with Checkpoint.open(mkdtemp()) as checkpoint:
...     state = checkpoint.write_table("slices/0000000000-speeds.arrow", pa.table({"pane": [0, 20]}))
...     checkpoint.commit(RoundRecord(0, 0, 1_000, False, {}, {}, {}, {}, (state,)))
...     last = checkpoint.last()
...     checkpoint.read_table(last.files[0]).num_rows
2
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from types import TracebackType

import pyarrow as pa

from eventide.engine.lock import Lock
from eventide.engine.record import DamagedError, Intent, RoundRecord, StateFile, checksum, read_document, write_document
from eventide.engine.storage import MissingFileError, Storage
from eventide.errors import CheckpointError, EngineError

log = logging.getLogger(__name__)

ROUNDS, INTENTS, SLICES = "rounds", "intents", "slices"
NUMBERED = re.compile(r"(?:rounds|intents)/(\d+)\.json")
LZ4_ABOVE = 256 * 1024
"""Arrow tables above this are compressed: below, a smaller file does not pay for the time."""
WHOLE_BELOW = 1024 * 1024
"""Files that Spark wrote are read whole for their checksum up to this size."""
TAIL = 64 * 1024
"""Of larger ones the last bytes are; a Parquet file ends with its footer, without which it cannot be read at all."""


class Checkpoint:
    """Records, intents and state files of one engine; `open` one, and `close` it in the end."""

    def __init__(self, storage: Storage, keep: int = 2) -> None:
        if keep < 2:
            raise CheckpointError(
                f"a checkpoint that keeps {keep} records could not survive a damaged one: keep 2 or more"
            )
        self.storage = storage
        self.warnings: list[str] = []
        self._keep = keep
        self._lock = Lock.take(storage)
        self._kept: dict[int, frozenset[str]] | None = None
        self._intents: dict[int, Intent] | None = None
        self._written = set[str]()
        self._dead = set[str]()
        self._swept = False

    @classmethod
    def open(cls, place: str | os.PathLike[str], keep: int = 2) -> Checkpoint:
        """The checkpoint at a local path or the URI of any file system that Arrow reaches; a new one if there is none.

        While it is open no other engine can open it.
        """
        return cls(Storage.at(place), keep)

    def close(self) -> None:
        """Let another engine have it."""
        self._lock.release()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Records

    def last(self) -> RoundRecord | None:
        """The newest record that is whole, with all its files; None for a new checkpoint.

        Damaged ones are skipped, each with a sentence in `warnings`.
        """
        numbers = self._numbers(ROUNDS)
        kept: dict[int, frozenset[str]] = {}
        found: RoundRecord | None = None
        for number in sorted(numbers, reverse=True):
            try:
                record = self._record(number)
                if found is None:
                    for file in record.files:
                        self._verify(file)
                    found = record
            except (DamagedError, MissingFileError) as damage:
                self._warn(f"round {number} cannot be continued from and is skipped: {damage}")
                continue
            kept[record.round] = _names(record)
        if numbers and found is None:
            raise CheckpointError(
                f"no round of the checkpoint {self.storage.where} can be continued from:\n"
                + "\n".join(f"  {warning}" for warning in self.warnings[-len(numbers) :])
                + "\nRestore its files from a copy; or delete the folder and start anew: then everything is computed "
                "again from what the inputs still hold, and windows that were open are lost where they hold it no longer"
            )
        self._kept = {number: kept[number] for number in sorted(kept)}
        return found

    def commit(self, record: RoundRecord) -> None:
        """Make the round happen, all of it at once; then remove what no kept record needs."""
        kept = self._known()
        newest = max(kept, default=-1)
        if record.round <= newest:
            raise CheckpointError(
                f"round {record.round} cannot be committed after round {newest} in {self.storage.where}: continue from "
                "`last()`, or take the later rounds back with `drop_after`"
            )
        self._lock.check()
        self.storage.write(_numbered(ROUNDS, record.round), write_document(record.to_json()))
        kept[record.round] = _names(record)
        self._retire(self._written - kept[record.round])
        self._written.clear()
        while len(kept) > self._keep:
            oldest = min(kept)
            self.storage.remove(_numbered(ROUNDS, oldest))
            self._retire(kept.pop(oldest))
        self._clean()

    def drop_after(self, round: int) -> None:
        """Take back all rounds after this one, and what was intended after it: they are to be run anew."""
        kept = self._known()
        for number in self._numbers(ROUNDS):
            if number > round:
                self.storage.remove(_numbered(ROUNDS, number))
                self._retire(kept.pop(number, ()))
        for number in [number for number in self._intended() if number > round]:
            self.storage.remove(_numbered(INTENTS, number))
            del self._intended()[number]

    # Intents

    def intend(self, intent: Intent) -> Intent:
        """Say what a round is going to be; if that was already said, before a crash, what was said then holds."""
        intents = self._intended()
        if intent.round not in intents:
            self.storage.write(_numbered(INTENTS, intent.round), write_document(intent.to_json()))
            intents[intent.round] = intent
        return intents[intent.round]

    def pending(self, after_round: int) -> Intent | None:
        """What the next round was going to be when the engine died, if it got so far."""
        return self._intended().get(after_round + 1)

    # State files

    def write_table(self, name: str, table: pa.Table) -> StateFile:
        """Store a table as an Arrow file. It is state once a committed record names it, and garbage before."""
        compression = "lz4" if table.nbytes > LZ4_ABOVE else None
        options = pa.ipc.IpcWriteOptions(compression=compression, unify_dictionaries=True)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, table.schema, options=options) as writer:
            writer.write_table(table)
        data = sink.getvalue()
        placed = name if "/" in name else f"{SLICES}/{name}"
        self.storage.write(placed, data)
        self._written.add(placed)
        self._dead.discard(placed)
        return StateFile(placed, data.size, checksum(data))

    def read_table(self, file: StateFile) -> pa.Table:
        """The table, if the file is what was written."""
        try:
            data = self.storage.read(file.name)
        except MissingFileError as error:
            raise CheckpointError(f"{error}. Start again: the last good round is used") from error
        if checksum(data) != file.checksum:
            raise DamagedError(
                f"{file.name} is damaged: its checksum does not hold. Start again: the last good round is used"
            )
        return pa.ipc.open_file(data).read_all()

    def adopt(self, folder: str) -> tuple[StateFile, ...]:
        """Files that Spark wrote below this checkpoint (at `storage.uri(folder)`), to be named by a record.

        Up to 1 MiB a file is read whole for its checksum. Of a larger one the checksum is over the last 64 KiB: with
        the length that finds every torn file, without reading on the driver what the cluster wrote; a bit that
        flips in the middle is left to the page checksums of Parquet.
        """
        files = []
        for name in self.storage.list(folder):
            self.storage.settle(name)
            size = self.storage.size(name)
            files.append(StateFile(name, size, self._sum(name, size)))
            self._written.add(name)
            self._dead.discard(name)
        return tuple(files)

    def _verify(self, file: StateFile) -> None:
        size = self.storage.size(file.name)
        if size != file.bytes:
            raise DamagedError(f"{file.name} has {size} bytes, not {file.bytes}")
        if file.checksum != self._sum(file.name, size, tail=file.checksum.startswith("tail:")):
            raise DamagedError(f"{file.name} is damaged: its checksum does not hold")

    def _sum(self, name: str, size: int, tail: bool | None = None) -> str:
        if size > WHOLE_BELOW if tail is None else tail:
            return "tail:" + checksum(self.storage.tail(name, TAIL))
        return checksum(self.storage.read(name))

    # What is known of the folder; it is listed once, not every round

    def _record(self, number: int) -> RoundRecord:
        name = _numbered(ROUNDS, number)
        return RoundRecord.from_json(read_document(name, self.storage.read(name)))

    def _numbers(self, folder: str) -> list[int]:
        return [int(found[1]) for name in self.storage.list(folder) if (found := NUMBERED.fullmatch(name))]

    def _known(self) -> dict[int, frozenset[str]]:
        if self._kept is None:
            self.last()
        assert self._kept is not None
        return self._kept

    def _intended(self) -> dict[int, Intent]:
        if self._intents is None:
            self._intents = {}
            for number in self._numbers(INTENTS):
                name = _numbered(INTENTS, number)
                try:
                    self._intents[number] = Intent.from_json(read_document(name, self.storage.read(name)))
                except (DamagedError, MissingFileError) as damage:
                    self._warn(f"what round {number} was going to be is not known any more: {damage}")
        return self._intents

    def _warn(self, sentence: str) -> None:
        self.warnings.append(sentence)
        log.warning("%s", sentence)

    # Garbage

    def _retire(self, names: Iterable[str]) -> None:
        self._dead.update(names)

    def _clean(self) -> None:
        """Remove what is dead. A crash in between leaves garbage, which the next engine sweeps."""
        kept = self._known()
        live = frozenset[str]().union(*kept.values())
        intents = self._intended()
        for number in [number for number in intents if number <= min(kept)]:
            self._dead.add(_numbered(INTENTS, number))
            del intents[number]
        if not self._swept:
            self._swept = True
            self._dead.update(self.storage.list(SLICES, hidden=True))
        dead, self._dead = self._dead - live, set()
        try:
            for name in dead:
                self.storage.remove(name)
            for folder in {str(PurePosixPath(name).parent) for name in dead}:
                self._remove_left(folder)
        except EngineError as error:
            self._warn(f"files that are no longer needed stay where they are: {error}")

    def _remove_left(self, folder: str) -> None:
        """Remove a folder below `slices` in which Spark left nothing but its marks."""
        while folder.count("/") and not self.storage.list(folder):
            self.storage.remove_folder(folder)
            folder = str(PurePosixPath(folder).parent)


def _numbered(folder: str, number: int) -> str:
    return f"{folder}/{number:010d}.json"


def _names(record: RoundRecord) -> frozenset[str]:
    return frozenset(file.name for file in record.files)
