"""The queue before an expensive function: rows wait, go through bit by bit, or are set aside in a burst.

Laws. *Each once*: a row that came in time is emitted exactly once; none is dropped, whatever is set aside. *In time*:
the earliest of those that wait go first, simultaneous ones as they came. *Frontier*: later rows are after
`frontier.time` or lie in one of `frontier.holes`, the panes of rows that were set aside; a row that comes later into
such a pane joins those that were set aside there. *Late*: a row at or before the frontier, and in no hole. *Budget*: in
one round no more rows go than `budget`, however many turns there are; when everything ends, all go. *Bursts*: what is
set aside are the panes of windows that were over when they were prodded, once the queue has come to them, if they are
bursts; windows without such a pane are never later for it (`eventtime.scheduling.expensive`). (Prodding thesis, section
6.2 (a).)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa

from eventide.engine.operators.frontier import OperatorFrontier, least_time
from eventide.engine.operators.line import Line
from eventide.engine.operators.merge import RowsOperator, emitted_rows, rows_layout
from eventide.engine.operators.operator import Ingested, InputProgress, Late, Operator, Output, output_layout
from eventide.engine.operators.time_range import known_times
from eventide.engine.operators.windows import ends_of
from eventide.engine.relations.executor import Executor, Inputs, Statement, StatementStep, one_row
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants
from eventide.eventtime.punctuation import Span, merged
from eventide.eventtime.scheduling.expensive import Bursts, QueueShare
from eventide.plan.bound.rows import IDENTITY, BoundRows
from eventide.plan.declared.rows import Queue, Sideline
from eventide.plan.declared.window import Window
from eventide.plan.expressions.columns import Column

SINCE, SET = Column("__since", "BIGINT"), Column("__set", "BIGINT")
"""The clock at which a row was set aside, and the sequence of those that were set aside with it."""

IN_ORDER = ("__t", *(column.name for column in IDENTITY))

BY_HOLES = "LEFT JOIN holes ON {rows}.__t >= holes.__start AND {rows}.__t < holes.__end"
LATE = "{rows}.__t <= edge.__time AND holes.__start IS NULL"
ACCEPTED = Statement(
    f"SELECT found.* FROM found CROSS JOIN edge {BY_HOLES} WHERE NOT ({LATE})".format(rows="found"), identified=True
)
IN_NO_HOLE = Statement(
    f"SELECT found.* FROM found {BY_HOLES} WHERE holes.__start IS NULL".format(rows="found"), identified=True
)
IN_A_HOLE = "found JOIN holes ON found.__t >= holes.__start AND found.__t < holes.__end CROSS JOIN limits"


def _set_aside(rows: str) -> Statement:
    """Rows as they are set aside, at the clock of a round."""
    stamps = f"limits.__clock AS {SINCE.name}, limits.__of AS {SET.name}"
    return Statement(f"SELECT found.*, {stamps} FROM {rows}", identified=True)


@dataclass(frozen=True)
class QueueOperator(RowsOperator):
    """Rows that wait (`waiting`), and rows that were set aside (`aside`)."""

    waiting: Line
    aside: Line
    holes: tuple[Span, ...] = ()
    """The panes of rows that were set aside."""
    budget: int = 0
    """How many rows may still go in this round."""
    clock: int = NEVER
    credit: int = 0
    bursts: Bursts = field(default_factory=Bursts)
    prodded: int = NEVER
    """The last instant of the last window that was over when it was prodded."""
    gone: int = 0
    """How many rows have gone in this round."""

    @classmethod
    def start(cls, bound: BoundRows, executor: Executor, begins: int = NEVER) -> Self:
        """A queue that has seen nothing; rows before `begins` are not for it."""
        layout = rows_layout(bound, *IDENTITY)
        aside = Layout((*layout.columns, SINCE, SET), ("__t", SINCE.name))
        waiting = Line.of(layout, IN_ORDER, IDENTITY[0].name)
        return cls(bound, executor, waiting, Line.of(aside, (SINCE.name, *IN_ORDER), SET.name), begins=begins)

    @property
    def rows(self) -> int:
        """The number of rows that are held."""
        return self.waiting.count + self.aside.count

    @property
    def holds(self) -> Instants:
        """The times of rows that are held."""
        waiting, first = known_times(self.waiting.held), self.waiting.first
        waiting = waiting if first is None else waiting[waiting >= first]
        return np.union1d(waiting, known_times(self.aside.held))

    @property
    def is_behind(self) -> bool:
        """Whether rows wait: a round without new ones would let some go."""
        return self.rows > 0

    @property
    def state(self) -> Mapping[str, Segments]:
        """The rows that wait, and those that were set aside."""
        return {"waiting": self.waiting.held, "aside": self.aside.held}

    def with_state(self, state: Mapping[str, Segments]) -> Self:
        """A copy whose rows are elsewhere or in other files."""
        waiting, aside = replace(self.waiting, held=state["waiting"]), replace(self.aside, held=state["aside"])
        return replace(self, waiting=waiting, aside=aside)

    def layout(self, port: str) -> Layout:
        """The columns that the rows of all ports share."""
        return self.waiting.held.layout

    def begin(self, clock: int, budget: int) -> Self:
        """A round begins, in which about so many rows may go through."""
        clock, bursts = max(clock, self.clock), self.bursts
        if self.rows and self._declared.sideline is not None:
            bursts = bursts.after_busy_round(self.gone, clock - self.clock)
        return replace(self, clock=clock, budget=budget, bursts=bursts, gone=0)

    @property
    def _hole_table(self) -> pa.Table:
        edges = {"__start": [hole.start for hole in self.holes], "__end": [hole.end for hole in self.holes]}
        return pa.table({name: pa.array(times, pa.int64()) for name, times in edges.items()})

    def ingest(self, port: str, rows: Relation, sources: pa.Table | None = None) -> tuple[Self, Ingested]:
        """Add rows; those behind the frontier are late, but for those of a pane that was set aside."""
        low, time = rows.least("__t"), self.frontier.time
        accepted, late = rows, None
        if low is not None and low <= time and time != NEVER:
            tables = {"edge": one_row(time=time), "holes": self._hole_table}
            accepted = self.executor.relation(ACCEPTED, {"found": rows, **tables}, rows.layout)
            if accepted.rows < rows.rows:
                join = f"CROSS JOIN edge {BY_HOLES.format(rows='timed')}"
                late = Late(rows.rows - accepted.rows, LATE.format(rows="timed"), join, tables)
        return replace(self, arrived=(*self.arrived, accepted)), Ingested(rows.rows, late)

    def would_emit(self, inputs: Sequence[InputProgress]) -> bool:
        """Whether a row waits: the next round lets some go."""
        return self.rows > 0

    def advance(self, inputs: Sequence[InputProgress], limit: int | None = None) -> tuple[Self, Output]:
        """Emit waiting rows, as many as the budget permits; holds its readers back by nothing else."""
        reached = max(self.frontier.time, least_time(one.frontier for one in inputs))
        run = self._with_arrived()._without_bursts()
        turn = run._turn(FOREVER if reached == FOREVER else self.budget)
        layout = output_layout(self.bound.outputs)
        waiting, new = run.waiting.take(self.executor, turn.new, run._emitted, layout)
        aside, old = run.aside.take(self.executor, turn.aside, run._emitted, layout)
        earliest = waiting.first
        time = reached if earliest is None else max(self.frontier.time, min(reached, earliest - 1))
        gone = turn.new + turn.aside
        run = replace(
            run,
            waiting=waiting,
            aside=aside,
            budget=max(0, self.budget - gone),
            credit=turn.credit,
            gone=self.gone + gone,
        )
        run = run._with_holes() if old.rows else run
        if run._declared.sideline is not None:
            run = replace(run, bursts=run.bursts.since(time + 1, run._window.pane))
        return replace(run, frontier=OperatorFrontier(time, holes=run.holes)), Output.of(layout, new, old)

    def _emitted(self, rows: str) -> Statement:
        return emitted_rows(self.bound, rows)

    def _with_arrived(self) -> Self:
        """With the rows that have come: those of a pane that was set aside go there."""
        waiting, aside, bursts = self.waiting, self.aside, self.bursts
        for rows in self.arrived:
            others = rows
            if self._declared.sideline is not None and rows.rows:
                counts = Statement(f"SELECT {self._pane} AS pane, count(*) AS n FROM found GROUP BY 1")
                found = self.executor.table(counts, {"found": rows})
                bursts = bursts.having({one["pane"]: one["n"] for one in found.to_pylist()})
            if self.holes and rows.rows:
                steps = [
                    StatementStep("apart", _set_aside(IN_A_HOLE), aside.held.layout),
                    StatementStep("others", IN_NO_HOLE, rows.layout),
                ]
                inputs: Inputs = {"found": rows, "holes": self._hole_table, "limits": self._setting}
                parts = self.executor.run(steps, inputs).relations
                aside, others = aside.add(self.executor, parts["apart"]), parts["others"]
            waiting = waiting.add(self.executor, others)
        return replace(self, waiting=waiting, aside=aside, bursts=bursts, arrived=())

    @property
    def _setting(self) -> pa.Table:
        return one_row(clock=self.clock, of=self.executor.files.sequence())

    def _turn(self, budget: int) -> QueueShare:
        how = self._declared.sideline or Sideline()
        overdue = 0
        if how.within is not None and self.aside.count:
            live = self.aside.live("found")
            statement = Statement(
                f"SELECT count(*) AS n FROM ({live}) found CROSS JOIN limits WHERE found.{SINCE.name} <= limits.__last"
            )
            inputs = self._aside_rows | {"limits": one_row(last=self.clock - how.within)}
            overdue = self.executor.table(statement, inputs).column("n")[0].as_py()
        return QueueShare.of(budget, self.waiting.count, self.aside.count, overdue, how.one_in, self.credit)

    @property
    def _aside_rows(self) -> dict[str, Segments | pa.Table]:
        return {"found": self.aside.held, "cuts": self.aside.cut_table}

    def set_aside(self, up_to: int, reached: int) -> Self:
        """Set bursts aside whose windows are over and were prodded; what is behind them is no burst for that."""
        last = last_instant_over(self._declared, min(up_to, reached))
        if last is None:
            return self
        run = replace(self, prodded=max(self.prodded, last))._without_bursts()
        return replace(run, frontier=replace(run.frontier, holes=run.holes))

    def _without_bursts(self) -> Self:
        """With the bursts set aside that the queue has come to, of windows that were prodded."""
        low = self.waiting.first
        if low is None or low > self.prodded:
            return self
        last = self.bursts.last_instant(low, self.prodded, self._window.pane)
        if last is None:
            return self
        limits = self._setting.append_column("__last", pa.array([last]))
        over = f"({self.waiting.live('found')}) found CROSS JOIN limits WHERE found.__t <= limits.__last"
        inputs: Inputs = {"found": self.waiting.held, "cuts": self.waiting.cut_table, "limits": limits}
        found = self.executor.relation(_set_aside(over), inputs, self.aside.held.layout)
        waiting = self.waiting.without(self.executor, last, found.rows)
        return replace(self, waiting=waiting, aside=self.aside.add(self.executor, found))._with_holes()

    def _with_holes(self) -> Self:
        """With the panes of rows that are set aside now."""
        if not self.aside.count:
            return replace(self, holes=())
        statement = Statement(f"SELECT DISTINCT {self._pane} AS pane FROM ({self.aside.live('found')})")
        panes = sorted(self.executor.table(statement, self._aside_rows).column("pane").to_pylist())
        return replace(self, holes=merged(Span(pane, pane + self._window.pane) for pane in panes))

    @property
    def _pane(self) -> str:
        """The start of a row's pane, in SQL."""
        pane, offset = self._window.pane, self._window.offset
        return f"__t - pmod(pmod(__t, {pane}) - {offset % pane}, {pane})"

    @property
    def _window(self) -> Window:
        assert isinstance(self._declared.window, Window)
        return self._declared.window

    @property
    def _declared(self) -> Queue:
        assert isinstance(self.bound.rows, Queue)
        return self.bound.rows

    def frontier_at(self, inputs: Sequence[InputProgress]) -> OperatorFrontier:
        """Its frontier once its inputs have come so far, where no row waits."""
        return OperatorFrontier(max(self.frontier.time, least_time(one.frontier for one in inputs)))

    def early(self) -> Operator:
        """The queue as a prod passes it: rows that wait stay, and hold nothing back."""
        return EarlyQueue(**vars(self))

    # What the round record keeps

    def snapshot(self) -> dict[str, Any]:
        """What is saved besides the rows, as plain data."""
        lines = {"waiting": self.waiting.saved(), "aside": self.aside.saved()}
        known = {"clock": self.clock, "credit": self.credit, "begins": self.begins}
        detection = {"prodded": self.prodded, "gone": self.gone, "bursts": self.bursts.saved()}
        return {"frontier": self.frontier.saved(), **known, **detection, **lines}

    def restored(self, saved: Mapping[str, Any], state: Mapping[str, Segments]) -> Self:
        """The operator, continued from what was saved."""
        waiting = self.waiting.restored(saved["waiting"], state["waiting"])
        aside = self.aside.restored(saved["aside"], state["aside"])
        known = replace(self, clock=saved["clock"], credit=saved["credit"], begins=saved.get("begins", NEVER))
        if "bursts" in saved:
            bursts = Bursts.restored(saved["bursts"])
            known = replace(known, prodded=saved["prodded"], gone=saved["gone"], bursts=bursts)
        run = replace(known, waiting=waiting, aside=aside)._with_holes()
        return replace(run, frontier=replace(OperatorFrontier.restored(saved["frontier"]), holes=run.holes))


@dataclass(frozen=True)
class EarlyQueue(QueueOperator):
    """A queue that a prod passes: nothing goes through it, and time goes on as far as the inputs say."""

    def advance(self, inputs: Sequence[InputProgress], limit: int | None = None) -> tuple[Self, Output]:
        """Emit nothing: an early answer does not wait for an expensive function."""
        return replace(self, frontier=self.frontier_at(inputs), arrived=()), Output.of(
            output_layout(self.bound.outputs)
        )


def last_instant_over(queue: Queue, reached: int) -> int | None:
    """The last instant of the last window, of any reader of the queue, that is over at a time.

    None where all are, none is, or bursts are not to be set aside.

    >>> last_instant_over(Queue("q", ("s",), window=Window(50, 10), sideline=Sideline()), 57)
    49
    """
    if queue.sideline is None or abs(reached) >= EDGE:
        return None
    assert isinstance(queue.window, Window)
    return ends_of(queue.window).at_or_before(reached + 1) - 1
