"""Window functions over rows: each row waits for its place in the order, and meets the earlier ones of its group.

Laws. *Emitted*: a row is emitted when the heartbeat has passed it (a group of simultaneous rows, or of a stretch of
time, when it has passed all of that), and the rows after it that its frames look at. *Late*: a row that the heartbeat
has passed already, in a round before. *Kept*: of rows that were emitted, what later frames can reach, and at most as
much again: what is out of reach goes together, when there is twice as much as after the last time. *Frontier*: no later
row is emitted at or before it; while rows wait for later ones of their groups it stays before the first of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, cast

import pyarrow as pa

from eventide.engine.operators.frontier import OperatorFrontier, after, least_time
from eventide.engine.operators.merge import START, Merge
from eventide.engine.operators.operator import Ingested, InputProgress, Late, Output, output_layout
from eventide.engine.operators.time_range import from_time, known_times, least_since
from eventide.engine.relations.executor import Executor, Inputs, Statement, StatementStep, one_row
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants, shift
from eventide.plan.bound.over import BoundOver
from eventide.plan.bound.rows import SPAN_START, BoundRows
from eventide.plan.expressions.columns import Column, quoted
from eventide.plan.sql.over import (
    EMITTABLE,
    computed_columns,
    computed_text,
    held_text,
    inner_columns,
    output_text,
    past_columns,
    past_text,
    pruned_text,
    whole_text,
)

EMITTED = f"computed WHERE {EMITTABLE} = 1"
FEW = 1000
"""So many rows are kept beyond those that are needed, rather than to look at all of them."""


@dataclass(frozen=True)
class OverOperator(Merge):
    """Rows that the heartbeat has not passed (`waiting`), those that wait for later ones, and those that are kept.

    After the last time that rows out of reach were let go, `settled` were kept.
    """

    held: Segments
    past: Segments
    passed: int = NEVER
    """The heartbeat that has let rows go, or stretches of time."""
    settled: int = 0

    @classmethod
    def start(cls, bound: BoundRows, executor: Executor, begins: int = NEVER) -> Self:
        """Window functions that have seen nothing; rows before `begins` are not for them."""
        assert isinstance(bound, BoundOver)
        carried = tuple(name for name in bound.carried if name not in bound.made_of_time)
        layout = Layout((Column("__t", "BIGINT"), Column(START, "BIGINT"), *bound.stored), ("__t", *carried))
        past = Layout(past_columns(bound), ("__t",))
        return cls(bound, executor, Segments(layout), Segments(layout), Segments(past), begins=begins)

    @property
    def over(self) -> BoundOver:
        """What it computes."""
        return cast(BoundOver, self.bound)

    @property
    def holds(self) -> Instants:
        """The times of rows that are not emitted yet."""
        return known_times(self.waiting.add(*self.held.parts))

    @property
    def state(self) -> Mapping[str, Segments]:
        """The rows that wait for the heartbeat, those that wait for later rows, and those that are kept."""
        return {"waiting": self.waiting, "held": self.held, "past": self.past}

    def with_state(self, state: Mapping[str, Segments]) -> Self:
        """A copy whose rows are elsewhere or in other files."""
        return replace(self, waiting=state["waiting"], held=state["held"], past=state["past"])

    def renames(self, port: str) -> Mapping[str, str]:
        """What is kept of a row is called otherwise in the rows of a port."""
        names = zip(self.over.stored, self.over.names_in_port, strict=True)
        return {START: SPAN_START, **{column.name: name for column, name in names}}

    def ingest(self, port: str, rows: Relation, sources: pa.Table | None = None) -> tuple[Self, Ingested]:
        """Add rows that came into a port; those that the heartbeat has passed are late."""
        first = after(self.passed)
        accepted = from_time(self.executor, rows, first)
        late = Late.before(rows.rows - accepted.rows, "__t", first) if accepted.rows < rows.rows else None
        return replace(self, arrived=(*self.arrived, accepted)), Ingested(rows.rows, late)

    def would_emit(self, inputs: Sequence[InputProgress]) -> bool:
        """Whether inputs that have come so far would let a row go, or take the place of one that waits for others."""
        time = self._passed_at(inputs)
        first = least_since(self.waiting, "__t", after(self.passed))
        if first is not None and first <= time:
            return True
        waits = self.held.least("__t")
        reach = self.over.reach
        if waits is None or time <= self.passed:
            return False
        return time == FOREVER or (not reach.ahead_rows and shift(waits, reach.ahead_time) <= time)

    def advance(self, inputs: Sequence[InputProgress], limit: int | None = None) -> tuple[Self, Output]:
        """Emit the rows that time has passed, with all that their frames look at."""
        time = self._passed_at(inputs)
        every = self.waiting.add(*self.arrived)
        run = replace(self, waiting=every, arrived=())
        first = after(self.passed)
        ready = every.within("__t", first, time) if first <= time != NEVER else Segments(every.layout)
        output = Output.of(output_layout(self.bound.outputs))
        if ready.parts or self.held.parts:
            run, output = run._whole(ready, first, time) if self.over.whole else run._framed(ready, first, time)
        run = replace(run, passed=time, waiting=every.trimmed("__t", after(time)).merged(self.executor.merged))
        return replace(run, frontier=run._frontier_of(inputs)), output

    def frontier_at(self, inputs: Sequence[InputProgress]) -> OperatorFrontier:
        """Its frontier once its inputs have come so far, which lets no row go."""
        return replace(self, passed=self._passed_at(inputs))._frontier_of(inputs)

    def _passed_at(self, inputs: Sequence[InputProgress]) -> int:
        """Up to when rows may go: where groups lie in stretches of time, the end of the last one that is over."""
        time = max(self.passed, least_time(one.frontier for one in inputs))
        if self.over.whole is None or abs(time) >= EDGE:
            return time
        width, offset = self.over.whole.width, self.over.whole.offset
        return max(self.passed, (time + 1 - offset) // width * width + offset - 1)

    def _frontier_of(self, inputs: Sequence[InputProgress]) -> OperatorFrontier:
        waits = self.held.least("__t")
        time = self.passed if waits is None else min(self.passed, waits - 1)
        return self._frontier(max(self.frontier.time, time), inputs, self.waiting.add(*self.held.parts))

    @property
    def _portable(self) -> bool:
        return self.over.portable and all(port.driver_exact for port in self.bound.ports)

    def _statement(self, text: str) -> Statement:
        return Statement(text, self._portable, inner=inner_columns(self.over))

    def _shown(self, text: str) -> Statement:
        """Rows as output, in the order of time and values where that is asked for."""
        if not self.bound.rows.ordered:
            return self._statement(text)
        order = ", ".join(["window_end", *(quoted(column.name) for column in self.bound.outputs), "window_start"])
        return replace(self._statement(text), order=f" ORDER BY {order}", ordered=True)

    def _whole(self, ready: Segments, first: int, last: int) -> tuple[Self, Output]:
        layout = output_layout(self.bound.outputs)
        inputs: Inputs = {"ready": ready, "span": one_row(first=first, last=last)}
        return self, Output.of(layout, self.executor.relation(self._shown(whole_text(self.over)), inputs, layout))

    def _framed(self, ready: Segments, first: int, last: int) -> tuple[Self, Output]:
        """Rows that are ready beside those that are kept; what frames look at after them may make them wait."""
        over, layout = self.over, output_layout(self.bound.outputs)
        known = shift(last, -over.reach.ahead_time)
        # Rows that wait for others of their group may be as old as the group.
        since = NEVER if over.reach.ahead_rows else shift(after(known), -over.reach.time)
        is_over = int(last == FOREVER)
        span = one_row(first=first, last=last, known=known, since=since, over=is_over)
        inputs: Inputs = {"new": ready, "held": self.held, "past": self.past, "span": span}
        steps = [
            StatementStep("computed", self._statement(computed_text(over)), Layout(computed_columns(over))),
            StatementStep("output", self._shown(output_text(over, EMITTED)), layout, ("computed",)),
        ]
        if over.reach.waits:
            steps.append(StatementStep("held", self._statement(held_text(over)), self.held.layout, ("computed",)))
        if over.reach.keeps and not is_over:
            steps.append(StatementStep("kept", self._statement(past_text(over)), self.past.layout, ("computed",)))
        found = self.executor.run(steps, inputs).relations
        held = Segments(self.held.layout).add(*([found["held"]] if "held" in found else []))
        past = self.past.add(found["kept"]) if "kept" in found else Segments(self.past.layout)
        run = replace(self, held=held, past=past)
        return run._pruned(last), Output.of(layout, found["output"])

    def _pruned(self, last: int) -> Self:
        """Without the rows that no later frame reaches, once they may be as many as those that are needed."""
        reach, waits = self.over.reach, self.held.least("__t")
        since = shift(after(shift(last, -reach.ahead_time)) if waits is None else waits, -reach.time)
        if not reach.rows:
            past = self.past.trimmed("__t", since).merged(self.executor.merged)
            return replace(self, past=past)
        if self.past.rows <= 2 * self.settled + FEW:
            return replace(self, past=self.past.merged(self.executor.merged))
        inputs: Inputs = {"past": self.past, "span": one_row(since=since)}
        needed = self.executor.relation(self._statement(pruned_text(self.over)), inputs, self.past.layout)
        return replace(self, past=Segments(self.past.layout).add(needed), settled=needed.rows)

    def snapshot(self) -> dict[str, Any]:
        """Plain data beside the rows."""
        return {**super().snapshot(), "passed": self.passed, "settled": self.settled}

    def restored(self, saved: Mapping[str, Any], state: Mapping[str, Segments]) -> Self:
        """The same, continued from what was saved; rows that were emitted since may still be in the files."""
        frontier = OperatorFrontier.restored(saved["frontier"])
        waiting = state["waiting"].trimmed("__t", after(saved["passed"]))
        run = replace(self, frontier=frontier, passed=saved["passed"], settled=saved["settled"])
        return replace(run, waiting=waiting, held=state["held"], past=state["past"], begins=saved["begins"])
