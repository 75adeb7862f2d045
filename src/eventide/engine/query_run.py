"""A query over windows of time while it runs: takes partials, closes windows, frees what is done with.

Laws. *Late row*: a row is late for a query when its pane was closed by a round before; a row whose pane is open counts,
however far behind its source's heartbeat it is. *Final*: a window is answered once, in the round whose heartbeat passes
its end, or later where that would be too many results for one round (see `slow_flush`); then `told` is behind `bound`.
*Promised*: every later result has its last instant after the promise; it is the heartbeat of the queries that read this
one. *Revised*: with `retain`, a late row of a pane that a retained window holds is taken after all, and its group is
answered again for every window that was told, holds it and is retained; a window is retained until the bound is
`retain` beyond its end. *Set aside*: a window that meets a hole of what it reads waits until that is settled, also
behind the bound (see `holes`); the promise is before the first such window.

A run is a value: every step gives a new one, so a round that fails changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.answers import nothing, output_schema
from eventide.engine.arrow_types import arrow_type
from eventide.engine.cluster_slices import Chunk, ClusterSlices
from eventide.engine.holes import beside, first_end, first_start, meeting
from eventide.engine.slices import DriverSlices
from eventide.engine.slow_flush import flushed
from eventide.engine.taken import Answer, Answers, Taken, rows_in
from eventide.engine.windows import bound_of, closing, first_ending_after, holding, missing_starts, needed_from
from eventide.engine.workbench import Bench
from eventide.errors import DataFaultError
from eventide.eventtime.instant import FOREVER, NEVER, Instants
from eventide.eventtime.span import Span
from eventide.plan.bound import Bound
from eventide.plan.broken_values import careful_values
from eventide.plan.merge_text import empty_text
from eventide.plan.slice_columns import slice_columns
from eventide.plan.stream import Timestamps
from eventide.plan.window import SameWindow

MOST_EMPTY = 100_000
"""So many windows are closed in one round at most, where empty ones are told too; the others follow in later rounds."""


@dataclass(frozen=True)
class QueryRun:
    """The state of one query: its slices, and the bound before which everything is closed."""

    query: Bound
    bench: Bench
    slices: DriverSlices | ClusterSlices
    bound: int = NEVER
    begins: int = NEVER
    following: int | None = None
    told: int = NEVER
    """Every window that ends by then, and meets no hole, has been answered; the bound, unless some wait."""
    holes: tuple[Span, ...] = ()
    """What was set aside when windows were answered last."""
    facing: tuple[Span, ...] = ()
    """What is set aside now."""

    @classmethod
    def start(cls, query: Bound, bench: Bench, begins: int = NEVER) -> QueryRun:
        """A query that has seen nothing; rows before `begins` are not for it."""
        return cls(query, bench, DriverSlices(query, bench), begins, begins, told=begins)

    @property
    def holds(self) -> Instants:
        """What is open: panes that hold something and whose windows have not all been answered."""
        panes = self.slices.panes
        return panes[panes >= self._needed(self.told, self.holes)] if len(panes) else panes

    def before(self, holes: tuple[Span, ...]) -> QueryRun:
        """The same, where so much of what it reads is set aside now."""
        return self if holes == self.facing else replace(self, facing=holes)

    def reading(self, query: Bound) -> QueryRun:
        """The same, as the query over another input of what it reads."""
        return self if query is self.query else replace(self, query=query)

    def stamped(self, chunk: pa.Table | Chunk, clock: int) -> pa.Table | Chunk:
        """Partials of rows without a time of their own: theirs is the clock of the round."""
        if self.query.stream.timestamps is Timestamps.EXTERNAL or isinstance(chunk, Chunk) or chunk.num_rows == 0:
            return chunk
        pane = np.full(chunk.num_rows, self.query.panes.pane_of(clock), dtype=np.int64)
        return chunk.set_column(0, "__pane", pa.array(pane))

    @property
    def _edge(self) -> int:
        """Panes before this take no rows any more, not even to revise."""
        retain = self.query.query.retain
        edge = needed_from(self.query.panes, self.bound, retain) if retain else self.bound
        # What was set aside comes from a queue, which has refused all that was late.
        return min([max(edge, self.begins), *(hole.start for hole in self.holes)])

    def take(self, chunk: pa.Table | Chunk) -> tuple[QueryRun, Taken]:
        """Add the partials of a round; those of closed panes are late, unless they can revise."""
        if isinstance(chunk, Chunk):
            return self._take_files(chunk)
        assert isinstance(self.slices, DriverSlices)
        wanted = rows_in(chunk, self.query)
        if self.bound == NEVER or chunk.num_rows == 0:
            return replace(self, slices=self.slices.added(chunk)), Taken(wanted, chunk)
        panes = chunk.column("__pane")
        edge = self._edge
        lowest = pc.min(panes).as_py()
        if lowest >= self.bound:
            return replace(self, slices=self.slices.added(chunk)), Taken(wanted, chunk)
        late = chunk.filter(pc.less(panes, edge))
        accepted = chunk.filter(pc.greater_equal(panes, edge))
        again = self.bound if self.query.query.retain else edge
        revising = accepted.filter(pc.less(accepted.column("__pane"), again))
        before = late.filter(pc.less(late.column("__pane"), self.begins)) if self.begins != NEVER else late.slice(0, 0)
        if before.num_rows:
            # Rows of before the query began were never its own, so they are not late for it.
            late = late.filter(pc.greater_equal(late.column("__pane"), self.begins))
            wanted -= rows_in(before, self.query)
        taken = Taken(
            wanted,
            accepted,
            tuple(pc.unique(late.column("__pane")).to_pylist()),
            rows_in(late, self.query),
            tuple(pc.unique(revising.column("__pane")).to_pylist()),
            rows_in(revising, self.query),
            revising,
        )
        return replace(self, slices=self.slices.added(accepted)), taken

    def _take_files(self, chunk: Chunk) -> tuple[QueryRun, Taken]:
        """The same for slices on the cluster."""
        assert isinstance(self.slices, ClusterSlices)
        edge = self._edge
        accepted = self.slices.without(chunk, edge) if chunk.panes and chunk.panes[0] < edge else chunk
        late = tuple(pane for pane in chunk.panes if self.begins <= pane < edge)
        revising = tuple(pane for pane in chunk.panes if edge <= pane < self.bound) if self.query.query.retain else ()
        lost = chunk.rows - accepted.rows if late else 0
        taken = Taken(accepted.rows + lost, None, late, lost, revising, len(revising), accepted)
        return replace(self, slices=self.slices.added(accepted)), taken

    def would_close(self, heartbeat: int) -> bool:
        """Whether a heartbeat would answer a window."""
        bound = bound_of(self.query.panes, heartbeat)
        if self._settled(self.slices.panes) is not None:
            return True
        if bound <= self.told:
            return False
        if self.query.panes.empty and self.following is not None:
            return self.following + self.query.panes.range <= bound
        return bool(beside(closing(self.query.panes, self.slices.panes, self.told, bound), self.facing).num_rows)

    def _settled(self, panes: Instants) -> pa.Table | None:
        """The windows that waited for something set aside, and do not any more; None where there are none."""
        if self.holes == self.facing:
            return None
        over = closing(self.query.panes, panes, NEVER, self.told)
        found = beside(over.filter(meeting(over, self.holes)), self.facing)
        return self._shown(found) if found.num_rows else None

    def _needed(self, told: int, holes: tuple[Span, ...]) -> int:
        """The first pane that a window needs which is not answered yet, or is retained."""
        return min(needed_from(self.query.panes, told, self.query.query.retain), first_start(self.query.panes, holes))

    def advance(
        self, heartbeat: int, taken: Taken | None = None, latest: int = NEVER, most: int | None = None
    ) -> tuple[QueryRun, Answers]:
        """Answer what closes at this heartbeat, and again what late rows have changed; then free.

        `latest` is the largest time of the stream: when everything ends, windows without rows are told up to there.
        `most`: so many results are told at once, but when everything ends.
        """
        window = self.query.panes
        bound = self._bound_after(heartbeat)
        slices = self.slices.closing(bound)
        panes = slices.panes
        most = None if bound == FOREVER else most
        told = self._shown_to(bound, panes, most)
        settled = self._settled(panes)
        windows = self._shown(beside(closing(window, panes, self.told, told), self.facing))
        answer, last = flushed(windows, None if window.empty else most, slices.answer)
        told = told if last is None else last
        answer = answer or Answer.of(nothing(self.query))
        if settled is not None:
            answer = slices.answer(settled).with_more(answer)
        final, following = self._with_empty(answer, panes, windows, told, latest)
        revised = Answer.of(nothing(self.query))
        if taken is not None and taken.revising:
            changed = np.array(sorted(taken.revising), dtype=np.int64)
            again = holding(window, changed, self.bound - self.query.query.retain, self.told)
            revised = slices.answer(self._shown(again), taken.changed) if again.num_rows else revised
        slices = slices.freed(self._needed(told, self.facing))
        run = replace(self, slices=slices, bound=bound, following=following, told=told, holes=self.facing)
        return run, Answers(final, revised)

    def promised(self, heartbeat: int = NEVER) -> int:
        """Every later result has its last instant after this; `heartbeat`: once that has been given."""
        bound = self.told if heartbeat == NEVER else self._bound_after(heartbeat)
        bound = min(bound, first_end(self.query.panes, self.facing) - 1) if self.facing else bound
        return bound if bound in (NEVER, FOREVER) else bound - 1

    def _bound_after(self, heartbeat: int) -> int:
        """Before this, everything is closed after a heartbeat: but for windows that are too many for one round."""
        window = self.query.panes
        bound = max(self.bound, bound_of(window, heartbeat))
        first = self._first_shown(self.slices.panes) if window.empty and bound < FOREVER else None
        if first is None:
            return bound
        return max(self.bound, min(bound, first + (MOST_EMPTY - 1) * window.slide + window.range))

    def _shown_to(self, bound: int, panes: Instants, most: int | None) -> int:
        """Up to here windows are told that are told even if they are empty: each of them is one result."""
        window = self.query.panes
        first = self._first_shown(panes) if window.empty and most is not None else None
        if first is None or most is None:
            return bound
        return max(self.told, min(bound, first + (most - 1) * window.slide + window.range))

    def _first_shown(self, panes: Instants) -> int | None:
        """The start of the next window that is told even if it is empty; None before the first row."""
        window = self.query.panes
        if self.following is not None or len(panes) == 0:
            return self.following
        return max(window.starts_covering(int(panes[0]))[0], first_ending_after(window, self.told))

    def _shown(self, windows: pa.Table) -> pa.Table:
        """The pairs of pane and window with the start that is shown."""
        if not isinstance(self.query.query.window, SameWindow):
            return windows
        starts = pc.subtract(windows.column("window_end"), pa.scalar(self.query.windows.range, pa.int64()))
        return windows.set_column(windows.column_names.index("window_start"), "window_start", starts)

    def _with_empty(
        self, final: Answer, panes: Instants, windows: pa.Table, bound: int, latest: int
    ) -> tuple[Answer, int | None]:
        """With a row for every window that closed without one, where the query asks for them."""
        window = self.query.panes
        if not window.empty:
            return final, None
        following = self._first_shown(panes)
        if following is None:
            return final, None
        if bound == FOREVER:
            # Nothing comes after the last row of the stream, wanted or not: the last window that holds it is the last,
            # but for those that were over before and wait to be told.
            ends = [int(pane) for pane in panes[-1:]] + ([] if latest == NEVER else [window.pane_of(latest)])
            bound = max(self.bound, max(ends) + window.range if ends else following)
        if following + window.range > bound:
            # Until a window has closed, an earlier row can still come, and the windows begin with that.
            return final, self.following
        present = np.unique(windows.column("window_start").to_numpy())
        starts, following = missing_starts(window, following, bound, present, MOST_EMPTY)
        if len(starts) == 0:
            return final, following
        fields = [(column.name, arrow_type(column.type)) for column in self.query.stream.columns]
        none = pa.schema([*fields, ("__t", pa.int64())]).empty_table()
        values = self._empty_values(none)
        if values.num_rows == 0:
            return final, following
        count = len(starts)
        columns: dict[str, Any] = {
            "window_start": pa.array(starts),
            "window_end": pa.array(starts + window.range),
            "rows": pa.array(np.zeros(count, dtype=np.int64)),
        }
        for field in output_schema(self.query):
            columns[field.name] = pa.repeat(values.column(field.name)[0].cast(field.type), count)
        columns["__lost"] = pa.nulls(count, pa.string())
        empty = pa.table(columns)
        both = pa.concat_tables([*(part.cast(empty.schema) for part in final.parts()), empty])
        return Answer.of(both.sort_by("window_start"), final.lossy), following

    def _empty_values(self, none: pa.Table) -> pa.Table:
        """The values of a window without rows; NULL for one that cannot be computed of nothing."""
        known = slice_columns(self.query)
        try:
            return self.bench.ask(empty_text(self.query, "no_rows"), {"no_rows": none}, known)
        except DataFaultError:
            return self.bench.ask(empty_text(careful_values(self.query), "no_rows"), {"no_rows": none}, known)

    # What the round record keeps

    def saved(self) -> dict[str, Any]:
        """Plain data beside the slices themselves."""
        saved: dict[str, Any] = {
            "bound": self.bound,
            "begins": self.begins,
            "following": self.following,
            "told": self.told,
            **({"holes": [hole.saved() for hole in self.holes]} if self.holes else {}),
        }
        if isinstance(self.slices, ClusterSlices):
            saved["chunks"] = [chunk.saved() for chunk in self.slices.chunks]
        return saved

    def live(self) -> int:
        """State of panes before this is not needed any more."""
        return self._needed(self.told, self.holes)

    def state_table(self) -> pa.Table:
        """All that it holds on the driver."""
        assert isinstance(self.slices, DriverSlices)
        return self.slices.table()

    @staticmethod
    def high(chunk: pa.Table) -> int:
        """The last pane of some state; it can go when that is not needed any more."""
        return int(pc.max(chunk.column("__pane")).as_py())

    @classmethod
    def restored(
        cls, query: Bound, bench: Bench, saved: dict[str, Any], tables: list[pa.Table], placed: ClusterSlices | None
    ) -> QueryRun:
        """Continue from what was saved: tables for the driver, or slices that are on the cluster."""
        holes = tuple(Span(*hole) for hole in saved.get("holes", ()))
        rest = saved["bound"], saved["begins"], saved["following"], saved.get("told", saved["bound"]), holes, holes
        if placed is not None:
            return cls(query, bench, placed, *rest)
        slices = DriverSlices(query, bench, tuple(table for table in tables if table.num_rows))
        run = cls(query, bench, slices, *rest)
        return replace(run, slices=slices.freed(run.live()).closing(run.bound))
