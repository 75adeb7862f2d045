"""The steps of a round, in their order; each takes what it needs and gives what it made.

Law: nothing of a round has happened before its last step. What fails on the way leaves no trace but files that nobody
names, and what sinks were shown, which they forget.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from eventide.engine.checkpoint.written_results import noted
from eventide.engine.early.state import estimates_of
from eventide.engine.early.step import EarlyOutcome
from eventide.engine.operators.operator import Work
from eventide.engine.relations.relation import Relation
from eventide.engine.round.advance import RunningOperators
from eventide.engine.round.heartbeats import HeartbeatStep, Ingestion
from eventide.engine.round.reduce import Reduction
from eventide.engine.round.report import RoundInput, RoundReport, RoundTimes, Stretch
from eventide.engine.round.results import results_of, schema_of
from eventide.engine.round.side_tables import LATE, REJECTS, late_by_source, reasons_of
from eventide.plan.declared.query import added_columns
from eventide.plan.declared.stream import Stream
from eventide.results.results import Results

if TYPE_CHECKING:
    from eventide.engine.round.engine import Engine

FEW_ROWS = 50_000
"""After a round of fewer rows, the next one is read as one partition: a shuffle would cost more than it shares out."""


@dataclass(frozen=True)
class RoundSteps:
    """Runs the six steps of one round of an engine."""

    engine: Engine

    def run(self, given: RoundInput) -> RoundReport:
        """The steps of a round, in their order."""
        engine = self.engine
        began, origin = time.time(), time.perf_counter()
        worked: dict[str, Stretch] = {}

        @contextmanager
        def step(name: str) -> Iterator[None]:
            started = time.perf_counter()
            yield
            worked[name] = started, time.perf_counter()
            engine.observer(given.number, name)

        engine.executor.files.begin(given.number)
        with step("reduce"):
            reductions, reading = self._reduce(given)
        with step("heartbeats"):
            ingestion = self._heartbeats(given, reductions)
        with step("advance"):
            advanced = engine.scheduler.run(
                given.number, given.clock, ingestion, engine.feeds, engine.streams, engine.executor
            )
        with step("prod"):
            early = engine.early.run(given, reductions, advanced)
        rejected = self._rejected(reductions, advanced)
        with step("emit"):
            results = {name: self._results(advanced, name, early.rows.get(name, ())) for name in advanced.outputs}
            sinks = self._emit(given, results, ingestion.late, rejected)
            # Rows on the cluster may go with the commit.
            reasons = reasons_of(engine.executor, rejected.values())
        with step("commit"):
            self._commit(given, advanced, early, results)
        engine.seconds = seconds = {name: end - start for name, (start, end) in worked.items()}
        rows = sum(reductions[one.name].cells.rows for one in engine.program.inputs if one.name in reductions)
        if reductions:
            engine.last_rows = rows
        for name in given.budgets:
            engine.pace.learn(name, *advanced.passed.get(name, (0, 0.0)))
        work = self._work(reductions, reading, advanced)
        engine.work = {
            **engine.work,
            **{name: engine.work.get(name, Work()).and_then(one) for name, one in work.items()},
        }
        return RoundReport(
            given.number,
            given.clock,
            {name: beats.combined for name, beats in ingestion.heartbeats.items()},
            results,
            ingestion.rows_in,
            {name: sum(part.rows for part in parts) for name, parts in ingestion.late.items()},
            reasons,
            seconds,
            rows,
            given.ending,
            work,
            sinks,
            {name: one for name in reductions if (one := engine.streams[name].arrivals) is not None},
            late_by_source(ingestion.late),
            RoundTimes(began, _since(origin, worked), _since(origin, {**reading, **advanced.turns})),
            {name: beats.by_source for name, beats in ingestion.heartbeats.items()},
        )

    def _reduce(self, given: RoundInput) -> tuple[dict[str, Reduction], dict[str, Stretch]]:
        """What was read of each stream, and from when to when."""
        engine = self.engine
        engine.backend.bring(given.rows, few=engine.last_rows < FEW_ROWS)
        groups = [group for group in engine.program.reduced_together if group[0].rows_of in given.rows]

        reading: dict[str, Stretch] = {}

        def reduced(group: tuple[Stream, ...]) -> Reduction:
            started, name = time.perf_counter(), group[0].name
            operators = {way.name: engine.state.operators[way.step] for way in engine.plan.ways_from_all(group)}
            reduction = engine.reduce_step.run(
                engine.reducers[name], operators, engine.streams[name], given.clock, given.number
            )
            reading[name] = started, time.perf_counter()
            return reduction

        found: dict[str, Reduction] = {}
        for group, one in zip(groups, engine.backend.together([partial(reduced, g) for g in groups]), strict=True):
            found[group[0].name] = one
            for twin in group[1:]:
                found[twin.name], reading[twin.name] = replace(one, rejected=()), reading[group[0].name]
        return found, reading

    def _heartbeats(self, given: RoundInput, reductions: Mapping[str, Reduction]) -> Ingestion:
        engine = self.engine
        operators = {
            name: operator.begin(given.clock, given.budgets.get(name, 0))
            for name, operator in engine.state.operators.items()
        }
        polling, last = engine.scheduling.timestamps, engine.state.clock
        step = HeartbeatStep(engine.plan, engine.streams, engine.executor, engine.state.reached, polling, last)
        return step.run(given, reductions, operators)

    @staticmethod
    def _work(
        reductions: Mapping[str, Reduction], reading: Mapping[str, Stretch], advanced: RunningOperators
    ) -> dict[str, Work]:
        """What was done for each stream and operator; out of a stream come the rows that its readers want."""
        rows_in, wanted = advanced.ingestion.rows_in, advanced.ingestion.wanted
        found = {
            name: Work(one.cells.rows, wanted.get(name, 0), reading[name][1] - reading[name][0])
            for name, one in reductions.items()
        }
        for name, seconds in advanced.seconds.items():
            found[name] = Work(rows_in.get(name, 0), advanced.outputs[name].final.rows, seconds)
        return found

    @staticmethod
    def _rejected(reductions: Mapping[str, Reduction], advanced: RunningOperators) -> dict[str, list[Relation]]:
        """The rows that no query could take, by stream or operator."""
        found = {name: list(one.rejected) for name, one in reductions.items()}
        for name, parts in advanced.rejected.items():
            found.setdefault(name, []).extend(parts)
        return {name: parts for name, parts in found.items() if parts}

    def _results(self, advanced: RunningOperators, name: str, early: Sequence[pa.Table]) -> Results:
        """What a query emits in a round, and early rows after it; one that declares prods has columns for these."""
        engine, bound = self.engine, self.engine.bound.get(name)
        schema = schema_of(engine.plan, name)
        if bound is not None and bound.query.prods is not None:
            added = added_columns(tuple(item.name for item in bound.query.select), estimates_of(bound))
            schema = pa.schema([*schema, *((column, pa.float64()) for column in added)])
        shown = [table.select(schema.names).cast(schema) for table in early]
        heartbeat, output = advanced.heartbeats[name], advanced.outputs[name]
        key = () if bound is None else bound.result_key
        return results_of(engine.executor, name, schema, advanced.round, heartbeat, output, shown, key)

    def _emit(
        self,
        given: RoundInput,
        results: Mapping[str, Results],
        late: Mapping[str, list[Relation]],
        rejected: Mapping[str, list[Relation]],
    ) -> dict[str, float]:
        """Show results and write side tables; the seconds of each sink."""
        engine = self.engine
        seconds: dict[str, float] = {}
        for name, shown in results.items():
            for look in engine.on_results:
                look(shown)
            if name in engine.sinks:
                started = time.perf_counter()
                engine.sinks[name].emit(shown)
                seconds[name] = time.perf_counter() - started
        for kind, tables in ((LATE, late), (REJECTS, rejected)):
            for name, parts in tables.items():
                engine.side_tables.write(kind, name, given.number, parts)
        return seconds

    def _commit(
        self, given: RoundInput, advanced: RunningOperators, early: EarlyOutcome, emitted: Mapping[str, Results]
    ) -> None:
        engine = self.engine
        placed = engine.on_cluster()
        states = engine.early.settled(early, advanced, given)
        saved = {
            name: engine.scheduler.saved(name) | ({"prods": states[name].saved()} if name in states else {})
            for name in advanced.operators
        }
        heartbeats = {name: beats.combined for name, beats in advanced.ingestion.heartbeats.items()}
        gave = {name for name, results in emitted.items() if results.rows}
        outputs = noted(engine.state.outputs, engine.directories, gave, given.number)
        engine.state.commit(engine.program, given, heartbeats, early.operators, saved, outputs)
        engine.early.commit(early, states)
        if engine.on_cluster() != placed:
            engine.write_statements()


def _since(origin: float, worked: Mapping[str, Stretch]) -> dict[str, Stretch]:
    """Readings of the processor's clock as seconds after one of them."""
    return {name: (start - origin, end - origin) for name, (start, end) in worked.items()}
