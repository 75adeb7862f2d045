"""A query over windows of row counts while it runs: rows wait until time has passed them, then they are numbered.

Law: a row gets its number when the heartbeat passes its time: the rows of a stream are numbered from 0 in the order of
time, simultaneous ones in the order of their values, so the numbers do not depend on rounds. A window over numbers
closes when its last row has one. A row behind the heartbeat of a round before is late: its place in the order is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.answers import nothing
from eventide.engine.slices import DriverSlices, slice_schema
from eventide.engine.slow_flush import flushed
from eventide.engine.taken import Answer, Answers, Taken
from eventide.engine.windows import closing, needed_from
from eventide.engine.workbench import Bench
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants
from eventide.plan.bound import Bound
from eventide.plan.columns import quoted
from eventide.plan.stream import Timestamps


@dataclass(frozen=True)
class RowRun:
    """Rows that wait for their number, and slices of numbered ones."""

    query: Bound
    slices: DriverSlices
    waiting: tuple[pa.Table, ...] = ()
    bound: int = NEVER
    numbered: int = 0
    begins: int = NEVER
    answered: int = 0

    @classmethod
    def start(cls, query: Bound, bench: Bench, begins: int = NEVER) -> RowRun:
        """A query that has seen nothing; rows before `begins` are not for it."""
        return cls(query, DriverSlices(query, bench), (), begins, 0, begins)

    @property
    def holds(self) -> Instants:
        """The times of rows that have no number yet."""
        found = [pc.unique(table.column("__t")).to_numpy() for table in self.waiting]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)

    def reading(self, query: Bound) -> RowRun:
        """The same, as the query over another input of what it reads."""
        return self if query is self.query else replace(self, query=query)

    def stamped(self, chunk: pa.Table, clock: int) -> pa.Table:
        """Rows without a time of their own: theirs is the clock of the round."""
        if self.query.stream.timestamps is Timestamps.EXTERNAL or chunk.num_rows == 0:
            return chunk
        time = pa.array(np.full(chunk.num_rows, clock, dtype=np.int64))
        return chunk.set_column(0, "__pane", time).set_column(1, "__t", time)

    def take(self, chunk: pa.Table) -> tuple[RowRun, Taken]:
        """Let the rows of a round wait; those behind the last heartbeat are late."""
        if self.bound == NEVER or chunk.num_rows == 0:
            return self._waiting_too(chunk), Taken(chunk.num_rows, chunk)
        times = chunk.column("__t")
        late = chunk.filter(pc.and_(pc.less(times, self.bound), pc.greater_equal(times, self.begins)))
        accepted = chunk.filter(pc.greater_equal(times, self.bound))
        taken = Taken(
            late.num_rows + accepted.num_rows,
            accepted,
            tuple(pc.unique(late.column("__t")).to_pylist()),
            late.num_rows,
        )
        return self._waiting_too(accepted), taken

    def _waiting_too(self, chunk: pa.Table) -> RowRun:
        return replace(self, waiting=(*self.waiting, chunk)) if chunk.num_rows else self

    def would_close(self, heartbeat: int) -> bool:
        """Whether a heartbeat would number a row, or windows wait that are full."""
        full = closing(self.query.panes, self.slices.panes, self.answered or NEVER, self.numbered)
        return bool(full.num_rows) or any(pc.min(table.column("__t")).as_py() <= heartbeat for table in self.waiting)

    def advance(
        self, heartbeat: int, taken: Taken | None = None, latest: int = NEVER, most: int | None = None
    ) -> tuple[RowRun, Answers]:
        """Number the rows that time has passed, and answer the windows that are full; none of them is ever empty.

        `most`: so many results are told at once, but when everything ends (`slow_flush`).
        """
        bound = max(self.bound, _after(heartbeat))
        run = self._numbering(bound)
        window = self.query.panes
        up_to = FOREVER if bound == FOREVER else run.numbered
        windows = closing(window, run.slices.panes, self.answered or NEVER, up_to)
        # Before the first row there is nothing to count: windows begin with it.
        windows = windows.filter(pc.greater_equal(windows.column("window_start"), 0))
        answer, last = flushed(windows, None if bound == FOREVER else most, run.slices.answer)
        up_to, final = up_to if last is None else last, answer or Answer.of(nothing(self.query))
        slices = run.slices.freed(needed_from(window, up_to if up_to == FOREVER else window.pane_of(up_to)))
        return replace(run, slices=slices, bound=bound, answered=up_to), Answers(final, Answer.of(nothing(self.query)))

    def promised(self, heartbeat: int = NEVER) -> int:
        """Every later result has its last number after this; a heartbeat that would number no row adds nothing."""
        return FOREVER if self.answered == FOREVER else self.answered - 1

    def _numbering(self, bound: int) -> RowRun:
        ready, rest = [], []
        for table in self.waiting:
            passed = pc.less(table.column("__t"), bound)
            ready += [part] if (part := table.filter(passed)).num_rows else []
            rest += [part] if (part := table.filter(pc.invert(passed))).num_rows else []
        if not ready:
            return self
        names = slice_schema(self.query).names[1:]
        order = ", ".join(quoted(name) for name in names)
        # The first column is the pane; it is made anew from the number.
        text = f"SELECT {order} FROM ready ORDER BY {order}"
        rows = self.slices.bench.ask(text, {"ready": pa.concat_tables(ready)})
        numbers = self.numbered + np.arange(rows.num_rows, dtype=np.int64)
        panes = numbers - numbers % self.query.panes.pane
        chunk = rows.add_column(0, "__pane", pa.array(panes)).cast(slice_schema(self.query))
        numbered = self.numbered + rows.num_rows
        return replace(self, slices=self.slices.added(chunk), waiting=tuple(rest), numbered=numbered)

    # What the round record keeps

    def saved(self) -> dict[str, Any]:
        """Plain data; the rows themselves are saved as they came, and numbered again."""
        kept = self.slices.rows
        return {
            "bound": self.bound,
            "begins": self.begins,
            "numbered": self.numbered,
            "answered": self.answered,
            "kept": kept,
            "live": self._oldest(),
        }

    def live(self) -> int:
        """State of rows before this time is not needed any more."""
        return self._oldest()

    def _oldest(self) -> int:
        times = [pc.min(table.column("__t")).as_py() for table in (*self.slices.open, *self.waiting)]
        return min(times, default=self.bound)

    def state_table(self) -> pa.Table:
        """All that it holds."""
        tables = [*self.slices.open, *self.waiting]
        return pa.concat_tables(tables) if tables else self.slices.empty()

    @staticmethod
    def high(chunk: pa.Table) -> int:
        """The last time in some state; it can go when that is not needed any more."""
        return int(pc.max(chunk.column("__t")).as_py())

    @classmethod
    def restored(
        cls, query: Bound, bench: Bench, saved: dict[str, Any], tables: list[pa.Table], placed: object = None
    ) -> RowRun:
        """Number the rows again: all that are kept, so that the last of them has the last number."""
        run = cls(query, DriverSlices(query, bench), tuple(table for table in tables if table.num_rows))
        # Older rows may still be in the files, beyond those that are kept: the newest of them are the ones.
        ready = sum(int(pc.sum(pc.less(table.column("__t"), saved["bound"])).as_py() or 0) for table in run.waiting)
        run = replace(run, numbered=saved["numbered"] - ready)._numbering(saved["bound"])
        first = saved["numbered"] - saved["kept"]
        kept = (_numbers_from(table, first, run) for table in run.slices.open)
        slices = replace(run.slices, open=tuple(table for table in kept if table.num_rows))
        return replace(run, slices=slices, bound=saved["bound"], begins=saved["begins"], answered=saved["answered"])


def _numbers_from(table: pa.Table, first: int, run: RowRun) -> pa.Table:
    return table.slice(max(0, table.num_rows - (run.numbered - first)))


def _after(heartbeat: int) -> int:
    if heartbeat <= -EDGE:
        return NEVER
    return FOREVER if heartbeat >= EDGE else heartbeat + 1
