"""A checkpoint seen from outside: its last committed round, and whether all its files are as they were written.

Laws. Nothing is written, made or locked, so an engine may be at work on it. What is read is one committed round, whole:
where the engine has meanwhile removed a file of it, a newer round is there and is read instead.

*Verification* looks at every record, every state file by its checksum, whether the files of results are there, and
whether those of late and rejected rows can be read to their end; the latter may be removed by who has no use for them.
What is missing because the engine has meanwhile committed another round is no damage: then all is looked at again.

>>> last_record(Storage.at("no-such-checkpoint", make=False))
Traceback (most recent call last):
    ...
eventide.errors.CheckpointError: there is no committed round in ...no-such-checkpoint: name the folder that was given to --checkpoint, once a first round has been run
"""  # noqa: E501 - what is printed

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.engine.checkpoint.array_files import complete
from eventide.engine.checkpoint.checkpoint import INTENTS, NUMBERED, ROUNDS, TAIL, checked, decoded
from eventide.engine.checkpoint.record import DamagedError, Intent, RoundRecord, StateFile, checksum, read_document
from eventide.engine.checkpoint.written_results import missing_words, rounds_of
from eventide.engine.introspection.passage import panes_of
from eventide.engine.introspection.why import ProgressReport
from eventide.engine.operators.open_windows import OpenQuery, OpenRows, OpenSessions, OpenTime
from eventide.engine.operators.windows import first_start, needed_from
from eventide.engine.round.side_tables import LATE, REJECTS
from eventide.errors import CheckpointError, EngineError
from eventide.eventtime.instant import Instants
from eventide.eventtime.punctuation import Span
from eventide.eventtime.scheduling.options import Scheduling
from eventide.plan.bound.join import SIDES
from eventide.plan.bound.join_inputs import LEFT
from eventide.plan.declared.fingerprint import described, refuse_changes
from eventide.plan.declared.join import Lookup
from eventide.plan.declared.program import Program, reads
from eventide.plan.declared.query import Query
from eventide.plan.declared.window import RowWindow, SessionWindow
from eventide.plan.sql.sessions import LIVE, spans_text
from eventide.sinks.directory import Directory
from eventide.storage.storage import MissingFileError, Storage, line

ROUND = re.compile(r"rounds/(\d+)\.json")
ATTEMPTS = 20
"""How often a round is looked for while an engine commits one after the other."""


def read_progress(
    program: Program, place: str | Storage, query: str | None = None, scheduling: Scheduling | None = None
) -> ProgressReport:
    """How a query or operator, and all that it reads, stood after the last round of a checkpoint; or the whole program.

    `program` and `scheduling` are those that the engine runs.
    """
    storage = Storage.at(place, make=False)
    if query is None:
        way = dict.fromkeys(one.name for one in (*program.streams, *program.steps))
    else:
        way = below(program, query if program.operator(query) is not None else program.query(query).name)
    for attempt in range(ATTEMPTS):
        record = last_record(storage)
        _refuse_others(record, program, way)
        try:
            return _progress(program, storage, record, way, scheduling or Scheduling())
        except MissingFileError:
            # A newer round has been committed, and the files of this one are gone with it.
            if attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt raises")


def last_record(storage: Storage) -> RoundRecord:
    """The newest record that is whole."""
    for _ in range(ATTEMPTS):
        names = [name for name in storage.list("rounds") if ROUND.fullmatch(name)]
        if not names:
            raise CheckpointError(
                f"there is no committed round in {storage.where}: name the folder that was given to --checkpoint, once "
                "a first round has been run"
            )
        for name in sorted(names, reverse=True):
            try:
                record = RoundRecord.from_json(read_document(name, storage.read(name)))
                return complete(record, partial(_table, storage))[0]
            except (DamagedError, MissingFileError):
                continue
    raise CheckpointError(f"no round in {storage.where} can be read: start the engine, which says what is damaged")


def below(program: Program, name: str) -> dict[str, None]:
    """A query, and all that it reads, however long the way: queries, operators and streams by their names.

    >>> from eventide.plan.declared.query import Query, named_as
    >>> from eventide.plan.declared.stream import Stream, columns
    >>> from eventide.plan.declared.window import Window
    >>> s = Stream("s", columns("t BIGINT"), time="t")
    >>> q = Query("q", "s", Window(10), named_as(n="count(*)"))
    >>> list(below(Program((s,), (q, Query("r", "q", Window(60), named_as(n="count(*)")))), "r"))
    ['r', 'q', 's']
    """
    steps = {step.name: step for step in program.steps}
    found: dict[str, None] = {}
    ahead = [name]
    while ahead:
        found[ahead[0]] = None
        ahead = [*ahead[1:], *(reads(steps[ahead[0]]) if ahead[0] in steps else ())]
    return found


def _refuse_others(record: RoundRecord, program: Program, way: dict[str, None]) -> None:
    """Other queries may have come and gone; what is asked about must be what runs there."""

    def only(plan: dict[str, Any]) -> dict[str, Any]:
        return {kind: {n: one for n, one in plan.get(kind, {}).items() if n in way} for kind in ("queries", "streams")}

    refuse_changes(only(record.plan), only(described(program)))


def _table(storage: Storage, file: StateFile, columns: list[str] | None = None) -> pa.Table:
    data = storage.read(file.name)
    if checked(data, file.checksum) != file.checksum:
        raise DamagedError(f"{file.name} is damaged: its checksum does not hold")
    return decoded(file.name, data, columns)


def _progress(
    program: Program, storage: Storage, record: RoundRecord, way: dict[str, None], scheduling: Scheduling
) -> ProgressReport:
    files = {file.name: file for file in record.files}

    def column(file: str, name: str) -> pa.ChunkedArray:
        return _table(storage, files[file], [name]).column(name)

    def whole(file: str) -> pa.Table:
        return _table(storage, files[file], None)

    def times(operator: str, kind: str) -> Instants:
        """The times of rows that an operator keeps, as the record has them."""
        parts = record.queries[operator]["state"].get(kind, ())
        found = [column(file, "__t").to_numpy() for part in parts for file in part["files"]]
        return np.concatenate([np.zeros(0, dtype=np.int64), *found])

    opened: dict[str, OpenQuery] = {}
    for query in program.queries:
        if query.name in way:
            saved = record.queries[query.name]
            if isinstance(query.window, SessionWindow):
                find = partial(_sessions, [file for part in saved["state"]["slices"] for file in part["files"]], whole)
                opened[query.name] = OpenSessions(
                    query.name, program.times_of(query.name), find, saved["passed"], query.window.noun
                )
            else:
                opened[query.name] = _opened(program, query, saved, times(query.name, "waiting"))
    names: dict[str, pa.Array] = {}
    for stream in program.streams:
        # By some schedules a query goes by streams that it does not read.
        if stream.name in record.streams:
            kept = record.streams[stream.name]["sources"]
            known = None if kept is None else column(kept[0], "source").combine_chunks()
            names[stream.name] = pa.array([], pa.string()) if known is None else known.slice(0, kept[1])
    waiting: dict[str, Instants] = {}
    for operator in program.operators:
        if isinstance(operator, Lookup) and operator.name in way:
            every = times(operator.name, SIDES[LEFT])
            waiting[operator.name] = every[every > record.queries[operator.name]["frontiers"][1]["time"]]
    return ProgressReport(program, record, names.__getitem__, opened.__getitem__, waiting.__getitem__, scheduling)


def _sessions(names: list[str], table: Callable[[str], pa.Table]) -> list[tuple[int, int]]:
    """The spans of the open sessions in the files of a record."""
    if not names:
        return []
    # Of all that is asked of a stopped run, only this is computed by a statement.
    from eventide.duckdb.executor import DuckDBExecutor

    stretches = pa.concat_tables([table(name) for name in names])
    keys = [name for name in stretches.column_names if name.startswith("__k")]
    with closing(DuckDBExecutor()) as executor:
        found = executor.ask(spans_text(keys, LIVE), {LIVE: stretches})
    return list(zip(*(found.column(name).to_pylist() for name in ("__start", "__end")), strict=True))


def _opened(program: Program, query: Query, saved: dict[str, Any], times: Instants) -> OpenQuery:
    """What is open of a query as a record has it; `times` are those of rows that may wait for a number."""
    windows, kind, closed = program.windows_of(query), program.times_of(query.name), saved["closed_before"]
    if isinstance(query.window, RowWindow):
        waiting = np.sort(times[times >= closed])
        return OpenRows(query.name, kind, windows, saved["numbered"], saved["emitted_before"], waiting, closed)
    panes = panes_of(program, query)
    held = np.unique([pane for part in saved["state"]["slices"] for pane in part["panes"]]).astype(np.int64)
    holes = tuple(Span(*hole) for hole in saved.get("holes", ()))
    held = held[held >= min(needed_from(panes, closed), first_start(panes, holes))]
    return OpenTime(query.name, kind, panes, windows, closed, held, holes)


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
    side_files: int = 0


def verify(storage: Storage) -> Verification:
    """Check the records and files of a checkpoint."""
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
    _look_at_side_tables(storage, found)
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


def _look_at_side_tables(storage: Storage, found: Verification) -> None:
    # Not loaded with the commands: a run may have no such rows.
    import pyarrow.parquet as pq

    for name in (*storage.list(LATE), *storage.list(REJECTS)):
        try:
            with storage.opened(name) as source, pq.ParquetFile(source, page_checksum_verification=True) as file:
                for _ in file.iter_batches():
                    pass
        except (EngineError, OSError, pa.ArrowException) as error:
            # A round that is run again takes back what it had written.
            if name not in storage.list(name.partition("/")[0]):
                continue
            found.damage.append(
                f"{name} is damaged ({line(error)}): its round is committed, and it is not written again. Restore it "
                "from a copy, or remove it"
            )
        found.side_files += 1
