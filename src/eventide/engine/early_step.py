"""The step of a round that asks for early answers; and scores those whose final answers have come.

Laws. It comes after windows have closed, so what a round can tell for good it does not tell early. A round run again
asks for the same and tells the same: what falls due depends on the clocks of this round and of the one before. Queries
that nobody prods pay nothing; of those that declare no prods, final answers are told before early ones are scored.
Early rows of a query that declares prods carry the point of the slide, the share of the rows to expect there, and of
each value the error to expect, as learned so far; final rows have NULL in these columns.

*Beside the round*: whoever asks from outside, in any thread, is answered from the standing that the last committed
round has left. It is replaced all at once, when a round has been committed or a query has come or gone, so an answer is
that of one round, the last that was committed when it was asked, and waits for none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.early_cluster import reading
from eventide.engine.early_state import EarlyState, estimates_of
from eventide.engine.early_told import EarlyTold, ToldAnswers
from eventide.engine.prodding import EarlyResults, Prodding, asked_query, needed_for
from eventide.engine.standing import Standing
from eventide.engine.status import QueryStatus
from eventide.engine.stream_prods import StreamProds, asked_for, widest
from eventide.engine.work import Round
from eventide.errors import DeclarationError
from eventide.eventtime.instant import NEVER
from eventide.eventtime.prod import Prod
from eventide.eventtime.prodder import Every, Moment
from eventide.plan.bound import Bound
from eventide.plan.prods import COMPLETENESS, ERROR, POINT, added_columns
from eventide.plan.stream import TimeKind
from eventide.plan.window import RowWindow
from eventide.results.error import Floats
from eventide.results.estimate import estimated
from eventide.results.results import Kind, Results

if TYPE_CHECKING:
    from eventide.engine.rounds import Engine


@dataclass
class EarlyStep:
    """Asks the queries of an engine."""

    engine: Engine
    states: Mapping[str, EarlyState] = field(default_factory=dict)
    told: ToldAnswers = field(default_factory=ToldAnswers)
    standing: Standing = field(init=False)
    """What those are answered from who ask beside the round."""
    _scored: list[EarlyTold] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._in_rows = StreamProds(self.engine)

    def begin(self) -> None:
        """Go on from the last record."""
        self._in_rows.begin()
        record = self.engine.committed.record
        states = {name: state for name, state in self.states.items() if name in self.engine.bound}
        for name, bound in self.engine.bound.items():
            if bound.query.prods is not None and name not in states:
                state = self._started(name)
                saved = None if record is None else record.queries.get(name, {}).get("prods")
                states[name] = state if saved is None else state.restored(saved)
        self.states = states

    def publish(self) -> None:
        """From now on answers are those of the plan as it stands."""
        self.standing = Standing.after(self.engine)

    def run(self, work: Round) -> None:
        """For queries that declare prods: score what has become final, and ask for what has fallen due."""
        self._scored = []
        told, came = self.told.all(), self._in_rows.of(work)
        for one in told:
            work.prod(one.query.name, one.up_to)
        declared = self._declared()
        if not declared:
            return
        standing = Standing.within(self.engine, work)
        for name, bound in declared.items():
            self._scored += [one for one in told if one.query.name == name]
            now = moment(standing, name, work.clock)
            state = self._learn(work, bound, now, told)
            self._ask(work, standing, name, state, now, came.get(name))
            _keep(work, name, state)

    def settle(self, work: Round) -> None:
        """For the others: score what has become final, when it has been told."""
        declared = self._declared()
        told = [one for one in self.told.all() if one.query.name not in declared]
        self._scored += told
        for name in self.states.keys() | {one.query.name for one in told}:
            bound = self.engine.bound.get(name)
            if bound is not None and name not in declared:
                now = moment(Standing.within(self.engine, work), name, work.clock)
                _keep(work, name, self._learn(work, bound, now, told))

    def _declared(self) -> dict[str, Bound]:
        """The queries that declare prods."""
        return {name: bound for name, bound in self.engine.bound.items() if bound.query.prods is not None}

    def commit(self, work: Round) -> None:
        """The round has happened."""
        self.states = {**self.states, **work.early}
        self.told.forget(self._scored)
        self.publish()

    def answer(self, name: str, prod: Prod) -> EarlyResults:
        """Answer a prod from outside, at once and in any thread; it is scored like any other."""
        standing, results = self._answered(name, prod)
        bound = standing.plan.queries.get(name)
        if bound is None:
            return results
        table, now = results.table(), moment(standing, name, standing.clock)
        if bound.query.prods is not None:
            state = standing.states[name]
            table = self._dressed(table, bound, state, _points(bound, state, table, now))
        self.told.add(EarlyTold(bound.query, standing.number, table, now, prod.up_to))
        plain = Results.of_table(name, results.round, table)
        return EarlyResults(plain.query, plain.round, plain.rows, plain.schema, plain.batches, results.timing)

    def _answered(self, name: str, prod: Prod) -> tuple[Standing, EarlyResults]:
        while True:
            standing = self.standing
            asked_query(standing.plan, name, prod)
            needed = needed_for(standing.plan, name)
            runs = (run for other, run in standing.runs.items() if other in needed)
            with reading(self.engine.cluster, runs) as cluster:
                # Files of the last round are there, and held from now on; those of one before may have gone already.
                if cluster is None or self.standing is standing:
                    return standing, Prodding(standing, cluster).answer(name, prod)

    def told_of(self, queries: tuple[QueryStatus, ...]) -> tuple[QueryStatus, ...]:
        """The status of queries, with how their early answers have done, and where a point that finds itself is."""
        states = self.states
        return tuple(replace(one, early=states[one.name].told()) if one.name in states else one for one in queries)

    def is_due(self, clock: int) -> bool:
        """Whether a query that holds something is to be asked by now."""
        for name, state in self.states.items():
            run = self.engine.committed.runs[name]
            if len(run.holds) and self._due(state.copy(), moment(self.standing, name, clock), run.promised()):
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

    def _learn(self, work: Round, bound: Bound, now: Moment, told: Iterable[EarlyTold]) -> EarlyState:
        """What a query knows of its early answers, with what was told since and what has become final."""
        name, last = bound.query.name, self.engine.committed
        state = (self.states.get(name) or self._started(name)).copy()
        for one in told:
            if one.is_of(bound.query):
                early = one.still_open(last.runs[name], last.round)
                state.accuracy.told(early, _points(bound, state, early, one.when), one.when.clock)
        self._score(work, name, state, now)
        return state

    def _due(self, state: EarlyState, now: Moment, closed: int) -> list[Prod]:
        """What has fallen due; the clock alone does not ask again for what nothing has been added to."""
        known = state.before
        prods = state.due(now, closed)
        if state.fresh:
            return prods
        by_clock = [p for one in state.prodders if isinstance(one, Every) for p in one.due(state.ends, known, now)]
        return [prod for prod in prods if prod not in by_clock]

    def _score(self, work: Round, name: str, state: EarlyState, now: Moment) -> None:
        accuracy = state.accuracy
        if (accuracy.waiting is None or accuracy.waiting.num_rows == 0) and state.control is None:
            return
        final = work.results[name].table()
        final = final.filter(pc.equal(final.column("kind"), Kind.FINAL.value))
        closed = work.runs[name].promised()
        scored = accuracy.settle(final, closed, now.clock)
        state.learn(scored, closed, set(final.column("window_end").cast(pa.int64()).to_pylist()))

    def _ask(
        self, work: Round, standing: Standing, name: str, state: EarlyState, now: Moment, came: pa.Table | None
    ) -> None:
        """Ask for what has fallen due, and for what the prods ask that `came` with the rows of the round."""
        bound = self.engine.bound[name]
        needed = needed_for(self.engine.plan, name)
        state.fresh = state.fresh or any(one.rows and stream in needed for stream, one in work.reductions.items())
        prods = [] if work.ending else self._due(state, now, work.runs[name].promised())
        runs = [run for other, run in work.runs.items() if other in needed]

        def answered(prod: Prod) -> pa.Table:
            work.prod(name, prod.up_to)
            with reading(self.engine.cluster, runs) as cluster:
                return Prodding(standing, cluster).answer(name, prod).table()

        answers = [answered(prod) for prod in prods]
        if came is not None:
            table = answered(Prod(widest(came)))
            by_time = not isinstance(bound.query.window, RowWindow)
            answers.append(table.filter(pa.array(asked_for(table, came, by_time))))
        tables = []
        for table in answers:
            if table.num_rows:
                points = _points(bound, state, table, now)
                tables.append(self._dressed(table, bound, state, points))
                state.accuracy.told(tables[-1], points, now.clock)
        state.fresh = state.fresh and not prods
        work.results[name] = with_early(work.results[name], schema_with_early(work.results[name].schema, bound), tables)

    def _dressed(self, table: pa.Table, bound: Bound, state: EarlyState, points: Floats) -> pa.Table:
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


def moment(standing: Standing, name: str, clock: int) -> Moment:
    """The clock and the progress of the streams that a query reads in the end."""
    needed = needed_for(standing.plan, name)
    streams = [stream for other, stream in standing.streams.items() if other in needed]
    clocks = [stream.moment_of(clock) for stream in streams]
    return Moment(max(clocks, default=clock), max((stream.latest for stream in streams), default=NEVER))


def _points(bound: Bound, state: EarlyState, table: pa.Table, now: Moment) -> Floats:
    """The point of the slide at which each row was told; 1 where windows have no points."""
    if isinstance(bound.query.window, RowWindow):
        return np.ones(table.num_rows)
    ends = table.column("window_end").cast(pa.int64()).to_numpy()
    points: Floats = np.maximum(0.0, 1.0 - (ends - np.float64(state.hand(now))) / state.ends.slide)
    return points


def _keep(work: Round, name: str, state: EarlyState) -> None:
    """Let a round commit what is known."""
    work.early[name] = state
    work.saved[name] = {**work.saved.get(name, {}), "prods": state.saved()}


def schema_with_early(schema: pa.Schema, bound: Bound) -> pa.Schema:
    """The columns of the results of a query that declares prods."""
    added = added_columns(tuple(item.name for item in bound.query.select), estimates_of(bound))
    return pa.schema([*schema, *((name, pa.float64()) for name in added)])


def with_early(results: Results, schema: pa.Schema, early: list[pa.Table]) -> Results:
    """The results of a round, and early ones after them."""

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in results.batches():
            missing = [pa.nulls(batch.num_rows, field.type) for field in list(schema)[len(batch.schema) :]]
            yield pa.RecordBatch.from_arrays([*batch.columns, *missing], schema=schema)
        for table in early:
            yield from table.select(schema.names).cast(schema).to_batches()

    rows = results.rows + sum(table.num_rows for table in early)
    return Results(results.query, results.round, rows, schema, batches)
