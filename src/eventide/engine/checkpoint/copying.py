"""Copy a checkpoint at one round, also while an engine works on it; go back to a round that is still kept.

Laws. *One moment*: a copy holds one committed round, every file that it names, and of Spark's log and of the side
tables nothing that came later; whoever starts from it goes on after that round. The record is written last, so half a
copy is no checkpoint. Where the engine has meanwhile removed a file of the round, a newer round is there, and that is
copied. *Back*: rounds after the one that is named have not happened; sinks, side tables and Spark's log follow with the
next start, as after a damaged record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

from eventide.engine.checkpoint.checkpoint import NUMBERED, ROUNDS, Checkpoint
from eventide.engine.checkpoint.record import DamagedError, RoundRecord, read_document
from eventide.errors import CheckpointError
from eventide.storage.storage import MissingFileError, Storage

ATTEMPTS = 20
"""How often a round is copied while an engine commits one after the other."""
BESIDE = ("owner.json", "spark-inputs.json", "spark/metadata")
OF_ROUNDS = ("late", "rejects")
OF_BATCHES = ("spark/offsets", "spark/commits")
NUMBER = re.compile(r"(\d+)")


@dataclass(frozen=True)
class Copied:
    """What was copied: the round, so many files and bytes."""

    round: int
    files: int
    bytes: int


def copy(source: Storage, target: Storage) -> Copied:
    """Copy the newest round that is whole into an empty folder."""
    if target.list("", hidden=True):
        raise CheckpointError(f"{target.where} is not empty: name a folder that is not there yet")
    for attempt in range(ATTEMPTS):
        try:
            return _copied(source, target)
        except MissingFileError:
            # A newer round has been committed, and files of this one are gone with it.
            target.remove_folder("")
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt raises")


def kept_rounds(storage: Storage) -> list[RoundRecord]:
    """The records of a checkpoint that can be read, the newest first."""
    found = []
    for name in sorted(storage.list(ROUNDS), reverse=True):
        if NUMBERED.fullmatch(name):
            try:
                found.append(RoundRecord.from_json(read_document(name, storage.read(name))))
            except (DamagedError, MissingFileError):
                continue
    if not found:
        raise CheckpointError(
            f"there is no committed round in {storage.where}: name the folder that was given to --checkpoint, once a "
            "first round has been run"
        )
    return found


def go_back(place: str, round: int) -> int:
    """Let all rounds after this one not have happened; the number of them that were kept."""
    kept = [record.round for record in kept_rounds(Storage.at(place, make=False))]
    if round not in kept:
        listed = ", ".join(map(str, sorted(kept)))
        raise CheckpointError(f"round {round} is not kept in {place}: there are {listed}")
    with Checkpoint.open(place) as checkpoint:
        checkpoint.drop_after(round)
    return sum(number > round for number in kept)


def _copied(source: Storage, target: Storage) -> Copied:
    record = kept_rounds(source)[0]
    names = [file.name for file in record.files]
    names += [name for folder in OF_ROUNDS for name in source.list(folder) if _number(name) <= record.round]
    names += [name for folder in OF_BATCHES for name in source.list(folder) if _number(name) <= record.batch]
    names += [name for folder in ("spark/sources", "captured") for name in source.list(folder)]
    names += [name for name in BESIDE if source.exists(name)]
    names.append(f"{ROUNDS}/{record.round:010d}.json")
    size = 0
    for name in names:
        data = source.read(name)
        size += len(data)
        target.write(name, data, flush=name == names[-1])
    return Copied(record.round, len(names), size)


def _number(name: str) -> int:
    """The round or batch that a file is of: the first number in the last parts of its name.

    >>> _number("late/s1/0000000042-0.parquet"), _number("late/s/0000000042/part-00001.parquet"), _number("spark/x/7")
    (42, 42, 7)
    """
    parts = PurePosixPath(name).parts[2:]
    found = next((match for part in parts if (match := NUMBER.match(part))), None)
    return -1 if found is None else int(found[1])
