"""Aggregates over windows of row counts: rows wait until time has passed them, then they are numbered.

Law: a row gets its number when the heartbeat passes its time: the rows of a stream are numbered from 0 in the order of
time, simultaneous ones in the order of their values, so the numbers do not depend on rounds. A window over numbers
closes when its last row has one. A row behind the heartbeat of a round before is late: its place in the order is gone.

Rows are numbered stretch of time by stretch of time (`ordering`): no row passes through one place with all others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.operators.frontier import OperatorFrontier, after, least_time
from eventide.engine.operators.open_windows import OpenRows
from eventide.engine.operators.operator import Ingested, InputProgress, Late, Output
from eventide.engine.operators.slices import SliceAggregate, compacted, result_layout, results_of, slice_layout
from eventide.engine.operators.time_range import NUMBER, from_time, known_times, least_since, numbered_text, span_of
from eventide.engine.operators.windows import closing, flushed, needed_from, open_frontier
from eventide.engine.relations.executor import Executor, Inputs, Statement, one_row
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.eventtime.instant import FOREVER, NEVER, Instants
from eventide.plan.bound.query import BoundQuery
from eventide.plan.bound.rows import slice_columns
from eventide.plan.expressions.columns import quoted

MOST_TIMES = 100_000
"""Whoever asks why a window is open learns of so many rows that wait on the cluster, the earliest."""


@dataclass(frozen=True)
class CountWindowAggregate(SliceAggregate):
    """Rows that wait for their number, and slices of numbered ones."""

    waiting: Segments
    closed_before: int = NEVER
    numbered: int = 0
    begins: int = NEVER
    emitted_before: int = 0
    """Windows that end by this number have been emitted."""

    @classmethod
    def start(cls, query: BoundQuery, executor: Executor, begins: int = NEVER) -> CountWindowAggregate:
        """A query that has seen nothing; rows before `begins` are not for it."""
        waiting = Segments(Layout(slice_columns(query), ("__t",)))
        return cls(query, executor, Segments(slice_layout(query)), waiting, begins, 0, begins)

    @property
    def holds(self) -> Instants:
        """The times of rows that have no number yet."""
        return known_times(self.waiting)

    @property
    def state(self) -> Mapping[str, Segments]:
        """The rows without a number, and those that have one."""
        return {"waiting": self.waiting, "slices": self.slices}

    def with_state(self, state: Mapping[str, Segments]) -> Self:
        """A copy whose rows are elsewhere or in other files."""
        return replace(self, waiting=state["waiting"], slices=state["slices"])

    def layout(self, port: str) -> Layout:
        """The columns of rows that have no number yet."""
        return self.waiting.layout

    def stamps(self, port: str, clock: int) -> Mapping[str, int]:
        """The clock, for rows without a time of their own."""
        return {"__pane": clock, "__t": clock}

    def ingest(
        self, port: str, rows: Relation, sources: pa.Table | None = None
    ) -> tuple[CountWindowAggregate, Ingested]:
        """Let rows wait; those behind the last heartbeat are late."""
        accepted = from_time(self.executor, rows, self.closed_before)
        wanted, late = rows.rows, None
        if accepted.rows < rows.rows:
            # Rows of before the query began were never its own, so they are not late for it.
            own = rows if self.begins == NEVER else from_time(self.executor, rows, self.begins)
            wanted = own.rows
            late = Late.before(own.rows - accepted.rows, "__t", self.closed_before, self.begins)
        return replace(self, waiting=self.waiting.add(accepted)), Ingested(wanted, late)

    def would_emit(self, inputs: Sequence[InputProgress]) -> bool:
        """Whether inputs that have come so far would number a row, or windows wait that are full."""
        full = closing(self.query.panes, self.slices.panes, self.emitted_before or NEVER, self.numbered)
        first = least_since(self.waiting, "__t", self.closed_before)
        heartbeat = least_time(one.frontier for one in inputs)
        return bool(full.num_rows) or (first is not None and first <= heartbeat)

    def advance(self, inputs: Sequence[InputProgress], limit: int | None = None) -> tuple[Self, Output]:
        """Number the rows that time has passed, and emit the windows that are full; none of them is ever empty."""
        closed = max(self.closed_before, after(least_time(one.frontier for one in inputs)))
        run = self._numbering(closed)
        window = self.query.panes
        up_to = FOREVER if closed == FOREVER else run.numbered
        windows = closing(window, run.slices.panes, self.emitted_before or NEVER, up_to)
        # Before the first row there is nothing to count: windows begin with it.
        windows = windows.filter(pc.greater_equal(windows.column("window_start"), 0))
        final, last = flushed(self.executor, windows, None if closed == FOREVER else limit, run._results)
        up_to = up_to if last is None else last
        needed = needed_from(window, up_to if up_to == FOREVER else window.pane_of(up_to))
        slices = run.slices.trimmed("__pane", needed)
        run = replace(run, slices=slices, emitted_before=up_to)
        return run, Output.of(result_layout(self.query), *final)

    def _results(self, windows: pa.Table) -> Relation:
        return results_of(self.executor, self.query, self.slices, windows)

    @property
    def frontier(self) -> OperatorFrontier:
        """Every later result has its last number after this; the numbers say nothing of times."""
        return open_frontier(self.query, self.emitted_before, with_times=False)

    def frontier_at(self, inputs: Sequence[InputProgress]) -> OperatorFrontier:
        """A heartbeat that would number no row adds nothing."""
        return self.frontier

    def _numbering(self, closed: int) -> Self:
        """With numbers for the rows before `closed` that have none."""
        low = least_since(self.waiting, "__t", self.closed_before)
        run = replace(self, closed_before=closed)
        if low is None or low >= closed:
            return run
        ready = self.waiting.within("__t", low, closed - 1)
        inputs: Inputs = {"ready": ready, "span": span_of(ready, "__t", low, closed, self.numbered)}
        statement = Statement(_numbered_text(self.query), self.query.driver_exact)
        rows = self.executor.relation(statement, inputs, self.slices.layout)
        slices = compacted(self.executor, self.query, self.slices.add(rows))
        waiting = self.waiting.trimmed("__t", closed)
        return replace(run, slices=slices, waiting=waiting, numbered=self.numbered + rows.rows)

    def early(self) -> EarlyCountWindowAggregate:
        """A copy that answers a prod."""
        return EarlyCountWindowAggregate(**vars(self))

    def open(self) -> OpenRows:
        """The open windows, for those who ask why."""
        query, waiting = self.query, first_times(self.executor, self.waiting, self.closed_before)
        return OpenRows(
            self.name, query.window_kind, query.panes, self.numbered, self.emitted_before, waiting, self.closed_before
        )

    # What the round record keeps

    def snapshot(self) -> dict[str, Any]:
        """What is saved besides the rows, as plain data."""
        return {
            "closed_before": self.closed_before,
            "begins": self.begins,
            "numbered": self.numbered,
            "emitted_before": self.emitted_before,
        }

    def restored(self, saved: Mapping[str, Any], state: Mapping[str, Segments]) -> CountWindowAggregate:
        """The operator, continued from what was saved."""
        emitted, window = saved["emitted_before"], self.query.panes
        needed = needed_from(window, emitted if emitted == FOREVER else window.pane_of(emitted))
        return replace(
            self,
            waiting=state["waiting"].trimmed("__t", saved["closed_before"]),
            slices=state["slices"].trimmed("__pane", needed),
            closed_before=saved["closed_before"],
            begins=saved["begins"],
            numbered=saved["numbered"],
            emitted_before=emitted,
        )


@dataclass(frozen=True)
class EarlyCountWindowAggregate(CountWindowAggregate):
    """A query over windows of row counts that is asked early: windows that are not full are emitted too."""

    def advance(self, inputs: Sequence[InputProgress], limit: int | None = None) -> tuple[Self, Output]:
        """Emit the windows that are not emitted yet, full or not, of the rows up to this heartbeat."""
        run = self._numbering(max(self.closed_before, after(least_time(one.frontier for one in inputs))))
        windows = closing(self.query.panes, run.slices.panes, self.emitted_before or NEVER, FOREVER)
        windows = windows.filter(pc.greater_equal(windows.column("window_start"), 0))
        final = [run._results(windows)] if windows.num_rows else []
        # Whoever reads it has all that there is.
        return replace(run, emitted_before=FOREVER), Output.of(result_layout(self.query), *final)


def _numbered_text(query: BoundQuery) -> str:
    """The rows of a stretch of time with the panes of their numbers."""
    names = [quoted(column.name) for column in slice_columns(query)[1:]]
    pane = f"{NUMBER} - pmod({NUMBER}, {query.panes.pane}) AS __pane"
    return f"SELECT {', '.join([pane, *names])} FROM ({numbered_text('__t', names)})"


def first_times(executor: Executor, rows: Segments, first: int) -> Instants:
    """The earliest times of rows from `first` on, ascending; of rows on the cluster not more than `MOST_TIMES`."""
    if rows.place == "driver":
        times = [part.table.column("__t").to_numpy() for part in rows.parts if part.table is not None]
        found = np.concatenate([np.zeros(0, dtype=np.int64), *times])
    else:
        since = "SELECT found.__t FROM found CROSS JOIN edge WHERE found.__t >= edge.__first"
        text = f"{since} ORDER BY __t LIMIT {MOST_TIMES}"
        found = executor.table(Statement(text), {"found": rows, "edge": one_row(first=first)}).column("__t").to_numpy()
    return np.sort(found[found >= first])
