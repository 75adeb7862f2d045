"""A checkpoint seen from outside: its last committed round, while an engine may be at work on it.

Law: nothing is written, made or locked. What is read is one committed round, whole: where the engine has meanwhile
removed a file of it, a newer round is there and is read instead.

>>> last_record(Storage.at("no-such-checkpoint", make=False))
Traceback (most recent call last):
    ...
eventide.errors.CheckpointError: there is no committed round in ...no-such-checkpoint: name the folder that was given \
to --checkpoint, once a first round has been run
"""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa

from eventide.engine.open_windows import OpenQuery, open_of_record
from eventide.engine.record import DamagedError, RoundRecord, checksum, read_document
from eventide.engine.storage import MissingFileError, Storage
from eventide.engine.why import Standing
from eventide.errors import CheckpointError
from eventide.plan.fingerprint import described, refuse_changes
from eventide.plan.program import Program

ROUND = re.compile(r"rounds/(\d+)\.json")
ATTEMPTS = 20
"""How often a round is looked for while an engine commits one after the other."""


def read_standing(program: Program, place: str, query: str) -> Standing:
    """How a query, and all that it reads, stood after the last round of a checkpoint."""
    storage = Storage.at(place, make=False)
    way = _way(program, query)
    for attempt in range(ATTEMPTS):
        record = last_record(storage)
        _refuse_others(record, program, way)
        try:
            return _standing(program, storage, record, way)
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
                return RoundRecord.from_json(read_document(name, storage.read(name)))
            except (DamagedError, MissingFileError):
                continue
    raise CheckpointError(f"no round in {storage.where} can be read: start the engine, which says what is damaged")


def _way(program: Program, query: str) -> list[str]:
    """The query, and the queries that it reads, one after the other."""
    one = program.query(query)
    way = [one.name]
    while (below := program.below(one)) is not None:
        way.append(below.name)
        one = below
    return way


def _refuse_others(record: RoundRecord, program: Program, way: list[str]) -> None:
    """Other queries may have come and gone; what is asked about must be what runs there."""
    read = program.query(way[-1]).stream

    def only(plan: dict[str, Any]) -> dict[str, Any]:
        queries, streams = plan.get("queries", {}), plan.get("streams", {})
        return {
            "queries": {name: queries[name] for name in way if name in queries},
            "streams": {read: streams[read]} if read in streams else {},
        }

    refuse_changes(only(record.plan), only(described(program)))


def _standing(program: Program, storage: Storage, record: RoundRecord, way: list[str]) -> Standing:
    files = {file.name: file for file in record.files}

    def table(name: str, column: str) -> pa.Table:
        data = storage.read(name)
        if checksum(data) != files[name].checksum:
            raise DamagedError(f"{name} is damaged: its checksum does not hold")
        at = pa.ipc.open_file(data).schema.get_field_index(column)
        return pa.ipc.open_file(data, options=pa.ipc.IpcReadOptions(included_fields=[at])).read_all()

    opened: dict[str, OpenQuery] = {}
    for name in way:
        query, saved = program.query(name), record.queries[name]
        column = "__t" if "numbered" in saved else "__pane"
        tables = [] if "chunks" in saved else [table(file, column) for file, _ in saved["files"]]
        opened[name] = open_of_record(program, query, saved, tables)
    read = program.query(way[-1]).stream
    kept = record.streams[read]["sources"]
    names = pa.array([], pa.string())
    if kept is not None:
        names = table(kept[0], "source").column("source").combine_chunks().slice(0, kept[1])
    return Standing(program, record, lambda stream: names, lambda query: opened[query])
