"""The checkpoint: the folder from which an engine continues after any death.

Law: `commit` is the one moment at which a round happens. Before it, a restart finds the round before; after it, this
one. A record counts only if it is whole and every file it names is there, as it was written; so `last` is the newest
round that can really be continued from, and what a crash, a torn file or a flipped bit leaves is never taken for state.

In the folder: `rounds/0000000042.json`, the records; `intents/0000000043.json`, what a round is going to be;
`slices/...`, state that is too large for a record; `damaged/`; `lock/`. The last `keep` records stay, with all their
files. Files below `slices/` that no kept record names are garbage of a crash; the first commit after it sweeps them.

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
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import PurePosixPath
from types import TracebackType

import pyarrow as pa

from eventide.engine.checkpoint.array_files import ArrayFiles, complete
from eventide.engine.checkpoint.garbage import Garbage
from eventide.engine.checkpoint.record import (
    DamagedError,
    Intent,
    RoundRecord,
    StateFile,
    checksum,
    checksum_of,
    read_document,
    write_document,
)
from eventide.errors import CheckpointError
from eventide.storage.lock import Lock
from eventide.storage.storage import MissingFileError, Storage, is_visible

log = logging.getLogger(__name__)

ROUNDS, INTENTS, SLICES, DAMAGED = "rounds", "intents", "slices", "damaged"
NUMBERED = re.compile(r"(?:rounds|intents)/(\d+)\.json")
LZ4_ABOVE = 256 * 1024
"""Arrow tables above this are compressed: below, a smaller file does not pay for the time."""
WHOLE_BELOW = 1024 * 1024
"""On a remote storage, files that Spark wrote are read whole for their checksum up to this size."""
TAIL = 64 * 1024
"""Of larger ones the last bytes are; a Parquet file ends with its footer, without which it cannot be read at all."""


class Checkpoint:
    """Records, intents and state files of one engine; `open` one, and `close` it in the end.

    `warnings` has a sentence for everything that was found damaged.
    """

    def __init__(self, storage: Storage, keep: int = 2) -> None:
        if keep < 2:
            raise CheckpointError(
                f"a checkpoint that keeps {keep} records could not survive a damaged one: keep 2 or more"
            )
        self.storage = storage
        self.warnings: list[str] = []
        self._keep = keep
        self._lock = Lock.take(storage)
        self._garbage = Garbage(storage)
        # Known since the folder was listed: it is not listed again.
        self._kept: dict[int, frozenset[str]] | None = None
        self._damaged = set[int]()
        self._intents: dict[int, Intent] | None = None
        self._written = set[str]()
        self._arrays = ArrayFiles()
        self._swept = False

    @classmethod
    def open(cls, place: str | os.PathLike[str] | Storage, keep: int = 2) -> Checkpoint:
        """The checkpoint at a local path or the URI of any file system that Arrow reaches; a new one if there is none.

        While it is open no other engine can open it.
        """
        return cls(Storage.at(place), keep)

    def close(self) -> None:
        """Release the lock, so that another engine can open it."""
        self._garbage.close()
        self._lock.release()

    def __enter__(self) -> Checkpoint:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def last(self) -> RoundRecord | None:
        """The newest record that is whole, with all its files; None for a new checkpoint.

        Damaged ones are skipped, each with a sentence in `warnings`. Those that are newer are set aside in `damaged/`:
        from here on they have not happened, whatever becomes of their files.
        """
        numbers = self._numbers(ROUNDS)
        kept: dict[int, frozenset[str]] = {}
        damage: dict[int, str] = {}
        found: RoundRecord | None = None
        for number in sorted(numbers, reverse=True):
            try:
                record = self._record(number)
                if found is None:
                    for file in record.files:
                        self._verify(file)
                    found, self._arrays = complete(record, self.read_table)
                kept[number] = _names(record)
            except (CheckpointError, MissingFileError) as error:
                if found is None and not isinstance(error, DamagedError | MissingFileError):
                    raise
                damage[number] = str(error)
                self.warn(f"round {number} cannot be continued from and is skipped: {error}")
        if found is None and damage:
            raise self._nothing_good(_by_damage(damage))
        # A round is begun only after the one before it was committed.
        if found is None and (begun := max(self._intended(), default=0)) > 0:
            raise self._nothing_good([f"round {begun} was begun, but there is no record in {ROUNDS}"])
        for number in damage:
            if found is not None and number > found.round:
                self._set_aside(number)
        self._kept, self._damaged = kept, set(damage)
        return found

    def commit(self, record: RoundRecord) -> None:
        """Make the round happen, all of it at once; then remove what no kept record needs."""
        kept = self._known()
        newest = max(kept, default=-1)
        if record.round <= newest:
            raise CheckpointError(
                f"round {record.round} cannot be committed after round {newest} in {self.storage.where}: continue from "
                "the last round, or take the later ones back first"
            )
        self._lock.check()
        record, arrays = self._arrays.apart(record, self.write_table)
        while self._damaged:
            self.storage.remove(_numbered(ROUNDS, self._damaged.pop()))
        self.storage.flush()
        self.storage.write(_numbered(ROUNDS, record.round), write_document(record.to_json()))
        kept[record.round], self._arrays = _names(record), arrays
        self._garbage.add(self._written)
        self._written.clear()
        for number in sorted(kept)[: -self._keep]:
            self.storage.remove(_numbered(ROUNDS, number))
            self._garbage.add(kept.pop(number))
        self._clean(kept)

    def drop_after(self, round: int) -> None:
        """Take back all rounds after this one, and what was intended after it: they are to be run anew.

        Who wants to run them as they were intended asks `pending` before.
        """
        kept = self._known()
        intents = self._intended()
        for number in sorted({*kept, *self._damaged}, reverse=True):
            if number > round:
                self.storage.remove(_numbered(ROUNDS, number))
                self._garbage.add(kept.pop(number, ()))
                self._damaged.discard(number)
                # The arrays are those of a round that has not happened: the next one writes them whole.
                self._arrays = ArrayFiles()
        for number in [number for number in intents if number > round]:
            self.storage.remove(_numbered(INTENTS, number))
            del intents[number]

    def intend(self, intent: Intent) -> Intent:
        """Write the intent of a round; one that was written before a crash is kept and given back."""
        intents = self._intended()
        if intent.round not in intents:
            self.storage.write(_numbered(INTENTS, intent.round), write_document(intent.to_json()))
            intents[intent.round] = intent
        return intents[intent.round]

    def pending(self, after_round: int) -> Intent | None:
        """What the next round was going to be when the engine died, if it got so far."""
        return self._intended().get(after_round + 1)

    def write_table(self, name: str, table: pa.Table) -> StateFile:
        """Store a table as an Arrow or Parquet file: state once a committed record names it, garbage until then.

        A name without a folder is taken below `slices`. A file that a kept record names is never written over.
        """
        placed = name if "/" in name else f"{SLICES}/{name}"
        for number, names in (self._kept or {}).items():
            if placed in names:
                raise CheckpointError(f"{placed} is state of round {number}: write the new state under a new name")
        data = encoded(placed, table)
        self._garbage.spare(placed)
        self.storage.write(placed, data, flush=False)
        self._written.add(placed)
        return StateFile(placed, data.size, checksum(data))

    def read_table(self, file: StateFile) -> pa.Table:
        """The table, if the file is what was written."""
        try:
            data = self.storage.read(file.name)
        except MissingFileError as error:
            raise CheckpointError(f"{error}. Start again: the last good round will be used") from error
        if len(data) != file.bytes or checked(data, file.checksum) != file.checksum:
            raise DamagedError(
                f"{file.name} is damaged: its checksum does not hold. Start again: the last good round will be used"
            )
        return decoded(file.name, data)

    def adopt(self, folder: str) -> tuple[StateFile, ...]:
        """Files that Spark wrote below this checkpoint (at `storage.uri(folder)`), to be named by a record.

        The checksum is over the whole file, whoever wrote it. Only on a remote storage, and above 1 MiB, it is over the
        last 64 KiB: with the length that finds every torn file, without fetching what the cluster wrote.
        """
        files = []
        for name in self.storage.list(folder):
            self._garbage.spare(name)
            self.storage.adopt(name)
            self._written.add(name)
            size = self.storage.size(name)
            files.append(StateFile(name, size, self._sum(name, tail=size > WHOLE_BELOW and not self.storage.near)))
        return tuple(files)

    def holding(self, names: frozenset[str], folder: str) -> AbstractContextManager[None]:
        """Keep these files, and a folder to write into, while a reader outside of the rounds needs them."""
        return self._garbage.holding(names, folder)

    def _nothing_good(self, sentences: Iterable[str]) -> CheckpointError:
        return CheckpointError(
            f"no round of the checkpoint {self.storage.where} can be continued from:\n  "
            + "\n  ".join(sentences)
            + "\nRestore these files from a copy (a file is never changed once it is written, so any copy that has it "
            "will do); or delete the folder and start anew: then all is computed again from what the inputs still "
            "hold, and windows that were open lose the rows that these hold no longer"
        )

    def _set_aside(self, number: int) -> None:
        # Run again, the round writes files of the same names: a record that lacked one would look whole then.
        name = _numbered(ROUNDS, number)
        with suppress(MissingFileError):
            self.storage.write(_numbered(DAMAGED, number), self.storage.read(name))
        self.storage.remove(name)

    def _verify(self, file: StateFile) -> None:
        size = self.storage.size(file.name)
        if size != file.bytes:
            raise DamagedError(f"{file.name} has {size} bytes instead of {file.bytes}")
        if file.checksum != self._sum(file.name, tail=file.checksum.startswith("tail:")):
            raise DamagedError(f"{file.name} is damaged: its checksum does not hold")

    def _sum(self, name: str, tail: bool) -> str:
        if tail:
            return f"tail:{checksum(self.storage.tail(name, TAIL))}"
        with self.storage.opened(name) as file:
            return checksum_of(file)

    def _record(self, number: int) -> RoundRecord:
        name = _numbered(ROUNDS, number)
        record = RoundRecord.from_json(read_document(name, self.storage.read(name)))
        if record.round != number:
            raise DamagedError(f"{name} is the record of round {record.round}")
        return record

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
                    intent = Intent.from_json(read_document(name, self.storage.read(name)))
                    if intent.round != number:
                        raise DamagedError(f"{name} is the intent of round {intent.round}")
                    self._intents[number] = intent
                except (DamagedError, MissingFileError) as error:
                    self.warn(f"what round {number} was going to be is not known any more: {error}")
        return self._intents

    def warn(self, sentence: str) -> None:
        """Tell something of the checkpoint that was found damaged, once."""
        if sentence not in self.warnings:
            self.warnings.append(sentence)
            log.warning("%s", sentence, extra={"event": "checkpoint warning"})

    def _clean(self, kept: dict[int, frozenset[str]]) -> None:
        intents = self._intended()
        # The intents after the oldest kept record stay: the rounds may have to be run again from there.
        for number in [number for number in intents if number <= min(kept)]:
            self._garbage.add({_numbered(INTENTS, number)})
            del intents[number]
        live = frozenset[str]().union(*kept.values())
        if not self._swept:
            self._swept = True
            self._garbage.add(self._left_behind(live))
        for complaint in self._garbage.remove(live):
            self.warn(complaint)

    def _left_behind(self, live: frozenset[str]) -> set[str]:
        """What a crash left: state no record names, halves of files; not the marks Spark set beside live files."""
        in_use = {PurePosixPath(name).parent for name in live}
        left = set[str]()
        for folder in (ROUNDS, INTENTS, SLICES):
            for path in map(PurePosixPath, self.storage.list(folder, hidden=True)):
                half = not is_visible(path.name) and path.suffix == ".tmp"
                if half or (folder == SLICES and (is_visible(path.name) or path.parent not in in_use)):
                    left.add(str(path))
        return left


def _by_damage(damage: Mapping[int, str]) -> list[str]:
    """A sentence for each damage, with the rounds that need the damaged file.

    >>> _by_damage({4: "slices/a is missing", 3: "slices/a is missing", 2: "rounds/2.json is damaged"})
    ['rounds 3 and 4: slices/a is missing', 'round 2: rounds/2.json is damaged']
    """
    rounds: dict[str, list[int]] = {}
    for number, wrong in damage.items():
        rounds.setdefault(wrong, []).append(number)
    return [
        f"round{'s' if len(numbers) > 1 else ''} {' and '.join(map(str, sorted(numbers)))}: {wrong}"
        for wrong, numbers in rounds.items()
    ]


def checked(data: bytes, known: str) -> str:
    """The checksum of a file's bytes, of the kind that is known of it: of the whole file, or of its end."""
    return f"tail:{checksum(data[-TAIL:])}" if known.startswith("tail:") else checksum(data)


def encoded(name: str, table: pa.Table) -> pa.Buffer:
    """A table as the bytes of a file, in the format that its name says.

    >>> decoded("a.parquet", encoded("a.parquet", pa.table({"pane": [0]}))).to_pydict()
    {'pane': [0]}
    """
    sink = pa.BufferOutputStream()
    if name.endswith(".parquet"):
        # Not loaded with the engine: on one machine there are no such files.
        import pyarrow.parquet as pq

        pq.write_table(table, sink, compression="zstd", coerce_timestamps="us")
        return sink.getvalue()
    compression = "lz4" if table.nbytes > LZ4_ABOVE else None
    options = pa.ipc.IpcWriteOptions(compression=compression, unify_dictionaries=True)
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def decoded(name: str, data: bytes | pa.Buffer, columns: list[str] | None = None) -> pa.Table:
    """The table in the bytes of a file, or some of its columns."""
    if name.endswith(".parquet"):
        import pyarrow.parquet as pq

        return pq.read_table(pa.BufferReader(data), columns=columns, coerce_int96_timestamp_unit="us")
    if columns is None:
        return pa.ipc.open_file(data).read_all()
    places = [pa.ipc.open_file(data).schema.get_field_index(column) for column in columns]
    return pa.ipc.open_file(data, options=pa.ipc.IpcReadOptions(included_fields=places)).read_all()


def _numbered(folder: str, number: int) -> str:
    return f"{folder}/{number:010d}.json"


def _names(record: RoundRecord) -> frozenset[str]:
    return frozenset(file.name for file in record.files)
