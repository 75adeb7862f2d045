"""A checkpoint continued by a changed program: what stays of it, where new queries begin, and the past given to them.

Laws. What the evolution (`plan.declared.evolution`) says continues has the state that the record gives it; of all else
nothing stays. A query that begins at the present takes the rows, and windows of rows, that lie after every time that
has come in what it reads; so a row that it takes has no fellow that it missed. The record on disk is not touched: until
a round of the new program is committed, the old one can go on.

*Backfill.* A query that is backfilled takes every row that its sources had given before the last round, in any order:
none of them is late, since it has promised nothing yet. Streams learn nothing from rows that they have seen before:
heartbeats and losses stay what they are. So with the next round it stands where it would stand had it run from the
beginning, and had every row come in time. Where a source has fewer rows than it had given, as a topic has whose oldest
records were deleted, the query has those that are left, and the log says how many are missing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from eventide.engine.checkpoint.record import RoundRecord
from eventide.engine.operators.operator import Operator
from eventide.engine.round.heartbeats import Ingestion, ingest
from eventide.engine.round.reduce import Reducer
from eventide.engine.stream_progress import StreamProgress
from eventide.errors import CheckpointError
from eventide.eventtime.instant import NEVER
from eventide.plan.declared.evolution import QUERY, STREAM, Begin, Evolution
from eventide.plan.declared.program import Program, reads
from eventide.plan.declared.query import Query
from eventide.plan.declared.stream import Timestamps
from eventide.plan.declared.window import RowWindow

if TYPE_CHECKING:
    from eventide.engine.round.engine import Engine


log = logging.getLogger(__name__)


def continued(record: RoundRecord, evolution: Evolution) -> RoundRecord:
    """The record as the new program goes on from it."""
    if record.ended:
        raise CheckpointError(
            "the bounded run of this checkpoint has ended and closed every window: nothing can be changed in it. Give "
            "the changed program another checkpoint"
        )
    kept = evolution.of(STREAM, Begin.STATE, Begin.LEARNING, Begin.OTHER_INPUT)
    learning = evolution.of(STREAM, Begin.LEARNING)
    # A stream whose time is read otherwise is read on from where it was.
    read_on = evolution.of(STREAM, Begin.STATE, Begin.LEARNING, Begin.PRESENT)
    streams = {name: saved for name, saved in record.streams.items() if name in kept}
    queries = evolution.of(QUERY, Begin.STATE)
    return replace(
        record,
        streams={name: saved | {"pacemaker": None} if name in learning else saved for name, saved in streams.items()},
        queries={name: saved for name, saved in record.queries.items() if name in queries},
        positions={name: position for name, position in record.positions.items() if name in read_on},
        outputs={name: written for name, written in record.outputs.items() if name in queries},
    )


def latest_of(name: str, program: Program, streams: Mapping[str, StreamProgress], kept: Mapping[str, Operator]) -> int:
    """The largest time of a row that a stream, query or operator has given, or may give of rows that have come.

    `kept` are the operators that continue.
    """
    if name in streams:
        stream = streams[name]
        if stream.stream.table is not None:
            # It is read as it is, whenever that is.
            return NEVER
        return stream.latest if stream.stream.timestamps is Timestamps.EXTERNAL else stream.heartbeat
    step = next(step for step in program.steps if step.name == name)
    if isinstance(step, Query) and name in kept:
        return kept[name].emitted_to
    if isinstance(step, Query) and isinstance(step.window, RowWindow):
        # Its results are numbered, and there are none yet.
        return NEVER
    return max((latest_of(read, program, streams, kept) for read in reads(step)), default=NEVER)


def backfilled(engine: Engine, rows: Iterable[Mapping[str, Any]]) -> dict[str, Operator]:
    """The operators of an engine, with the past for those that begin with it."""
    wanted = engine.evolution.of(QUERY, Begin.BEGINNING)
    ways = {
        group[0].name: [way for way in engine.plan.ways_from_all(group) if way.step in wanted]
        for group in engine.program.reduced_together
    }
    placed = engine.on_cluster()
    reducers = {
        group[0].name: Reducer.of(group[0], [way.bound for way in ways[group[0].name]], placed)
        for group in engine.program.reduced_together
        if ways[group[0].name]
    }
    found, number = Ingestion(dict(engine.state.operators)), engine.next_round
    missing = {name: _given_before(engine, reducer.stream.rows_of) for name, reducer in reducers.items()}
    engine.executor.files.begin(number, ahead=True)
    for some in rows:
        engine.backend.bring(some, few=False)
        try:
            for name, reducer in reducers.items():
                if reducer.stream.rows_of not in some:
                    continue
                operators = {way.name: found.operators[way.step] for way in ways[name]}
                clock = engine.state.clock
                reduction = engine.reduce_step.run(reducer, operators, engine.streams[name], clock, number)
                cells = reduction.cells
                missing[name] -= cells.rows
                for way in ways[name]:
                    sources = engine.streams[way.source].number_sources(cells.table, cells.source_columns)
                    ingest(found, way, reduction.relations[way.name], sources)
        finally:
            engine.backend.release()
    for name, number in missing.items():
        if number > 0:
            log.warning(
                "stream %r had given %d rows more than it has now: its oldest are gone. %s: begins with the rest",
                name,
                number,
                ", ".join(wanted),
                extra={"event": "oldest rows gone"},
            )
    return found.operators


def _given_before(engine: Engine, name: str) -> int:
    """How many rows the input of a stream has given before; none where it is another one now, or a table."""
    stream, anew = engine.streams[name], engine.evolution.of(STREAM, Begin.BEGINNING, Begin.OTHER_INPUT)
    return 0 if name in anew or stream.stream.table is not None else stream.losses.rows
