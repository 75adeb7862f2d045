"""Aggregates over windows of time: slices come in, windows close, what is done with is forgotten.

Laws. *Late row*: a row is late for a window that holds it and was emitted by a round before, and for no other; it
counts in every window that is still open, however far behind the heartbeat it is. A heartbeat closes windows: that a
row is at or before it says nothing by itself. *Final*: a window is emitted once, in the round whose heartbeat passes
its end, or later where that would be too many results for one round (see `flushed`); then `emitted_before` is behind
`closed_before`. *Promise*: every later result has its last instant after the frontier's time; it is the heartbeat of
whoever reads this one. *Revised*: with `retain`, a row is not late for a window that is retained: its group is emitted
again for every window that was emitted, holds it and is retained; a window is retained until the heartbeat is `retain`
beyond its end. *Set aside*: a window that meets a hole of what it reads waits until that is settled, also when time is
closed beyond it (see `holes`); the promise is before the first such window.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.engine.operators.frontier import OperatorFrontier, after, least_time
from eventide.engine.operators.open_windows import OpenTime
from eventide.engine.operators.operator import Ingested, InputProgress, Late, Output
from eventide.engine.operators.slices import SliceAggregate, compacted, result_layout, results_of, slice_layout
from eventide.engine.operators.time_range import from_time
from eventide.engine.operators.windows import (
    closed_by,
    closing,
    first_end,
    first_ending_after,
    first_start,
    flushed,
    holding,
    last_ending_by,
    meeting,
    missing_starts,
    needed_from,
    open_frontier,
    outside,
    own_windows,
)
from eventide.engine.relations.executor import Executor, Inputs, Statement, one_row
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.errors import DataFaultError
from eventide.eventtime.instant import FOREVER, NEVER, Instants
from eventide.eventtime.punctuation import Span, merged
from eventide.plan.bound.query import BoundQuery
from eventide.plan.bound.rows import slice_columns
from eventide.plan.declared.window import SameWindow
from eventide.plan.sql.merge import empty_text, fail_safe_values
from eventide.sources.arrow_types import arrow_type

MOST_EMPTY = 100_000
"""So many windows are closed in one round at most, where empty ones are emitted too; the others follow later."""

WEIGHT = Statement(
    "SELECT sum(w) AS n FROM (SELECT {weight} AS w FROM found CROSS JOIN span "
    "WHERE found.__pane >= span.__first AND found.__pane < span.__last)"
)


@dataclass(frozen=True)
class WindowAggregate(SliceAggregate):
    """The state of one query: its slices, and the time before which everything is closed."""

    closed_before: int = NEVER
    begins: int = NEVER
    following: int | None = None
    emitted_before: int = NEVER
    """Every window that ends by then, and meets no hole, has been emitted; `closed_before`, unless some wait."""
    holes: tuple[Span, ...] = ()
    """What was set aside when windows were emitted last."""
    facing: tuple[Span, ...] = ()
    """What is set aside now."""
    changed: tuple[Relation, ...] = ()
    """Slices that came since it last advanced into panes of windows that were emitted."""
    passed: int = NEVER
    """What time has passed, wherever that is within a pane: by it windows are retained."""

    @classmethod
    def start(cls, query: BoundQuery, executor: Executor, begins: int = NEVER) -> WindowAggregate:
        """A query that has seen nothing; rows before `begins` are not for it."""
        return cls(query, executor, Segments(slice_layout(query)), begins, begins, emitted_before=begins)

    @property
    def holds(self) -> Instants:
        """The panes that hold something and whose windows have not all been emitted."""
        panes = self.slices.panes
        return panes[panes >= self._needed(self.emitted_before, self.holes)]

    def layout(self, port: str) -> Layout:
        """The layout of the slices."""
        return self.slices.layout

    def stamps(self, port: str, clock: int) -> Mapping[str, int]:
        """The pane of the clock, for rows without a time of their own."""
        times = {"__t": clock} if self.query.keeps_rows else {}
        return {"__pane": self.query.panes.pane_of(clock), **times}

    # Rows come in

    @property
    def _over_and_done(self) -> int:
        """Windows that end by then were emitted and are not retained: they take no rows, not even to revise."""
        retain = self.query.query.retain
        if not retain or self.passed in (NEVER, FOREVER):
            return self.emitted_before
        return min(self.emitted_before, self.passed - retain)

    def ingest(self, port: str, rows: Relation, sources: pa.Table | None = None) -> tuple[WindowAggregate, Ingested]:
        """Add slices to the windows that are open, or can be revised; a row is late for all others that hold it."""
        window, low = self.query.panes, rows.least("__pane")
        emitted = last_ending_by(window, self.emitted_before)
        if low is None or low >= max(emitted, self.begins):
            return replace(self, slices=self.slices.add(rows)), Ingested(rows.weight)
        done = self._over_and_done
        # What was set aside comes from a queue, which has refused all that was late.
        aside = [hole.start for hole in self.holes]
        counted = min([max(first_ending_after(window, done), self.begins), *aside])
        missed = min([last_ending_by(window, done), *aside])
        accepted = from_time(self.executor, rows, counted, "__pane")
        # Rows of before the query began were never its own, so they are not late for it.
        foreign = self._weight(rows, low, self.begins) if low < self.begins else 0
        wanted, late, revising = rows.weight - foreign, None, 0
        if low < missed and self.begins < missed:
            late_rows = self._weight(rows, max(low, self.begins), missed)
            late = Late.of_windows(late_rows, missed, counted, self.begins) if late_rows else None
        run = replace(self, slices=self.slices.add(accepted))
        if self.query.query.retain and (accepted.least("__pane") or 0) < emitted:
            revising = self._weight(accepted, counted, emitted)
            run = replace(run, changed=(*self.changed, accepted)) if revising else run
        return run, Ingested(wanted, late, revising)

    def _weight(self, rows: Relation, first: int, last: int) -> int:
        """How many rows of the stream the slices of some panes hold."""
        weight = "1" if self.query.keeps_rows else "found.__n"
        statement = replace(WEIGHT, sql=WEIGHT.sql.format(weight=weight))
        inputs: Inputs = {"found": rows, "span": one_row(first=first, last=last)}
        return int(self.executor.table(statement, inputs).column("n")[0].as_py() or 0)

    # Windows close

    def _before(self, inputs: Sequence[InputProgress]) -> WindowAggregate:
        """A copy that knows the holes of its input: what is set aside there now."""
        holes = merged(hole for one in inputs for hole in one.frontier.holes)
        return self if holes == self.facing else replace(self, facing=holes)

    def would_emit(self, inputs: Sequence[InputProgress]) -> bool:
        """Whether inputs that have come so far would close a window."""
        return self._before(inputs)._would_close(least_time(one.frontier for one in inputs))

    def _would_close(self, heartbeat: int) -> bool:
        if heartbeat == FOREVER:
            # Without the list of all windows, which may be long.
            return self.emitted_before < FOREVER and (len(self.holds) > 0 or self.following is not None)
        if self._settled(self.slices.panes) is not None:
            return True
        bound = closed_by(self.query.panes, heartbeat)
        if bound <= self.emitted_before:
            return False
        if self.query.panes.empty and self.following is not None:
            return self.following + self.query.panes.range <= bound
        windows = self._closing(self.slices.panes, self.emitted_before, bound)
        return bool(outside(windows, self.facing).num_rows)

    def _closing(self, panes: Instants, after: int, bound: int) -> pa.Table:
        """Every pair of a pane and a window of its own that ends after one time and by another."""
        return own_windows(closing(self.query.panes, panes, after, bound), self.begins)

    def _settled(self, panes: Instants) -> pa.Table | None:
        """The windows that waited for something set aside, and do not any more; None where there are none."""
        if self.holes == self.facing:
            return None
        over = self._closing(panes, NEVER, self.emitted_before)
        found = outside(over.filter(meeting(over, self.holes)), self.facing)
        return self._shown(found) if found.num_rows else None

    def _needed(self, emitted_before: int, holes: tuple[Span, ...]) -> int:
        """The first pane that a window needs which is not emitted yet, or is retained."""
        first = needed_from(self.query.panes, emitted_before, self.query.query.retain)
        return min(first, first_start(self.query.panes, holes))

    @property
    def needed(self) -> int:
        """The first pane that a window needs which is not emitted yet, or is retained."""
        return self._needed(self.emitted_before, self.facing)

    def advance(self, inputs: Sequence[InputProgress], limit: int | None = None) -> tuple[WindowAggregate, Output]:
        """Emit the windows that close, and again those that late rows have changed; then free."""
        latest = max((one.latest for one in inputs), default=NEVER)
        return self._before(inputs)._advance(least_time(one.frontier for one in inputs), latest, limit)

    def _advance(self, heartbeat: int, latest: int, limit: int | None) -> tuple[WindowAggregate, Output]:
        """`latest` is the largest time of the stream: when all ends, windows without rows are emitted up to there."""
        window = self.query.panes
        closed = self._closed_after(heartbeat)
        slices = compacted(self.executor, self.query, self.slices)
        panes = slices.panes
        limit = None if closed == FOREVER else limit
        emitted = self._shown_to(closed, panes, limit)
        settled = self._settled(panes)
        windows = self._shown(outside(self._closing(panes, self.emitted_before, emitted), self.facing))

        def compute(some: pa.Table) -> Relation:
            return results_of(self.executor, self.query, slices, some)

        found, last = flushed(self.executor, windows, None if window.empty else limit, compute)
        emitted = emitted if last is None else last
        found = [compute(settled), *found] if settled is not None else found
        final, following = self._with_empty(found, panes, windows, emitted, latest)
        layout = result_layout(self.query)
        output = Output(Segments(layout).add(*final), Segments(layout).add(*self._revised(slices)))
        slices = slices.trimmed("__pane", self._needed(emitted, self.facing))
        run = replace(
            self,
            slices=slices,
            closed_before=closed,
            passed=max(self.passed, after(heartbeat)),
            following=following,
            emitted_before=emitted,
            holes=self.facing,
            changed=(),
        )
        return run, output

    def _revised(self, slices: Segments) -> list[Relation]:
        """Results of windows that were emitted, of the groups that late rows have changed."""
        if not self.changed:
            return []
        changed = Segments(slices.layout, self.changed)
        panes = changed.panes
        panes = panes[panes < last_ending_by(self.query.panes, self.emitted_before)]
        again = holding(self.query.panes, panes, self.passed - self.query.query.retain, self.emitted_before)
        again = own_windows(again, self.begins)
        if again.num_rows == 0:
            return []
        return [results_of(self.executor, self.query, slices, self._shown(again), changed)]

    @property
    def frontier(self) -> OperatorFrontier:
        """Later results are of windows that are still open."""
        return self._frontier(self.emitted_before)

    def frontier_at(self, inputs: Sequence[InputProgress]) -> OperatorFrontier:
        """Its frontier once its inputs have come so far."""
        run = self._before(inputs)
        heartbeat = least_time(one.frontier for one in inputs)
        return run._frontier(run.emitted_before if heartbeat == NEVER else run._closed_after(heartbeat))

    def _frontier(self, limit: int) -> OperatorFrontier:
        if self.facing:
            limit = min(limit, first_end(self.query.panes, self.facing) - 1)
        return open_frontier(self.query, limit)

    def _closed_after(self, heartbeat: int) -> int:
        """Before this, everything is closed after a heartbeat: but for windows that are too many for one round."""
        window = self.query.panes
        closed = max(self.closed_before, closed_by(window, heartbeat))
        first = self._first_shown(self.slices.panes) if window.empty and closed < FOREVER else None
        if first is None:
            return closed
        return max(self.closed_before, min(closed, first + (MOST_EMPTY - 1) * window.slide + window.range))

    def _shown_to(self, closed: int, panes: Instants, limit: int | None) -> int:
        """Up to here windows are emitted that are emitted even if they are empty: each of them is one result."""
        window = self.query.panes
        first = self._first_shown(panes) if window.empty and limit is not None else None
        if first is None or limit is None:
            return closed
        return max(self.emitted_before, min(closed, first + (limit - 1) * window.slide + window.range))

    def _first_shown(self, panes: Instants) -> int | None:
        """The start of the next window that is emitted even if it is empty; None before the first row."""
        window = self.query.panes
        if self.following is not None or len(panes) == 0:
            return self.following
        first = max(window.starts_covering(int(panes[0]))[0], first_ending_after(window, self.emitted_before))
        return max(first, self.begins)

    def _shown(self, windows: pa.Table) -> pa.Table:
        """The pairs of pane and window with the start that is shown."""
        if not isinstance(self.query.query.window, SameWindow):
            return windows
        starts = self.query.windows.start_of(windows.column("window_end").to_numpy())
        return windows.set_column(windows.column_names.index("window_start"), "window_start", pa.array(starts))

    def _with_empty(
        self, final: list[Relation], panes: Instants, windows: pa.Table, emitted: int, latest: int
    ) -> tuple[list[Relation], int | None]:
        """With a row for every window that closed without one, where the query asks for them."""
        window = self.query.panes
        if not window.empty:
            return final, None
        following = self._first_shown(panes)
        if following is None:
            return final, None
        most: int | None = MOST_EMPTY
        if emitted == FOREVER:
            # Nothing comes after the last row of the stream, wanted or not: the last window that holds it is the last,
            # but for those that were over before and wait to be emitted. No round follows, so all of them go now.
            ends = [int(pane) for pane in panes[-1:]] + ([] if latest == NEVER else [window.pane_of(latest)])
            emitted, most = max(self.closed_before, max(ends) + window.range if ends else following), None
        if following + window.range > emitted:
            # Until a window has closed, an earlier row can still come, and the windows begin with that.
            return final, self.following
        present = np.unique(windows.column("window_start").to_numpy())
        starts, following = missing_starts(window, following, emitted, present, most)
        values = self._empty_values() if len(starts) else None
        if values is None or values.num_rows == 0:
            return final, following
        count = len(starts)
        columns: dict[str, Any] = {
            "window_start": pa.array(starts),
            "window_end": pa.array(starts + window.range),
            "rows": pa.array(np.zeros(count, dtype=np.int64)),
        }
        for column in self.query.outputs:
            value = values.column(column.name)[0].cast(arrow_type(column.type))
            columns[column.name] = pa.repeat(value, count)
        columns["__lost"] = pa.nulls(count, pa.string())
        layout = result_layout(self.query)
        empty = pa.table(columns).cast(layout.schema)
        tables = [part.table for part in final if part.table is not None]
        if len(tables) < len(final):
            return [*final, Relation.of_table(layout, empty)], following
        both = pa.concat_tables([*tables, empty]).sort_by("window_start")
        return [Relation.of_table(layout, both, any(part.lossy for part in final))], following

    def _empty_values(self) -> pa.Table:
        """The values of a window without rows; NULL for one that cannot be computed of nothing."""
        known = slice_columns(self.query)
        fields = [(column.name, arrow_type(column.type)) for column in self.query.stream.columns]
        none = {"no_rows": pa.schema([*fields, ("__t", pa.int64())]).empty_table()}
        try:
            text = empty_text(self.query, "no_rows")
            return self.executor.table(Statement(text, self.query.driver_exact, inner=known), none)
        except DataFaultError:
            text = empty_text(fail_safe_values(self.query), "no_rows")
            return self.executor.table(Statement(text, self.query.driver_exact, inner=known), none)

    def early(self) -> EarlyWindowAggregate:
        """A copy that answers a prod."""
        return EarlyWindowAggregate(**vars(self))

    def open(self) -> OpenTime:
        """The open windows, for those who ask why."""
        return OpenTime.of(self.query, self.closed_before, self.holds, self.holes)

    # What the round record keeps

    def snapshot(self) -> dict[str, Any]:
        """What is saved besides the slices, as plain data."""
        return {
            "closed_before": self.closed_before,
            "passed": self.passed,
            "begins": self.begins,
            "following": self.following,
            "emitted_before": self.emitted_before,
            "holes": [hole.saved() for hole in self.holes],
        }

    def restored(self, saved: Mapping[str, Any], state: Mapping[str, Segments]) -> WindowAggregate:
        """The operator as it was saved; its slices may still hold some that are not needed any more."""
        holes = tuple(Span(*hole) for hole in saved["holes"])
        run = replace(
            self,
            closed_before=saved["closed_before"],
            passed=saved.get("passed", saved["closed_before"]),
            begins=saved["begins"],
            following=saved["following"],
            emitted_before=saved["emitted_before"],
            holes=holes,
            facing=holes,
        )
        return replace(run, slices=state["slices"].trimmed("__pane", run.needed))


@dataclass(frozen=True)
class EarlyWindowAggregate(WindowAggregate):
    """A query over windows of time that is asked early: it emits from closed and open slices alike."""

    def _advance(self, heartbeat: int, latest: int, limit: int | None) -> tuple[WindowAggregate, Output]:
        """Emit what it would at this heartbeat, however much that is; slices are left as they are."""
        closed = self._closed_after(heartbeat)
        panes = self.slices.panes
        windows = self._shown(self._closing(panes, self.emitted_before, closed))
        if (settled := self._settled(panes)) is not None:
            windows = pa.concat_tables([settled, windows])
        final = [results_of(self.executor, self.query, self.slices, windows)] if windows.num_rows else []
        final, following = self._with_empty(final, panes, windows, closed, latest)
        run = replace(self, closed_before=closed, following=following, emitted_before=closed)
        return run, Output.of(result_layout(self.query), *final)
