"""The step of a round that asks for early answers; and scores those whose final answers have come.

Laws. It comes after windows have closed, so what a round can tell for good it does not tell early. A round run again
asks for the same and tells the same: what falls due depends on the clocks of this round and of the one before. Queries
that nobody prods pay nothing; of those that declare no prods, final answers are emitted before early ones are scored.
Early rows of a query that declares prods carry the point of the slide, the share of the rows to expect there, and of
each value the error to expect, as learned so far; final rows have NULL in these columns.

*Beside the round*: whoever asks from outside, in any thread, is answered from the snapshot that the last committed
round has left. It is replaced all at once, when a round has been committed or a query has come or gone, so an answer is
that of one round, the last that was committed when it was asked, and waits for none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.early.prodding import EarlyEvaluation, EarlyResults, PlanSnapshot, asked_query, needed_for
from eventide.engine.early.state import EarlyEmission, EarlyState, UnscoredAnswers, estimates_of
from eventide.engine.early.stream_prods import StreamProds, asked_for, widest
from eventide.engine.introspection.status import QueryStatus
from eventide.engine.operators.operator import Operator
from eventide.engine.relations.executor import Executor, Statement
from eventide.engine.round.advance import RunningOperators
from eventide.engine.round.reduce import Reduction
from eventide.engine.round.report import RoundInput
from eventide.engine.round.results import result_table, schema_of, shown_heartbeat
from eventide.errors import DeclarationError
from eventide.eventtime.early.prod import Prod
from eventide.eventtime.early.triggers import Every, Moment
from eventide.eventtime.instant import NEVER
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.query import COMPLETENESS, ERROR, POINT
from eventide.plan.declared.stream import TimeKind
from eventide.plan.declared.window import RowWindow
from eventide.results.error import Floats, estimated
from eventide.results.results import Kind, Results

if TYPE_CHECKING:
    from eventide.engine.round.engine import Engine

ASKED = Statement("SELECT emitted.* FROM emitted LEFT SEMI JOIN asked ON emitted.window_end = asked.__end")
ENDS = Statement("SELECT DISTINCT window_end FROM emitted")


@dataclass(frozen=True)
class EarlyOutcome:
    """What a round has after its prods: early rows by query, operators with bursts set aside, what was learned.

    `scored` are the answers from outside that this round has scored.
    """

    rows: dict[str, list[pa.Table]]
    operators: dict[str, Operator]
    states: dict[str, EarlyState]
    scored: list[EarlyEmission]


@dataclass
class EarlyStep:
    """Asks queries for early answers that are due, or that somebody wants, and scores earlier ones."""

    engine: Engine
    states: Mapping[str, EarlyState] = field(default_factory=dict)
    unscored: UnscoredAnswers = field(default_factory=UnscoredAnswers)
    snapshot: PlanSnapshot = field(init=False)
    """What those are answered from who ask beside the round."""

    def __post_init__(self) -> None:
        self._in_rows = StreamProds(self.engine)

    def begin(self) -> None:
        """Go on from the last record."""
        self._in_rows.begin()
        record = self.engine.state.record
        states = {name: state for name, state in self.states.items() if name in self.engine.bound}
        for name, bound in self.engine.bound.items():
            if bound.query.prods is not None and name not in states:
                state = self._started(name)
                saved = None if record is None else record.queries.get(name, {}).get("prods")
                states[name] = state if saved is None else state.restored(saved)
        self.states = states

    def publish(self) -> None:
        """Take a new snapshot, from which later questions are answered."""
        self.snapshot = PlanSnapshot.after(self.engine)

    def run(self, given: RoundInput, reductions: Mapping[str, Reduction], advanced: RunningOperators) -> EarlyOutcome:
        """For queries that declare prods: score what has become final, and ask for what has fallen due."""
        engine, unscored = self.engine, self.unscored.all()
        marked = self._in_rows.of(reductions, given.clock, given.ending)
        found = EarlyOutcome({}, dict(advanced.operators), {}, [])
        prodded: dict[str, int] = {}
        for one in unscored:
            prodded[one.query.name] = max(prodded.get(one.query.name, one.up_to), one.up_to)
        snapshot = self._within(given, advanced)
        for name, bound in self._declared().items():
            found.scored.extend(one for one in unscored if one.query.name == name)
            now = moment(snapshot, name, given.clock)
            state = self._learn(found, advanced, bound, now, unscored)
            fresh = any(
                one.cells.rows and stream in needed_for(engine.plan, name) for stream, one in reductions.items()
            )
            rows = advanced.ingestion.rows_in.get(name, 0)
            asked, early = self._ask(found, snapshot, name, state, now, marked.get(name), fresh, rows, given.ending)
            for up_to in asked:
                prodded[name] = max(prodded.get(name, up_to), up_to)
            found.rows[name], found.states[name] = early, state
        self._set_bursts_aside(found, advanced, prodded)
        return found

    def _within(self, given: RoundInput, advanced: RunningOperators) -> PlanSnapshot:
        heartbeats = {name: beats.combined for name, beats in advanced.ingestion.heartbeats.items()}
        return PlanSnapshot.within(self.engine, given.number, given.clock, heartbeats, advanced.operators)

    def _set_bursts_aside(self, found: EarlyOutcome, advanced: RunningOperators, prodded: Mapping[str, int]) -> None:
        """What waits below a query whose windows were prodded makes way for what comes after (`operators.queue`)."""
        plan = self.engine.plan
        for name, up_to in prodded.items():
            for below in needed_for(plan, name) & found.operators.keys():
                reached = min(advanced.frontiers[way.source].time for way in plan.ways_into(below))
                found.operators[below] = found.operators[below].set_aside(up_to, reached)

    def settled(self, found: EarlyOutcome, advanced: RunningOperators, given: RoundInput) -> dict[str, EarlyState]:
        """What queries know of their early answers, with those of the others: scored when finals have been emitted."""
        declared = self._declared()
        unscored = [one for one in self.unscored.all() if one.query.name not in declared]
        found.scored.extend(unscored)
        states = {**self.states, **found.states}
        names = [name for name in {*self.states, *(one.query.name for one in unscored)} if name not in declared]
        for name in names:
            bound = self.engine.bound.get(name)
            if bound is not None:
                now = moment(self._within(given, advanced), name, given.clock)
                states[name] = self._learn(found, advanced, bound, now, unscored)
        return states

    def _declared(self) -> dict[str, BoundQuery]:
        """The queries that declare prods."""
        return {name: bound for name, bound in self.engine.bound.items() if bound.query.prods is not None}

    def commit(self, found: EarlyOutcome, states: Mapping[str, EarlyState]) -> None:
        """Keep what the round has learned, as it was committed."""
        self.states = states
        self.unscored.forget(found.scored)

    def answer(self, name: str, prod: Prod) -> EarlyResults:
        """Answer a prod from outside, at once and in any thread; it is scored like any other."""
        snapshot, results = self._answered(name, prod)
        bound = snapshot.plan.queries.get(name)
        if bound is None:
            return results
        table, now = results.table(), moment(snapshot, name, snapshot.clock)
        if bound.query.prods is not None:
            state = snapshot.states[name]
            table = self._dressed(table, bound, state, _points(bound, state, table, now))
        self.unscored.add(EarlyEmission(bound.query, snapshot.number, table, now, prod.up_to))
        table_results = Results.of_table(name, results.round, table)
        return EarlyResults(
            table_results.query,
            table_results.round,
            table_results.rows,
            table_results.schema,
            table_results.batches,
            timing=results.timing,
        )

    def _answered(self, name: str, prod: Prod) -> tuple[PlanSnapshot, EarlyResults]:
        while True:
            snapshot = self.snapshot
            asked_query(snapshot.plan, name, prod)
            with self._apart(snapshot, needed_for(snapshot.plan, name)) as executor:
                # Files of the last round are there, and held from now on; those of one before may have gone already.
                if executor is self.engine.executor or self.snapshot is snapshot:
                    return snapshot, EarlyEvaluation(snapshot, executor).answer(name, prod)

    @contextmanager
    def _apart(self, snapshot: PlanSnapshot, names: frozenset[str]) -> Iterator[Executor]:
        """An executor for one question; that of the engine where all state is with the driver."""
        engine = self.engine
        files = snapshot.files(names)
        if not files:
            yield engine.executor
            return
        with engine.executor.files.apart(files) as apart:
            yield engine.executor.apart(apart)

    def with_early(self, queries: tuple[QueryStatus, ...]) -> tuple[QueryStatus, ...]:
        """The status of queries, with how their early answers have done, and where a point that finds itself is."""
        states = self.states
        return tuple(replace(one, early=states[one.name].as_data()) if one.name in states else one for one in queries)

    def is_due(self, clock: int) -> bool:
        """Whether a query that holds something is to be asked by now."""
        for name, state in self.states.items():
            operator = self.engine.state.operators[name]
            now = moment(self.snapshot, name, clock)
            if len(operator.holds) and self._due(state.copy(), now, operator.frontier.time):
                return True
        return False

    def _started(self, name: str) -> EarlyState:
        bound, needed = self.engine.bound[name], needed_for(self.engine.plan, name)
        queries = [self.engine.bound[other].query for other in needed if other in self.engine.bound]
        prods = bound.query.prods
        if prods is not None and prods.needs_slides and any(isinstance(q.window, RowWindow) for q in queries):
            raise DeclarationError(
                f"query {name!r}: below it, windows over a count of rows have no points in time: prod it EVERY so often"
            )
        kinds = {stream.time_kind for stream in self.engine.program.streams if stream.name in needed}
        return EarlyState.start(bound, by_progress=kinds == {TimeKind.SEQUENCE})

    def _learn(
        self,
        found: EarlyOutcome,
        advanced: RunningOperators,
        bound: BoundQuery,
        now: Moment,
        unscored: Iterable[EarlyEmission],
    ) -> EarlyState:
        """What a query knows of its early answers, with what was emitted since and what has become final."""
        name, last = bound.query.name, self.engine.state
        state = (self.states.get(name) or self._started(name)).copy()
        for one in unscored:
            if one.is_of(bound.query):
                early = one.still_open(last.operators[name], last.round)
                state.accuracy.emitted(early, _points(bound, state, early, one.when), one.when.clock)
        self._score(advanced, name, state, found.operators[name].frontier.time, now)
        return state

    def _due(self, state: EarlyState, now: Moment, closed: int) -> list[Prod]:
        """What has fallen due; the clock alone does not ask again for what nothing has been added to."""
        known = state.before
        prods = state.due(now, closed)
        if state.fresh:
            return prods
        every = [one for one in state.triggers if isinstance(one, Every)]
        by_clock = [state.restricted(prod) for one in every for prod in one.due(state.ends, known, now)]
        return [prod for prod in prods if prod not in by_clock]

    def _score(self, advanced: RunningOperators, name: str, state: EarlyState, closed: int, now: Moment) -> None:
        """Compare early rows with the final ones of their windows; no others come to the driver."""
        final, executor, waiting = advanced.outputs[name].final, self.engine.executor, state.accuracy.waiting
        rows, answered = None, set[int]()
        if final.parts and waiting is not None and waiting.num_rows:
            asked = pa.table({"__end": pc.unique(waiting.column("window_end").cast(pa.int64()))})
            rows = executor.table(ASKED, {"emitted": final, "asked": asked})
            heartbeat = shown_heartbeat(advanced.heartbeats[name])
            schema = schema_of(self.engine.plan, name)
            rows = result_table(name, Kind.FINAL, advanced.round, heartbeat, schema, rows)
        if final.parts and state.control is not None:
            answered.update(executor.table(ENDS, {"emitted": final}).column("window_end").to_pylist())
        state.learn(state.accuracy.settle(rows, closed, now.clock), closed, answered)

    def _ask(
        self,
        found: EarlyOutcome,
        snapshot: PlanSnapshot,
        name: str,
        state: EarlyState,
        now: Moment,
        marked: pa.Table | None,
        fresh: bool,
        rows: int,
        ending: bool,
    ) -> tuple[list[int], list[pa.Table]]:
        """Ask for what has fallen due, and for what the prods ask that `marked` with the rows of the round.

        `rows` have come into it. Gives the times up to which the query was asked, and the early rows.
        """
        bound, asked = self.engine.bound[name], []
        state.fresh = state.fresh or fresh
        by_rows, due = state.due_by_rows(rows), self._due(state, now, found.operators[name].frontier.time)
        # One for all windows asks for what the others would.
        prods = [] if ending else by_rows or due
        if prods and bound.query.prods is not None and bound.query.prods.discarding:
            # What is new is told of all windows, or it would be forgotten.
            prods = [Prod()]
            operator = found.operators[name]
            snapshot = replace(snapshot, operators={**snapshot.operators, name: operator.since_asked()})
            found.operators[name] = operator.asked()

        def answered(prod: Prod) -> pa.Table:
            asked.append(prod.up_to)
            with self._apart(snapshot, needed_for(snapshot.plan, name)) as executor:
                return EarlyEvaluation(snapshot, executor).answer(name, prod).table()

        answers = [answered(prod) for prod in prods]
        if marked is not None:
            table = answered(state.restricted(Prod(widest(marked))))
            by_time = bound.query.has_known_ends
            answers.append(table.filter(pa.array(asked_for(table, marked, by_time))))
        tables = []
        for table in answers:
            if table.num_rows:
                points = _points(bound, state, table, now)
                tables.append(self._dressed(table, bound, state, points))
                if bound.query.has_scored_prods:
                    state.accuracy.emitted(tables[-1], points, now.clock)
        state.fresh = state.fresh and not prods
        return asked, tables

    def _dressed(self, table: pa.Table, bound: BoundQuery, state: EarlyState, points: Floats) -> pa.Table:
        """Early rows with what is known of them."""
        different, place = np.unique(points, return_inverse=True)
        expected = [state.accuracy.expected(point) for point in different.tolist()]
        shares = np.array([np.nan if e.completeness is None else e.completeness for e in expected])[place]
        # Results of a query below are all there long before the rows that they are made of.
        below = needed_for(self.engine.plan, bound.query.name) & self.engine.bound.keys() - {bound.query.name}
        columns = {POINT: points, COMPLETENESS: np.full_like(shares, np.nan) if below else shares}
        for item in bound.query.select:
            known = [e.errors[item.name] for e in expected]
            columns[f"{item.name}{ERROR}"] = np.array([np.nan if e is None else e for e in known])[place]
        for name, values in columns.items():
            table = table.append_column(name, pa.array(values, from_pandas=True))
        return estimated(table, estimates_of(bound), shares)


def moment(snapshot: PlanSnapshot, name: str, clock: int) -> Moment:
    """The clock and the progress of the streams that a query reads in the end."""
    needed = needed_for(snapshot.plan, name)
    streams = [stream for other, stream in snapshot.streams.items() if other in needed]
    clocks = [stream.moment_of(clock) for stream in streams]
    return Moment(max(clocks, default=clock), max((stream.latest for stream in streams), default=NEVER))


def _points(bound: BoundQuery, state: EarlyState, table: pa.Table, now: Moment) -> Floats:
    """The point of the slide at which each row was emitted; 1 where windows have no points."""
    if not bound.query.has_known_ends:
        return np.ones(table.num_rows)
    ends = table.column("window_end").cast(pa.int64()).to_numpy()
    points: Floats = np.maximum(0.0, 1.0 - (ends - np.float64(state.hand(now))) / state.ends.slide)
    return points
