"""The answer to a prod: what a query of any depth can say now.

Law: an early answer is the query over the rows that have arrived and were not late, for the windows that the prod asks
for and that have no final answer yet; of an operator without windows, the rows that it would tell. It is computed on
copies, so prods change no state: whatever is asked, final answers are the same. (Prodding thesis, sections 3.1, 3.3.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eventide.engine.advancing import Advance
from eventide.engine.answers import operator_schema, result_schema
from eventide.engine.early_runs import passing, prodded
from eventide.engine.holding import Holding
from eventide.engine.operator_run import Frontier, OperatorRun
from eventide.engine.work import Round, Run
from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat_labels import Level
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants, shift
from eventide.eventtime.prod import Prod, Timing
from eventide.eventtime.window_ends import WindowEnds
from eventide.plan.binding import BoundProgram
from eventide.plan.bound import Bound
from eventide.plan.window import RowWindow
from eventide.results.accuracy import filtered
from eventide.results.results import Kind, Results

if TYPE_CHECKING:
    from eventide.engine.rounds import Engine


@dataclass(frozen=True)
class EarlyResults(Results):
    """Early results, and how the prod came."""

    timing: Timing = Timing.TIMELY


@dataclass(frozen=True)
class Standing:
    """Where a plan stands when it is asked: after a round, or within one."""

    number: int
    clock: int
    runs: Mapping[str, Run]
    operators: Mapping[str, OperatorRun]
    heartbeats: Mapping[str, int]

    @classmethod
    def within(cls, work: Round) -> Standing:
        """In the middle of a round, when what can be closed is closed."""
        return cls(work.number, work.clock, work.runs, work.operators, work.heartbeats)

    def time(self, name: str) -> int:
        """How far a stream, query or operator has come."""
        if name in self.runs:
            return self.runs[name].promised()
        return self.operators[name].frontier.time if name in self.operators else self.heartbeats[name]


@dataclass
class Prodding:
    """Answers prods; remembers those answered since the last round, to know the ones that are repeated."""

    engine: Engine
    since: dict[str, list[Prod]] = field(default_factory=dict)

    def answer(self, name: str, prod: Prod, standing: Standing | None = None) -> EarlyResults:
        """The early results of a query, marked `early`; from where the plan stands after the last round."""
        engine = self.engine
        if name not in engine.plan.operators:
            engine.program.query(name)
        bound = engine.plan.queries.get(name)
        _check_groups(name, bound, prod.groups)
        if standing is None:
            state, heartbeats = engine.committed, {name: stream.heartbeat for name, stream in engine.streams.items()}
            standing = Standing(state.round, state.clock, state.runs, state.operators, heartbeats)
        table = self._swept(name, prod, standing)
        table = filtered(table.filter(pa.array(_asked(bound, prod, _lasts(table)))), prod.groups)
        timing = self._timing(name, bound, prod, _lasts(table), standing)
        self.since.setdefault(name, []).append(prod)
        plain = Results.of_table(name, standing.number, table)
        return EarlyResults(plain.query, plain.round, plain.rows, plain.schema, plain.batches, timing)

    def _swept(self, name: str, prod: Prod, standing: Standing) -> pa.Table:
        """What it would tell if time had come to the prod's, with the heartbeat that it has really come to."""
        engine = self.engine
        needed = needed_for(engine.plan, name)
        runs = dict(standing.runs)
        for other in needed & runs.keys():
            stream = engine.streams.get(engine.bound[other].query.stream)
            runs[other] = prodded(runs[other], pa.array([], pa.string()) if stream is None else stream.sources)
        operators = {name: passing(run) for name, run in standing.operators.items()}
        work = Round(standing.number, None, standing.clock, {}, {}, {}, False, runs, operators)
        work.heartbeats = {stream: max(beat, prod.up_to) for stream, beat in standing.heartbeats.items()}
        # What has ended has told all that it had.
        over = frozenset(one for one in needed if standing.time(one) == FOREVER)
        work.frontiers = dict.fromkeys(over, Frontier(FOREVER))
        if name in over:
            return self._schema(name).empty_table()
        # Each goes by its own inputs, whatever the rest of the plan waits for.
        holding = Holding(engine.plan, Level.OPERATOR)
        Advance(engine.plan, engine.levels, engine.streams, holding).sweep(work, needed - over)
        table = work.results[name].table()
        true = min(standing.time(way.source) for way in engine.plan.ways_into(name))
        shown = pa.scalar(None if abs(true) >= EDGE else true, pa.int64())
        for column, value in (("kind", pa.scalar(Kind.EARLY.value)), ("heartbeat", shown)):
            place = table.schema.get_field_index(column)
            kind = table.schema.field(column)
            table = table.set_column(place, kind, pa.repeat(value.cast(kind.type), table.num_rows))
        return table

    def _schema(self, name: str) -> pa.Schema:
        plan = self.engine.plan
        return result_schema(plan.queries[name]) if name in plan.queries else operator_schema(plan.operators[name])

    def _timing(self, name: str, bound: Bound | None, prod: Prod, held: Instants, standing: Standing) -> Timing:
        """By the windows that hold a row of the groups that are asked for."""
        if bound is None or isinstance(bound.query.window, RowWindow):
            # The numbers of rows, by which such windows close, are no times.
            return Prod(groups=prod.groups).timing(NEVER, held, self.since.get(name, ()))
        closed = standing.time(name)
        # The last window that it can ask for may end before its time.
        if ends_of(bound).at_or_before(shift(prod.up_to, 1)) <= shift(closed, 1):
            return Timing.TOO_LATE
        return prod.timing(closed, held, self.since.get(name, ()))


def needed_for(plan: BoundProgram, name: str) -> frozenset[str]:
    """A query or operator, and all that it reads, directly or not.

    >>> from eventide.plan.binding import Way
    >>> ways = (Way("s", "sums", None), Way("sums", "most", None), Way("s", "other", None))
    >>> sorted(needed_for(BoundProgram(None, ways=ways), "most"))
    ['most', 's', 'sums']
    """
    found, waiting = set[str](), [name]
    while waiting:
        found.add(one := waiting.pop())
        waiting += [way.source for way in plan.ways_into(one) if way.source not in found]
    return frozenset(found)


def ends_of(bound: Bound) -> WindowEnds:
    """Where the windows of a query end."""
    return WindowEnds(bound.panes.slide, bound.panes.offset + bound.panes.range)


def _lasts(table: pa.Table) -> Instants:
    """The last instants of the windows."""
    return np.asarray(table.column("window_end").cast(pa.int64()).to_numpy(), dtype=np.int64) - 1


def _asked(bound: Bound | None, prod: Prod, lasts: Instants) -> NDArray[np.bool_]:
    """Which windows are asked for; those over counts of rows all are."""
    over_rows = bound is not None and isinstance(bound.query.window, RowWindow)
    return np.ones(len(lasts), dtype=bool) if over_rows else prod.asks_for(lasts)


def _check_groups(name: str, bound: Bound | None, groups: Mapping[str, Any]) -> None:
    names = [] if bound is None else [group.name for group in bound.query.groups]
    for group in groups:
        if group not in names:
            known = f"it has {', '.join(names)}" if names else "it has none"
            raise DeclarationError(f"query {name!r} has no group {group!r} to prod: {known}")
