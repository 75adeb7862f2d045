"""Step 2 of a round: what was reduced goes to whom it is for, and streams say how far their time has come.

Laws. A row is judged by the heartbeats of the round before: what its own round brings cannot make it late. Streams
learn from all rows of a round before they give heartbeats. A stream without rows gives one only when it is asked
(`eventtime.scheduling.options`). Arrival times that rows know are one clock for all streams that have them, so a stream
that falls silent in a recording grows old with the others.

*Units.* Times may have been counted in other units than they are read in: 1769850000000 in a TIMESTAMP column is the
year 58054. The first rows of a stream that are all that far off make a warning of what to declare instead.

>>> from eventide.plan.expressions.columns import columns
>>> stream = Stream("s", columns("ts TIMESTAMP"), time="ts")
>>> wrong_unit(stream, 1769850000 * 10**6), wrong_unit(stream, 1769850000000 * 10**6).split(":")[1].strip()
(None, 'ts is in the year 58054')
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eventide.engine.operators.operator import Ingested, Late, Operator
from eventide.engine.relations.executor import Executor, one_row
from eventide.engine.relations.relation import Relation
from eventide.engine.round.reduce import Reduction
from eventide.engine.round.report import RoundInput
from eventide.engine.round.results import shown_heartbeat
from eventide.engine.round.side_tables import late_layout, late_rows_text, side_rows
from eventide.engine.stream_progress import StreamProgress
from eventide.eventtime.heartbeat import Heartbeats
from eventide.eventtime.instant import NEVER
from eventide.eventtime.scheduling.options import IdlePolling, When
from eventide.plan.binding import BoundProgram, Edge
from eventide.plan.declared.stream import Stream
from eventide.plan.sql.failing_rows import fail_safe_form
from eventide.plan.sql.reduce import late_text

log = logging.getLogger(__name__)

TimeOf = Callable[[str], int]
"""How far a stream or operator had come after the last round."""


@dataclass
class Ingestion:
    """What the rows of a round have become: operators that ingested them, heartbeats, and late rows by stream.

    `idle` are the streams without rows that may be asked for their time, each with the clock that it goes by. `wanted`
    is how many rows of each stream went into a reader of it, into the one that wanted most.
    """

    operators: dict[str, Operator]
    heartbeats: dict[str, Heartbeats] = field(default_factory=dict)
    idle: dict[str, int] = field(default_factory=dict)
    late: dict[str, list[Relation]] = field(default_factory=dict)
    rows_in: dict[str, int] = field(default_factory=dict)
    wanted: dict[str, int] = field(default_factory=dict)


def silent_moments(streams: Mapping[str, StreamProgress], clock: int) -> dict[str, int]:
    """The clock of a round in which no stream has rows, for each of them.

    Where rows bring the clock, it stands still without them. Only what Kafka notes from now on is later than now; so
    where no records wait, and nobody else brings a clock, that of Kafka goes on with ours.
    """
    recorded = [name for name, stream in streams.items() if stream.stream.arrival is not None]
    found = {name: stream.moment_of(clock) for name, stream in streams.items()}
    arrived = max((found[name] for name in recorded), default=NEVER)
    if recorded and all(streams[name].stream.stamped_by_broker for name in recorded):
        arrived = max(arrived, clock)
    return {**found, **dict.fromkeys(recorded, arrived)}


@dataclass(frozen=True)
class HeartbeatStep:
    """Gives the rows of a round out, and asks the streams for their heartbeats that have rows, or are asked anyway."""

    plan: BoundProgram
    streams: Mapping[str, StreamProgress]
    executor: Executor
    time_of: TimeOf
    polling: IdlePolling
    last_clock: int

    def run(
        self, given: RoundInput, reductions: Mapping[str, Reduction], operators: Mapping[str, Operator]
    ) -> Ingestion:
        """Ingest what was reduced, and find the heartbeats."""
        found = Ingestion(dict(operators))
        moments = self._moments(given.clock, reductions)
        is_due = self.polling.is_due(self.last_clock, given.clock)
        for name, reduction in reductions.items():
            self._ingest(found, name, reduction, given.number)
        for name, stream in self.streams.items():
            ended = given.ended_sources.get(stream.stream.rows_of, ())
            self._observe(stream, moments[name], reductions.get(name), ended)
        spoke = {name for name, reduction in reductions.items() if reduction.spoke}
        for name, stream in self.streams.items():
            moment = moments[name]
            # Where streams share bounds, the rows of one move the others.
            moves = not spoke.isdisjoint((name, *stream.moved_by)) or given.ended_sources.get(stream.stream.rows_of)
            explicit = self._explicit(given, stream.stream)
            if is_due or moves:
                found.heartbeats[name] = stream.promise(moment, explicit)
                continue
            # It stays where it is, unless a promise came from outside; it may be asked if someone waits.
            heartbeat = max(stream.heartbeat, NEVER if explicit is None else explicit)
            found.heartbeats[name] = Heartbeats(heartbeat, np.full(len(stream.sources), heartbeat, dtype=np.int64))
            if self.polling.when is When.ON_DEMAND:
                found.idle[name] = moment
        return found

    def _explicit(self, given: RoundInput, stream: Stream) -> int | None:
        """The promise from outside: it is one of rows, so it holds for twins that go by the same time."""
        same = self.streams[stream.rows_of].stream.time == stream.time
        return given.heartbeats.get(stream.name, given.heartbeats.get(stream.rows_of) if same else None)

    @staticmethod
    def _observe(stream: StreamProgress, moment: int, reduction: Reduction | None, ended: Iterable[str]) -> None:
        """Let a stream learn from its part of the round."""
        if reduction is not None:
            cells, seen = reduction.cells, stream.latest
            stream.observe(moment, cells.table, cells.source_columns, reduction.promises)
            if seen == NEVER < stream.latest and stream.arrivals is not None:
                wrong = wrong_unit(stream.stream, int(stream.arrivals.earliest.min()))
                if wrong is not None:
                    log.warning("%s", wrong, extra={"event": "wrong unit of time"})
            stream.losses.rejected += sum(part.rows for part in reduction.rejected)
        elif stream.stream.arrival is not None:
            stream.clock = moment
        stream.end_sources(ended)

    def _moments(self, clock: int, reductions: Mapping[str, Reduction]) -> dict[str, int]:
        """The clock of this round for each stream."""
        if not reductions:
            return silent_moments(self.streams, clock)
        found = {}
        for name, stream in self.streams.items():
            one = reductions.get(name)
            found[name] = (
                stream.moment_of(clock) if one is None else stream.moment(clock, one.cells.table, one.promises)
            )
        recorded = [name for name, stream in self.streams.items() if stream.stream.arrival is not None]
        arrived = max((found[name] for name in recorded), default=NEVER)
        return {**found, **dict.fromkeys(recorded, arrived)}

    def _ingest(self, found: Ingestion, name: str, reduction: Reduction, round: int) -> None:
        stream = self.streams[name]
        sources = stream.number_sources(reduction.cells.table, reduction.cells.source_columns)
        for way in self.plan.ways_from(name):
            ingested = ingest(found, way, reduction.relations[way.name], sources)
            stream.losses.count(ingested.wanted, ingested.late_rows)
            found.wanted[name] = max(found.wanted.get(name, 0), ingested.wanted)
            stream.losses.revising += ingested.revising
            if ingested.late is not None:
                late = self._late(way, ingested.late, reduction.fail_safe, sources, round)
                found.late.setdefault(name, []).append(late)

    def _late(self, way: Edge, late: Late, fail_safe: bool, sources: pa.Table, round: int) -> Relation:
        """The late rows themselves, each with why it is late."""
        bound = fail_safe_form(way.bound) if fail_safe else way.bound
        heartbeat = min(self.time_of(source) for source in self.plan.judged_by(way))
        beside = {"behind": late.behind, "answered": late.answered, "counted": late.counted}
        text = late_text(bound, late.condition, late.join, **beside)
        fetch_text = late_rows_text(bound, text, late.behind is not None, late.answered is not None)
        tables = {**late.tables, "names": sources, "beat": one_row(heartbeat=shown_heartbeat(heartbeat))}
        layout = late_layout(bound.stream)
        return side_rows(self.executor, bound.stream, fetch_text, layout, late.rows, round, tables)


def ingest(found: Ingestion, way: Edge, rows: Relation, sources: pa.Table | None = None) -> Ingested:
    """Give rows to the operator that they are for."""
    operator = found.operators[way.step]
    found.operators[way.step], ingested = operator.ingest(way.name, operator.own(rows), sources)
    found.rows_in[way.step] = found.rows_in.get(way.step, 0) + ingested.wanted
    return ingested


FAR = 32_503_680_000
"""Seconds from 1970 to the year 3000."""

MICROS_FROM = 10**14
"""As seconds, a number of microseconds of our time is beyond this; one of milliseconds is not."""

YEAR = 31_556_952


def wrong_unit(stream: Stream, first: int) -> str | None:
    """What to say of the times of a stream whose earliest row has this one, if it cannot be meant."""
    if stream.time is None or stream.column(stream.time).type != "TIMESTAMP" or first // 10**6 < FAR:
        return None
    name, seconds = stream.time, first // 10**6
    unit, minute = ("microseconds", 60_000_000) if seconds >= MICROS_FROM else ("milliseconds", 60_000)
    return (
        f"stream {stream.name!r}: {name} is in the year {1970 + seconds // YEAR}: numbers in a TIMESTAMP column are "
        f"seconds, and these look like {unit}. Declare {name} BIGINT, and windows in {unit} ([RANGE {minute}] is one "
        "minute); or let the times be written as 2026-01-31T09:00:00Z"
    )
