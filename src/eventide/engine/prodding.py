"""The answer to a prod: what a query of any depth can say now.

Law: an early answer is the query over the rows that have arrived and were not late, for the windows that the prod asks
for and that have no final answer yet. It is computed on copies, so prods change no state: whatever is asked, final
answers are the same. (Prodding thesis, sections 3.1 and 3.3.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from eventide.engine.answers import nothing, result_schema, result_table
from eventide.engine.early_runs import prodded
from eventide.engine.work import Round
from eventide.errors import DeclarationError
from eventide.eventtime.instant import EDGE, NEVER, shift
from eventide.eventtime.prod import Prod, Timing
from eventide.eventtime.window_ends import WindowEnds
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


@dataclass
class Prodding:
    """Answers prods; remembers those answered since the last round, to know the ones that are repeated."""

    engine: Engine
    since: dict[str, list[Prod]] = field(default_factory=dict)

    def answer(self, query: str, prod: Prod) -> EarlyResults:
        """The early results of a query, marked `early`."""
        bound = self.engine.bound.get(query)
        if bound is None:
            self.engine.program.query(query)
            raise DeclarationError(f"query {query!r} has no windows, so it has no early answers: its rows come at once")
        _check_groups(bound, prod.groups)
        table, heartbeat = self._swept(query, prod)
        lasts = table.column("window_end").to_numpy() - 1
        table = filtered(table.filter(pa.array(_asked(bound, prod, lasts))), prod.groups)
        timing = self._timing(bound, prod, table.column("window_end").to_numpy() - 1)
        self.since.setdefault(query, []).append(prod)
        shown = None if abs(heartbeat) >= EDGE else heartbeat
        early = result_table(query, Kind.EARLY, self.engine.committed.round, shown, result_schema(bound), table)
        plain = Results.of_table(query, self.engine.committed.round, early)
        return EarlyResults(plain.query, plain.round, plain.rows, plain.schema, plain.batches, timing)

    def _timing(self, bound: Bound, prod: Prod, held: Any) -> Timing:
        """By the windows that hold a row of the groups that are asked for."""
        name = bound.query.name
        over_rows = isinstance(bound.query.window, RowWindow)
        # The numbers of rows, by which such windows close, are no times.
        closed = NEVER if over_rows else self.engine.committed.runs[name].promised()
        # The last window that it can ask for may end before its time.
        if not over_rows and ends_of(bound).at_or_before(shift(prod.up_to, 1)) <= shift(closed, 1):
            return Timing.TOO_LATE
        asked = Prod(groups=prod.groups) if over_rows else prod
        return asked.timing(closed, np.asarray(held, dtype=np.int64), self.since.get(name, ()))

    def _swept(self, query: str, prod: Prod) -> tuple[pa.Table, int]:
        """What the query would tell if time had come to the prod's; and the heartbeat that it has really come to."""
        engine = self.engine
        needed = {*below(engine, query), query}
        runs = {name: prodded(run) for name, run in engine.committed.runs.items() if name in needed}
        # Above the last level nobody reads: what comes there is thrown away with the copies.
        runs = {**engine.committed.runs, **runs}
        work = Round(engine.next_round, None, engine.committed.clock, {}, {}, {}, False, runs)
        for step in engine.program.in_order:
            if step.name not in needed:
                continue
            source = work.runs.get(step.stream)
            if source is None:
                true, latest = engine.streams[step.stream].heartbeat, engine.streams[step.stream].latest
                heartbeat = max(true, prod.up_to)
            else:
                true, heartbeat, latest = engine.committed.runs[step.stream].promised(), source.promised(), NEVER
            work.runs[step.name], answers = work.runs[step.name].advance(heartbeat, None, latest)
            if step.name == query:
                parts = list(answers.final.parts()) if answers.final.rows else []
                return pa.concat_tables(parts) if parts else nothing(engine.bound[query]), true
            engine.levels[step.name].bring(work, answers.final)
        raise AssertionError(f"query {query!r} is not in its own program")


def ends_of(bound: Bound) -> WindowEnds:
    """Where the windows of a query end."""
    return WindowEnds(bound.panes.slide, bound.panes.offset + bound.panes.range)


def below(engine: Engine, query: str) -> Iterable[str]:
    """The queries that a query reads, directly or not."""
    found = engine.program.below(engine.program.query(query))
    while found is not None:
        yield found.name
        found = engine.program.below(found)


def _asked(bound: Bound, prod: Prod, lasts: Any) -> Any:
    """Which windows are asked for; those over counts of rows all are."""
    return np.ones(len(lasts), dtype=bool) if isinstance(bound.query.window, RowWindow) else prod.asks_for(lasts)


def _check_groups(bound: Bound, groups: Mapping[str, Any]) -> None:
    names = [group.name for group in bound.query.groups]
    for name in groups:
        if name not in names:
            known = f"it has {', '.join(names)}" if names else "it has none"
            raise DeclarationError(f"query {bound.query.name!r} has no group {name!r} to prod: {known}")
