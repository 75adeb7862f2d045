"""The queue before an expensive function: rows wait, go through bit by bit, or are set aside in a burst.

Laws. *Each once*: a row that came in time is emitted exactly once; none is dropped, whatever is set aside. *In time*:
the earliest of those that wait go first, simultaneous ones as they came. *Frontier*: later rows are after
`frontier.time` or lie in one of `frontier.holes`, the panes of rows that were set aside; a row that comes later into
such a pane joins those that were set aside there. *Late*: a row at or before the frontier, and in no hole. *Budget*: in
one round no more rows go than `budget`, however many turns there are; when everything ends, all go. (Prodding thesis,
section 6.2 (a).)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pyarrow as pa

from eventide.engine.operators.frontier import Frontier, least_time
from eventide.engine.operators.merge import Merge, emitted_rows, rows_layout
from eventide.engine.operators.operator import Ingested, Input, Late, Operator, Output, output_layout
from eventide.engine.operators.ordering import NUMBER, numbered_text, stretches
from eventide.engine.operators.time_range import known_times
from eventide.engine.operators.windows import ends_of
from eventide.engine.relations.executor import Executor
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.engine.relations.statement import Statement, one_row
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants
from eventide.eventtime.punctuation import Span, merged
from eventide.eventtime.scheduling.expensive import Turn
from eventide.plan.bound.rows import IDENTITY, BoundRows
from eventide.plan.declared.queue import Queue as DeclaredQueue
from eventide.plan.declared.queue import Sideline
from eventide.plan.declared.window import Window
from eventide.plan.expressions.columns import Column

SINCE = "__since"
"""The clock at which a row was set aside."""

IN_ORDER = tuple(column.name for column in IDENTITY)


@dataclass(frozen=True)
class Queue(Merge):
    """Rows that wait (`waiting`), and rows that were set aside (`aside`)."""

    aside: Segments = field(kw_only=True)
    holes: tuple[Span, ...] = ()
    """The panes of rows that were set aside."""
    budget: int = 0
    """How many rows may still go in this round."""
    clock: int = NEVER
    credit: int = 0

    @classmethod
    def start(cls, bound: BoundRows, executor: Executor) -> Self:
        """A queue that has seen nothing."""
        layout = rows_layout(bound, *IDENTITY)
        aside = Layout((*layout.columns, Column(SINCE, "BIGINT")), ("__t", SINCE))
        return cls(bound, executor, Segments(layout), aside=Segments(aside))

    @property
    def rows(self) -> int:
        """Rows that are held."""
        return self.waiting.rows + self.aside.rows

    @property
    def holds(self) -> Instants:
        """The times of rows that are held."""
        return known_times(Segments(self.waiting.layout, (*self.waiting.parts, *self.aside.parts)))

    @property
    def is_behind(self) -> bool:
        """Whether rows wait: a round without new ones would let some go."""
        return self.rows > 0

    @property
    def state(self) -> Mapping[str, Segments]:
        """The rows that wait, and those that were set aside."""
        return {"waiting": self.waiting, "aside": self.aside}

    def with_state(self, state: Mapping[str, Segments]) -> Self:
        """The same with the same rows, elsewhere or in other files."""
        return replace(self, waiting=state["waiting"], aside=state["aside"])

    def begin(self, clock: int, budget: int) -> Self:
        """A round begins, in which about so many rows may go through."""
        return replace(self, clock=max(clock, self.clock), budget=budget)

    def ingest(self, port: str, rows: Relation, sources: pa.Table | None = None) -> tuple[Self, Ingested]:
        """Add rows; those behind the frontier are late, but for those of a pane that was set aside."""
        low, time = rows.least("__t"), self.frontier.time
        accepted, late = rows, None
        if low is not None and low <= time and time != NEVER:
            condition = f"__t <= {time} AND NOT {_within('__t', self.holes)}"
            accepted = self._chosen(Segments(rows.layout).add(rows), f"NOT ({condition})")
            late = Late(rows.rows - accepted.rows, condition) if accepted.rows < rows.rows else None
        return replace(self, arrived=(*self.arrived, accepted)), Ingested(rows.rows, late)

    def would_emit(self, inputs: Sequence[Input]) -> bool:
        """Whether a row waits: the next round lets some go."""
        return self.rows > 0

    def advance(self, inputs: Sequence[Input], limit: int | None = None) -> tuple[Self, Output]:
        """Let rows go through, as many as the budget permits; nothing else of whoever reads it is held back."""
        reached = max(self.frontier.time, least_time(one.frontier for one in inputs))
        run = self._with_arrived()
        turn = run._turn(FOREVER if reached == FOREVER else self.budget)
        new, waiting = run._first(run.waiting, turn.new, "__t", IN_ORDER)
        old, aside = run._first(run.aside, turn.aside, SINCE, ("__t", *IN_ORDER))
        earliest = waiting.least("__t")
        time = reached if earliest is None else max(self.frontier.time, min(reached, earliest - 1))
        run = replace(
            run, waiting=waiting, aside=aside, budget=max(0, self.budget - turn.new - turn.aside), credit=turn.credit
        )
        run = run._with_holes() if old.parts else run
        output = run._emitted(new).with_more(run._emitted(old))
        return replace(run, frontier=Frontier(time, holes=run.holes)), output

    def _emitted(self, rows: Segments) -> Output:
        layout = output_layout(self.bound.outputs)
        if not rows.parts:
            return Output.of(layout)
        inputs = {"ready": rows, "span": one_row(first=NEVER, last=FOREVER)}
        return Output.of(layout, self.executor.relation(emitted_rows(self.bound), inputs, layout))

    def _with_arrived(self) -> Self:
        """With the rows that have come: those of a pane that was set aside go there."""
        waiting, aside = self.waiting, self.aside
        for rows in self.arrived:
            came = Segments(waiting.layout).add(rows)
            if self.holes and came.parts:
                apart = _within("__t", self.holes)
                aside = aside.add(self._stamped(came, apart))
                came = Segments(waiting.layout).add(self._chosen(came, f"NOT {apart}"))
            waiting = waiting.add(*came.parts)
        waiting, aside = (rows.merged(self.executor.merged) for rows in (waiting, aside))
        return replace(self, waiting=waiting, aside=aside, arrived=())

    def _turn(self, budget: int) -> Turn:
        how = self._declared.sideline or Sideline()
        overdue = 0
        if how.within is not None and self.aside.parts:
            statement = Statement(
                f"SELECT count(*) AS n FROM found CROSS JOIN limits WHERE found.{SINCE} <= limits.__last"
            )
            inputs = {"found": self.aside, "limits": one_row(last=self.clock - how.within)}
            overdue = self.executor.table(statement, inputs).column("n")[0].as_py()
        return Turn.of(budget, self.waiting.rows, self.aside.rows, overdue, how.one_in, self.credit)

    def _first(self, rows: Segments, count: int, time: str, then: Sequence[str]) -> tuple[Segments, Segments]:
        """So many rows, the earliest first, and the rest."""
        if count >= rows.rows or count == 0:
            nothing = Segments(rows.layout)
            return (rows, nothing) if count else (nothing, rows)
        _, inputs = stretches(self.executor, rows, time, NEVER, FOREVER, 0)
        text = numbered_text(time, (time, *then))
        inputs["limits"] = one_row(count=count)
        first, rest = (
            self.executor.relation(
                Statement(f"SELECT * FROM ({text}) CROSS JOIN limits WHERE {NUMBER} {sign} __count", identified=True),
                inputs,
                rows.layout,
            )
            for sign in ("<", ">=")
        )
        return Segments(rows.layout).add(first), Segments(rows.layout).add(rest)

    def set_aside(self, up_to: int, reached: int) -> Self:
        """Set the rows aside that wait and whose windows are over and were prodded."""
        last = last_instant_over(self._declared, min(up_to, reached))
        low = self.waiting.least("__t")
        if last is None or low is None or low > last:
            return self
        aside = self.aside.add(self._stamped(self.waiting, f"__t <= {last}"))
        waiting = Segments(self.waiting.layout).add(self._chosen(self.waiting, f"__t > {last}"))
        run = replace(self, waiting=waiting, aside=aside)._with_holes()
        return replace(run, frontier=replace(run.frontier, holes=run.holes))

    def _chosen(self, rows: Segments, condition: str) -> Relation:
        statement = Statement(f"SELECT * FROM found WHERE {condition}", identified=True)
        return self.executor.relation(statement, {"found": rows}, rows.layout)

    def _stamped(self, rows: Segments, condition: str) -> Relation:
        """Rows as they are set aside, at the clock of this round."""
        statement = Statement(
            f"SELECT found.*, limits.__clock AS {SINCE} FROM found CROSS JOIN limits WHERE {condition}", identified=True
        )
        inputs = {"found": rows, "limits": one_row(clock=self.clock)}
        return self.executor.relation(statement, inputs, self.aside.layout)

    def _with_holes(self) -> Self:
        """With the panes of rows that are set aside now."""
        if not self.aside.parts:
            return replace(self, holes=())
        window = self._declared.window
        assert isinstance(window, Window)
        pane = f"__t - pmod(pmod(__t, {window.pane}) - {window.offset % window.pane}, {window.pane})"
        found = self.executor.table(Statement(f"SELECT DISTINCT {pane} AS pane FROM found"), {"found": self.aside})
        panes = sorted(found.column("pane").to_pylist())
        return replace(self, holes=merged(Span(pane, pane + window.pane) for pane in panes))

    @property
    def _declared(self) -> DeclaredQueue:
        assert isinstance(self.bound.rows, DeclaredQueue)
        return self.bound.rows

    def frontier_at(self, inputs: Sequence[Input]) -> Frontier:
        """Its frontier once its inputs have come so far, where no row waits."""
        return Frontier(max(self.frontier.time, least_time(one.frontier for one in inputs)))

    def early(self) -> Operator:
        """The queue as a prod passes it: rows that wait stay, and hold nothing back."""
        return EarlyQueue(self.bound, self.executor, Segments(self.waiting.layout), frontier=self.frontier)

    # What the round record keeps

    def snapshot(self) -> dict[str, Any]:
        """Plain data beside the rows."""
        return {
            "frontier": self.frontier.saved(),
            "clock": self.clock,
            "credit": self.credit,
            "waiting": self.waiting.rows,
            "aside": self.aside.rows,
        }

    def restored(self, saved: Mapping[str, Any], state: Mapping[str, Segments]) -> Self:
        """The same, continued from what was saved."""
        run = replace(self.with_state(state), clock=saved["clock"], credit=saved["credit"])._with_holes()
        return replace(run, frontier=replace(Frontier.restored(saved["frontier"]), holes=run.holes))


@dataclass(frozen=True)
class EarlyQueue(Merge):
    """A queue that a prod passes: nothing goes through it, and time goes on as far as the inputs say."""

    def advance(self, inputs: Sequence[Input], limit: int | None = None) -> tuple[Self, Output]:
        """Emit nothing: an early answer does not wait for an expensive function."""
        time = max(self.frontier.time, least_time(one.frontier for one in inputs))
        return replace(self, frontier=Frontier(time), arrived=()), Output.of(output_layout(self.bound.outputs))


def last_instant_over(queue: DeclaredQueue, reached: int) -> int | None:
    """The last instant of the last window of whoever reads a queue that is over then.

    None where all are, none is, or bursts are not to be set aside.

    >>> last_instant_over(DeclaredQueue("q", ("s",), window=Window(50, 10), sideline=Sideline()), 57)
    49
    """
    if queue.sideline is None or abs(reached) >= EDGE:
        return None
    assert isinstance(queue.window, Window)
    return ends_of(queue.window).at_or_before(reached + 1) - 1


def _within(column: str, holes: Sequence[Span]) -> str:
    """Whether a time lies in one of some spans."""
    return (
        "(" + (" OR ".join(f"({column} >= {hole.start} AND {column} < {hole.end})" for hole in holes) or "FALSE") + ")"
    )
