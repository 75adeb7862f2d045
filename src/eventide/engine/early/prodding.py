"""The answer to a prod: what a query of any depth can say now, computed from a snapshot of the plan.

Laws. An early answer is the query over the rows that have arrived and were not late, for the windows that the prod asks
for and that have no final answer yet; of an operator without windows, the rows that it would emit. It is computed on
copies, so prods change no state: whatever is asked, final answers are the same. (Prodding thesis, sections 3.1, 3.3.)
*Snapshot*: it is all that an early answer is made of, taken after a round or within one, and it is a value: what it
holds is never changed, only replaced by that of a later round. So it can be asked by any number of threads, at any
time, whatever becomes of the round under way: that round may commit, fail, or add or remove queries, and the answer is
still that of this snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eventide.engine.early.state import EarlyState
from eventide.engine.operators.operator import Operator
from eventide.engine.operators.windows import ends_of
from eventide.engine.relations.executor import Executor
from eventide.engine.round.advance import AdvanceStep
from eventide.engine.round.downstream import DownstreamFeed
from eventide.engine.round.heartbeats import Ingestion
from eventide.engine.round.results import result_table, schema_of, shown_heartbeat
from eventide.engine.scheduling.frontier_limits import FrontierLimits
from eventide.engine.stream_progress import StreamPoint
from eventide.errors import DeclarationError
from eventide.eventtime.early.prod import Prod, Timing
from eventide.eventtime.heartbeat import Heartbeats
from eventide.eventtime.instant import FOREVER, NEVER, Instants, shift
from eventide.eventtime.scheduling.labels import HeartbeatScope
from eventide.plan.binding import BoundProgram
from eventide.plan.bound.query import BoundQuery
from eventide.results.accuracy import filtered
from eventide.results.results import Kind, Results

if TYPE_CHECKING:
    from eventide.engine.round.engine import Engine


@dataclass(frozen=True)
class EarlyResults(Results):
    """Early results, and how the prod came."""

    timing: Timing = Timing.TIMELY


@dataclass(frozen=True)
class EarlyEvaluation:
    """Answers prods from one snapshot; `executor` computes for this question alone."""

    snapshot: PlanSnapshot
    executor: Executor

    def answer(self, name: str, prod: Prod) -> EarlyResults:
        """The early results of a query, marked `early`."""
        snapshot = self.snapshot
        bound = asked_query(snapshot.plan, name, prod)
        table = self._swept(name, prod)
        table = filtered(table.filter(pa.array(_asked(bound, prod, _lasts(table)))), prod.groups)
        before = snapshot.prods.setdefault(name, [])
        timing = self._timing(name, bound, prod, _lasts(table), tuple(before))
        before.append(prod)
        found = Results.of_table(name, snapshot.number, table)
        return EarlyResults(found.query, found.round, found.rows, found.schema, found.batches, timing=timing)

    def _swept(self, name: str, prod: Prod) -> pa.Table:
        """What it would emit if time had come to the prod's, with the heartbeat that it has really come to."""
        snapshot, plan = self.snapshot, self.snapshot.plan
        needed = needed_for(plan, name)
        # What has ended has emitted all that it had.
        over = frozenset(one for one in needed if snapshot.time(one) == FOREVER)
        schema = schema_of(plan, name)
        if name in over:
            return schema.empty_table()
        operators = {
            one: operator.early().with_executor(self.executor) if one in needed else operator
            for one, operator in snapshot.operators.items()
        }
        nobody = np.zeros(0, dtype=np.int64)
        heartbeats = {stream: Heartbeats(max(beat, prod.up_to), nobody) for stream, beat in snapshot.heartbeats.items()}
        # Each goes by its own inputs, whatever the rest of the plan waits for.
        limits = FrontierLimits(plan, HeartbeatScope.OPERATOR)
        apart = {one: snapshot.feeds[one].apart(needed, self.executor) for one in needed & snapshot.feeds.keys()}
        feeds = {one: feed for one, feed in apart.items() if feed is not None}
        step = AdvanceStep(plan, feeds, snapshot.streams, limits, self.executor)
        advanced = step.sweep(snapshot.number, Ingestion(operators, heartbeats), needed - over)
        true = min(snapshot.time(way.source) for way in plan.ways_into(name))
        output = advanced.outputs[name].final
        shown = shown_heartbeat(true)
        tables = [
            result_table(name, Kind.EARLY, snapshot.number, shown, schema, _unmarked(table))
            for part in output.parts
            for table in self.executor.batches(part)
        ]
        return pa.concat_tables([schema.empty_table(), *tables])

    def _timing(
        self, name: str, bound: BoundQuery | None, prod: Prod, held: Instants, before: tuple[Prod, ...]
    ) -> Timing:
        """By the windows that hold a row of the groups that are asked for."""
        if bound is None or not bound.query.has_known_ends:
            # The numbers of rows are no times, and where an open session ends nobody knows.
            return Prod(groups=prod.groups).timing(NEVER, held, before)
        closed = self.snapshot.time(name)
        # The last window that it can ask for may end before its time.
        if ends_of(bound.panes).at_or_before(shift(prod.up_to, 1)) <= shift(closed, 1):
            return Timing.TOO_LATE
        return prod.timing(closed, held, before)


def asked_query(plan: BoundProgram, name: str, prod: Prod) -> BoundQuery | None:
    """The query that a prod asks, None if it is an operator; an error if there is none, or none of its groups."""
    if name not in plan.operators:
        plan.program.query(name)
    bound = plan.queries.get(name)
    _check_groups(name, bound, prod.groups)
    return bound


def needed_for(plan: BoundProgram, name: str) -> frozenset[str]:
    """A query or operator, and all that it reads, directly or not.

    >>> from eventide.plan.binding import Edge
    >>> ways = (Edge("s", "sums", None), Edge("sums", "most", None), Edge("s", "other", None))
    >>> sorted(needed_for(BoundProgram(None, ways=ways), "most"))
    ['most', 's', 'sums']
    """
    found, waiting = set[str](), [name]
    while waiting:
        found.add(one := waiting.pop())
        waiting += [way.source for way in plan.ways_into(one) if way.source not in found]
    return frozenset(found)


def _unmarked(emitted: pa.Table) -> pa.Table:
    """Rows without a heartbeat of their own: nothing has closed them."""
    return emitted.drop_columns(["heartbeat"]) if "heartbeat" in emitted.column_names else emitted


def _lasts(table: pa.Table) -> Instants:
    """The last instants of the windows."""
    return np.asarray(table.column("window_end").cast(pa.int64()).to_numpy(), dtype=np.int64) - 1


def _asked(bound: BoundQuery | None, prod: Prod, lasts: Instants) -> NDArray[np.bool_]:
    """Which windows are asked for; those over counts of rows, and sessions, all are."""
    every = bound is not None and not bound.query.has_known_ends
    return np.ones(len(lasts), dtype=bool) if every else prod.asks_for(lasts)


def _check_groups(name: str, bound: BoundQuery | None, groups: Mapping[str, Any]) -> None:
    names = [] if bound is None else [group.name for group in bound.query.groups]
    for group in groups:
        if group not in names:
            known = f"it has {', '.join(names)}" if names else "it has none"
            raise DeclarationError(f"query {name!r} has no group {group!r} to prod: {known}")


@dataclass(frozen=True)
class PlanSnapshot:
    """A plan, and how far all of it has come. `states` is what was known of early answers."""

    number: int
    clock: int
    plan: BoundProgram
    feeds: Mapping[str, DownstreamFeed]
    streams: Mapping[str, StreamPoint]
    heartbeats: Mapping[str, int]
    operators: Mapping[str, Operator]
    states: Mapping[str, EarlyState] = field(default_factory=dict)
    prods: dict[str, list[Prod]] = field(default_factory=dict)
    """The prods that were answered from it, to know those that are repeated: the one thing that grows."""

    @classmethod
    def after(cls, engine: Engine) -> PlanSnapshot:
        """A snapshot after the last round; called between two rounds, by the thread that runs them."""
        state, points = engine.state, {name: stream.point() for name, stream in engine.streams.items()}
        beats = {name: point.heartbeat for name, point in points.items()}
        plan = engine.plan, engine.feeds, points, beats
        return cls(state.round, state.clock, *plan, state.operators, engine.early.states)

    @classmethod
    def within(
        cls, engine: Engine, round: int, clock: int, heartbeats: Mapping[str, int], operators: Mapping[str, Operator]
    ) -> PlanSnapshot:
        """In the middle of a round, when what can be closed is closed."""
        points = {name: stream.point() for name, stream in engine.streams.items()}
        return cls(round, clock, engine.plan, engine.feeds, points, heartbeats, dict(operators))

    def time(self, name: str) -> int:
        """How far a stream or operator has come."""
        return self.operators[name].frontier.time if name in self.operators else self.heartbeats[name]

    def files(self, names: frozenset[str]) -> frozenset[str]:
        """The files in which these operators have state that is not with the driver."""
        return frozenset(
            file.name
            for name, operator in self.operators.items()
            if name in names
            for rows in operator.state.values()
            for part in rows.parts
            if part.table is None
            for file in part.files
        )
