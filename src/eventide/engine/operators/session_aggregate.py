"""Aggregates over sessions: stretches come in, those that meet are one session, a session closes when nobody can join.

Laws. *Session*: rows of a group of which each comes at most its gap after the one before it (`plan.sql.sessions`);
which rounds they came in changes nothing. *Final*: a session that ends at e is emitted once, in the round whose
heartbeat reaches e (until then a row at e would still join it), or later where that would be too many results for one
round. *Late row*: a row is late when its session was answered: when the session that it makes with all that is open
ends by the heartbeat of the round before. A row that is far behind counts if an open session reaches it; what was
emitted and forgotten is not looked for, so a late row that joins an open session may make it overlap one that was
emitted before. *Revised*: with `retain`, a session is retained until time is `retain` beyond its end, and a late row
that meets it makes it longer: the longer session is emitted (revised, or final where it ends later than what was
answered), and each one that it takes the place of is revised to have no rows (`rows` 0, no values). *Promise*: later
results end after the last heartbeat. When a session began is not promised: a late row may come before its first.

*State*: the stretches of open sessions, and those of emitted ones that are retained. A round appends what it brings;
one that closes sessions writes the rest anew, one stretch for each session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.operators.frontier import OperatorFrontier, before, least_time
from eventide.engine.operators.open_windows import OpenSessions
from eventide.engine.operators.operator import Ingested, InputProgress, Late, Output
from eventide.engine.operators.slices import SliceAggregate, result_layout
from eventide.engine.operators.time_range import from_time, known_times
from eventide.engine.relations.executor import Executor, Inputs, Statement, StatementStep, one_row
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants
from eventide.plan.bound.query import BoundQuery
from eventide.plan.bound.rows import UNTIL, slice_columns
from eventide.plan.bound.session_gap import until
from eventide.plan.declared.stream import WINDOW_END
from eventide.plan.declared.window import SessionWindow
from eventide.plan.expressions.columns import Column
from eventide.plan.sql.merge import fail_safe_values
from eventide.plan.sql.sessions import (
    LIVE,
    RETAINED,
    compacted_text,
    cut_text,
    early_text,
    final_text,
    in_time_text,
    judged_text,
    keys_of,
    open_text,
    retained_text,
    revised_text,
    spans_text,
    withdrawn_text,
    within_late,
)


@dataclass(frozen=True)
class SessionAggregate(SliceAggregate):
    """The stretches of open sessions, those of `retained` ones, and the heartbeat that was passed."""

    retained: Segments
    passed: int = NEVER
    """Every session that ends by then has been emitted."""
    begins: int = NEVER
    changed: bool = False
    """Whether rows have come since it last advanced."""

    @classmethod
    def start(cls, query: BoundQuery, executor: Executor, begins: int = NEVER) -> Self:
        """A query that has seen nothing; sessions that began before `begins` are not for it."""
        return cls(query, executor, Segments(_layout(query)), Segments(_layout(query)), before(begins), begins)

    @property
    def state(self) -> Mapping[str, Segments]:
        """The stretches of sessions that are open, and of those that are retained."""
        return {"slices": self.slices, "retained": self.retained}

    def with_state(self, state: Mapping[str, Segments]) -> Self:
        """A copy whose stretches are elsewhere or in other files."""
        return replace(self, slices=state["slices"], retained=state["retained"])

    @property
    def holds(self) -> Instants:
        """The beginnings of open stretches."""
        return known_times(self.slices, "__pane")

    def layout(self, port: str) -> Layout:
        """The layout of the stretches."""
        return self.slices.layout

    def stamps(self, port: str, clock: int) -> Mapping[str, int]:
        """The clock, for rows without a time of their own, and how long their session goes on."""
        window = self.query.query.window
        assert isinstance(window, SessionWindow)
        return {"__pane": clock, UNTIL.name: until(window, self.query.stream.time_kind, clock), "__t": clock}

    # Rows come in

    def _gone(self, passed: int) -> int:
        """Sessions that end by then were emitted and are not retained: they take no rows, not even to revise."""
        return passed if passed in (NEVER, FOREVER) else passed - self.query.query.retain

    def ingest(self, port: str, rows: Relation, sources: pa.Table | None = None) -> tuple[SessionAggregate, Ingested]:
        """Add stretches; those of sessions that were answered are late."""
        rows = from_time(self.executor, rows, self.begins, "__pane")
        until = rows.least(UNTIL.name)
        if until is None:
            return self, Ingested(rows.weight)
        run = replace(self, slices=self.slices.add(rows), changed=True)
        if until > self.passed and not self.retained.parts:
            return run, Ingested(rows.weight)
        inputs = self._inputs(self._edge(self.passed), found=rows)
        judged = self.executor.table(Statement(judged_text(self.query)), inputs)
        is_late = pc.equal(judged.column("__late"), 1)
        late_sessions, revising = judged.filter(is_late), judged.filter(pc.invert(is_late))
        late = None
        if late_sessions.num_rows:
            tables = {"late_sessions": late_sessions}
            statement = Statement(in_time_text(self.query))
            accepted = self.executor.relation(statement, {"found": rows, **tables}, rows.layout)
            run = replace(run, slices=self.slices.add(accepted))
            join = f"JOIN late_sessions ON {within_late(self.query, 'timed', '__t')}"
            late = Late(_rows(late_sessions), "TRUE", join, tables, answered="late_sessions.__last")
        return run, Ingested(rows.weight, late, _rows(revising))

    # Sessions close

    def _inputs(self, edge: pa.Table, **more: Relation) -> Inputs:
        return {LIVE: self.slices, RETAINED: self.retained, "edge": edge, **more}

    def _edge(self, up_to: int, most: int | None = None) -> pa.Table:
        gone, done = self._gone(self.passed), self._gone(up_to)
        return one_row(before=self.passed, up_to=up_to, gone=gone, done=done, most=most)

    def _passed(self, inputs: Sequence[InputProgress]) -> int:
        """How far time has passed: what was set aside is open, and holds back all behind it."""
        heartbeat = least_time(one.frontier for one in inputs)
        holes = [hole.start - 1 for one in inputs for hole in one.frontier.holes]
        passed = min([heartbeat, *holes])
        return self.passed if passed <= -EDGE else max(self.passed, FOREVER if passed >= EDGE else passed)

    def _may_close(self, passed: int) -> bool:
        """Whether a session may end by then; what ends for a stretch alone may go on in others."""
        first = self.slices.least(UNTIL.name)
        return (first is not None and first <= passed) or (self.changed and bool(self.retained.parts))

    def would_emit(self, inputs: Sequence[InputProgress]) -> bool:
        """Whether inputs that have come so far would close a session, as far as summaries tell."""
        return self._may_close(self._passed(inputs))

    def advance(self, inputs: Sequence[InputProgress], limit: int | None = None) -> tuple[Self, Output]:
        """Emit the sessions that close, and again those that late rows have changed; then forget."""
        layout, passed = result_layout(self.query), self._passed(inputs)
        if not self._may_close(passed):
            retained = self.retained.since(UNTIL.name, self._gone(passed) + 1)
            run = replace(self, slices=self._compacted(), retained=retained, passed=passed, changed=False)
            return run, Output.of(layout)
        if limit is not None and passed != FOREVER and self.slices.rows > limit:
            passed = self._cut(passed, limit)
        found = self.executor.run(self._steps(), self._inputs(self._edge(passed))).relations
        output = Output(Segments(layout).add(found["final"]), Segments(layout))
        retained = Segments(self.retained.layout)
        if self.query.query.retain:
            output = replace(output, revised=output.revised.add(found["revised"], found["withdrawn"]))
            retained = retained.add(found["retained"])
        slices = Segments(self.slices.layout).add(found["open"])
        return replace(self, slices=slices, retained=retained, passed=passed, changed=False), output

    def _steps(self) -> list[StatementStep]:
        query, exact = self.query, self.query.driver_exact
        steps = [
            StatementStep("final", self._results(final_text), result_layout(query)),
            StatementStep("open", Statement(open_text(query), exact), self.slices.layout),
        ]
        if query.query.retain:
            steps += [
                StatementStep("revised", self._results(revised_text), result_layout(query)),
                StatementStep("withdrawn", Statement(withdrawn_text(query)), result_layout(query)),
                StatementStep("retained", Statement(retained_text(query), exact), self.retained.layout),
            ]
        return steps

    def _results(self, text: Callable[[BoundQuery], str]) -> Statement:
        """A statement of results, those of a session whose values fail without them."""
        query = self.query
        inner = tuple(Column(partial.name, partial.type) for partial in query.partials if partial.type)
        return Statement(
            text(query), query.driver_exact, IN_ORDER, fail_safe=lambda: text(fail_safe_values(query)), inner=inner
        )

    def _cut(self, passed: int, limit: int) -> int:
        """How far to go so that about `limit` sessions are emitted; the others wait for the next round."""
        table = self.executor.table(Statement(cut_text(self.query)), self._inputs(self._edge(passed, limit)))
        cut: int | None = table.column("cut")[0].as_py()
        return passed if cut is None else cut

    def _compacted(self) -> Segments:
        """The same stretches in fewer relations, where there are many."""
        merge = None
        if not self.query.keeps_rows:
            merge = Statement(compacted_text(self.query, "segments"), self.query.driver_exact)
        return self.slices.merged(lambda some: self.executor.merged(some, merge))

    @property
    def frontier(self) -> OperatorFrontier:
        """Later results end after the heartbeat that was passed."""
        return _frontier(self.passed)

    def frontier_at(self, inputs: Sequence[InputProgress]) -> OperatorFrontier:
        """Its frontier once its inputs have come so far."""
        return _frontier(self._passed(inputs))

    def early(self) -> EarlySessionAggregate:
        """A copy that answers a prod."""
        return EarlySessionAggregate(**vars(self))

    def open(self) -> OpenSessions:
        """The open sessions, for those who ask why."""

        def find() -> list[tuple[int, int]]:
            spans = self.executor.table(Statement(spans_text(keys_of(self.query), LIVE)), {LIVE: self.slices})
            return list(zip(*(spans.column(name).to_pylist() for name in ("__start", "__end")), strict=True))

        window = self.query.query.window
        assert isinstance(window, SessionWindow)
        return OpenSessions(self.name, self.query.window_kind, find, self.passed, window.noun)

    # What the round record keeps

    def snapshot(self) -> dict[str, Any]:
        """Plain data beside the stretches themselves."""
        return {"passed": self.passed, "begins": self.begins, "changed": self.changed}

    def restored(self, saved: Mapping[str, Any], state: Mapping[str, Segments]) -> Self:
        """The same, continued from what was saved."""
        return replace(
            self,
            slices=state["slices"],
            retained=state["retained"],
            passed=saved["passed"],
            begins=saved["begins"],
            changed=saved["changed"],
        )


@dataclass(frozen=True)
class EarlySessionAggregate(SessionAggregate):
    """A query over sessions that is asked early: it emits open sessions as they are."""

    def advance(self, inputs: Sequence[InputProgress], limit: int | None = None) -> tuple[Self, Output]:
        """Emit every session that has no final answer yet; stretches are left as they are."""
        passed, layout = self._passed(inputs), result_layout(self.query)
        found = self.executor.relation(self._results(early_text), self._inputs(self._edge(passed)), layout)
        return replace(self, passed=passed), Output.of(layout, found)


IN_ORDER = " ORDER BY window_end, window_start"


def _layout(query: BoundQuery) -> Layout:
    weight = None if query.keeps_rows else "__n"
    return Layout(slice_columns(query), bounded=("__pane", UNTIL.name), weight=weight)


def _rows(judged: pa.Table) -> int:
    return int(pc.sum(judged.column("__rows")).as_py() or 0)


def _frontier(passed: int) -> OperatorFrontier:
    if passed in (NEVER, FOREVER):
        return OperatorFrontier(passed)
    # A session ends one instant after its last one, and the next to come ends after the heartbeat.
    return OperatorFrontier(passed - 1, {WINDOW_END: passed + 1})
