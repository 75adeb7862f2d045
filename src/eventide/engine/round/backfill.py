"""Give queries the past of their streams.

Laws. A query that is backfilled takes every row that its sources had given before the last round, in any order: none of
them is late, since it has promised nothing yet. Streams learn nothing from rows that they have seen before: heartbeats
and losses stay what they are. So with the next round it stands where it would stand had it run from the beginning, and
had every row come in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from eventide.engine.operators.operator import Operator
from eventide.engine.round.heartbeats import Ingestion, ingest
from eventide.engine.round.reduce import Reducer
from eventide.plan.declared.evolution import QUERY, Begin

if TYPE_CHECKING:
    from eventide.engine.round.engine import Engine


def backfilled(engine: Engine, rows: Iterable[Mapping[str, Any]]) -> dict[str, Operator]:
    """The operators of an engine, with the past for those that begin with it."""
    wanted = engine.evolution.of(QUERY, Begin.BEGINNING)
    ways = {
        stream.name: [way for way in engine.plan.ways_from(stream.name) if way.step in wanted]
        for stream in engine.program.streams
    }
    placed = engine.on_cluster()
    reducers = {
        stream.name: Reducer.of(stream, [way.bound for way in ways[stream.name]], placed)
        for stream in engine.program.streams
        if ways[stream.name]
    }
    found, number = Ingestion(dict(engine.state.operators)), engine.next_round
    engine.executor.files.begin(number, ahead=True)
    for some in rows:
        engine.backend.bring(some, few=False)
        try:
            for name in some:
                stream = engine.streams[name]
                operators = {way.name: found.operators[way.step] for way in ways[name]}
                reduction = engine.reduce_step.run(reducers[name], operators, stream, engine.state.clock, number)
                sources = stream.number_sources(reduction.cells.table, reduction.cells.source_columns)
                for way in ways[name]:
                    ingest(found, way, reduction.relations[way.name], sources)
        finally:
            engine.backend.release()
    return found.operators
