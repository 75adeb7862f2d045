"""Looking a checkpoint over: every record, every state file by its checksum, and the files of results.

Law: nothing is written, made or locked, so an engine may be at work on it. What is missing because that has meanwhile
committed another round is no damage: then all is looked at again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eventide.engine.checkpoint.checkpoint import INTENTS, NUMBERED, ROUNDS, TAIL
from eventide.engine.checkpoint.record import Intent, RoundRecord, StateFile, checksum, read_document
from eventide.engine.checkpoint.written_results import missing_words, rounds_of
from eventide.errors import CheckpointError, EngineError
from eventide.sinks.directory import Directory
from eventide.storage.storage import MissingFileError, Storage

ATTEMPTS = 20


@dataclass
class Verification:
    """What was looked at, and what is wrong with it; `last` is the round that a start would go on from."""

    where: str
    records: int = 0
    state_files: int = 0
    state_bytes: int = 0
    result_files: int = 0
    last: int | None = None
    newest: int | None = None
    damage: list[str] = field(default_factory=list)


def verify(storage: Storage) -> Verification:
    """Look a checkpoint over."""
    for attempt in range(ATTEMPTS):
        names = _numbered(storage)
        found = _verified(storage, names)
        if not found.damage or attempt == ATTEMPTS - 1 or _numbered(storage) == names:
            return found
    raise AssertionError("the last attempt returns")


def _numbered(storage: Storage) -> list[str]:
    return [name for folder in (ROUNDS, INTENTS) for name in storage.list(folder) if NUMBERED.fullmatch(name)]


def _verified(storage: Storage, names: list[str]) -> Verification:
    found = Verification(storage.where)
    if not names:
        raise CheckpointError(
            f"there is no checkpoint at {storage.where}: name the folder that was given to --checkpoint, once a first "
            "round has been run"
        )
    known: dict[StateFile, str | None] = {}
    newest: RoundRecord | None = None
    for name in sorted(names, reverse=True):
        try:
            document = read_document(name, storage.read(name))
            if name.startswith(INTENTS):
                Intent.from_json(document)
                continue
            record = RoundRecord.from_json(document)
        except (CheckpointError, MissingFileError) as error:
            found.damage.append(str(error))
            continue
        found.records += 1
        newest = newest or record
        for file in record.files:
            if file not in known:
                known[file] = _wrong_with(storage, file)
        if found.last is None and all(known[file] is None for file in record.files):
            found.last = record.round
    numbers = [int(number[1]) for name in names if name.startswith(ROUNDS) and (number := NUMBERED.fullmatch(name))]
    found.newest = max(numbers, default=None)
    found.state_files, found.state_bytes = len(known), sum(file.bytes for file in known)
    found.damage += [wrong for wrong in known.values() if wrong is not None]
    if newest is not None:
        _look_at_results(newest, found)
    return found


def _wrong_with(storage: Storage, file: StateFile) -> str | None:
    try:
        size = storage.size(file.name)
        if size != file.bytes:
            return f"{file.name} has {size} bytes instead of {file.bytes}"
        tail = file.checksum.startswith("tail:")
        seen = f"tail:{checksum(storage.tail(file.name, TAIL))}" if tail else checksum(storage.read(file.name))
    except (MissingFileError, EngineError) as error:
        return str(error)
    return None if seen == file.checksum else f"{file.name} is damaged: its checksum does not hold"


def _look_at_results(record: RoundRecord, found: Verification) -> None:
    for query, written in record.outputs.items():
        rounds = list(rounds_of(written))
        try:
            missing = Directory(written["directory"], written["format"]).missing(query, rounds)
        except EngineError as error:
            found.damage.append(f"the results of query {query!r} cannot be looked at: {error}")
            continue
        found.result_files += len(rounds) - len(missing)
        if missing:
            found.damage.append(missing_words(query, written, list(missing.values())))
