"""Aggregates that close source by source: the groups of a source end with that source's own heartbeat.

Laws. Time is *closed* for a source by its own heartbeat or by the combined one, whichever is later. *Late row*: a row
is late for the windows that hold it and were emitted for its own source by a round before. *Final*: a group is emitted
once for each window, in the round in which time is closed for its source beyond the window's end; results of one window
may come in many rounds. Where they would be too many for one round, those of the windows that end first are emitted
(`flushed`). *Promise*: for whoever reads this one the combined heartbeat counts, which is never after that of a
source, or the end of the last window emitted while others wait.

Group-wise heartbeats are punctuations `[time <= t, sensor = 7]` (prodding thesis, section 6, after Tucker). Which panes
of which sources hold something is known to the driver; whether a slice is closed is a join with a small table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from eventide.engine.operators.frontier import OperatorFrontier, before, least_time
from eventide.engine.operators.open_windows import OpenTime
from eventide.engine.operators.operator import Ingested, InputProgress, Late, Output
from eventide.engine.operators.slices import SliceAggregate, result_layout, results_of, slice_layout
from eventide.engine.operators.windows import (
    closed_by,
    closed_by_each,
    closing_by_source,
    flushed,
    last_ending_by_source,
    needed_by_source,
    open_frontier,
    own_windows,
)
from eventide.engine.relations.executor import Executor, Statement
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.eventtime.arrays import grown
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.program import place_of
from eventide.plan.expressions.columns import Column, quoted
from eventide.plan.sql.merge import BY, compact_text

BY_SOURCE = Column(BY, "BIGINT")
OPEN = f"SELECT found.* FROM found JOIN closed ON found.{BY} = closed.{BY} WHERE found.__pane >= closed.__first"


def _none() -> Instants:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class HeldPanes:
    """Which panes of which sources hold something: arrays with one place for each pair."""

    panes: Instants = field(default_factory=_none)
    sources: Instants = field(default_factory=_none)

    def add(self, panes: Instants, sources: Instants) -> HeldPanes:
        """The panes held, with these pairs too."""
        both = np.stack([np.append(self.panes, panes), np.append(self.sources, sources)])
        found = np.unique(both, axis=1)
        return HeldPanes(found[0], found[1])

    def since(self, needed: Instants) -> HeldPanes:
        """Without the panes that their source does not need any more."""
        kept = self.panes >= needed[self.sources]
        return HeldPanes(self.panes[kept], self.sources[kept])


@dataclass(frozen=True)
class PerSourceAggregate(SliceAggregate):
    """The state of one query; arrays have one place for each source, by its number.

    `heartbeats` are those by which groups have been closed. Windows that end by `emitted` have been emitted for a
    source; those that end by `emitted_before`, for every one.
    """

    held: HeldPanes = field(default_factory=HeldPanes)
    closed_before: int = NEVER
    begins: int = NEVER
    heartbeats: Instants = field(default_factory=_none)
    emitted: Instants = field(default_factory=_none)
    emitted_before: int = NEVER

    @classmethod
    def start(cls, query: BoundQuery, executor: Executor, begins: int = NEVER) -> PerSourceAggregate:
        """A query that has seen nothing; rows before `begins` are not for it."""
        slices = Segments(slice_layout(query, BY_SOURCE))
        return cls(query, executor, slices, HeldPanes(), begins, begins, emitted_before=begins)

    @property
    def holds(self) -> Instants:
        """The panes that hold something of a source whose windows have not all been emitted."""
        return np.unique(self.held.panes)

    @property
    def emitted_to(self) -> int:
        """No result that was emitted has its last instant after this."""
        return before(int(np.append(self.emitted, self.emitted_before).max()))

    def layout(self, port: str) -> Layout:
        """The columns of slices, before their source has a number."""
        return slice_layout(self.query)

    def stamps(self, port: str, clock: int) -> Mapping[str, int]:
        """Nothing: rows that the clock stamps are refused here."""
        return {}

    # Rows come in

    def _closed(self, heartbeats: Instants, combined: int, count: int) -> Instants:
        """The time before which everything is closed, of every source by its number."""
        own = closed_by_each(self.query.panes, grown(heartbeats, count, NEVER))
        closed: Instants = np.maximum(own, combined)
        return closed

    def ingest(self, port: str, rows: Relation, sources: pa.Table | None = None) -> tuple[PerSourceAggregate, Ingested]:
        """Add slices; those of panes that are closed for their source are late."""
        if rows.rows == 0:
            return self, Ingested(0)
        assert sources is not None
        numbered = self.executor.relation(
            Statement(_numbered_text(self.query)), {"found": rows, "sources": sources}, self.slices.layout
        )
        pairs = self.executor.table(Statement(_pairs_text(self.query)), {"found": numbered})
        panes, by, weights = (pairs.column(name).to_numpy() for name in ("__pane", BY, "n"))
        emitted = grown(self.emitted, int(by.max()) + 1, self.emitted_before)
        missed = last_ending_by_source(self.query.panes, emitted)
        late, shut = panes < missed[by], panes < self.begins
        if not (late | shut).any():
            run = replace(self, slices=self.slices.add(numbered), held=self.held.add(panes, by))
            return run, Ingested(rows.weight)
        counted = np.maximum(needed_by_source(self.query.panes, emitted), self.begins)
        # Rows of before the query began were never its own, so they are not late for it.
        wanted, late_rows = int(weights[~shut].sum()), int(weights[late & ~shut].sum())
        shut = panes < counted[by]
        limits = pa.table({BY: np.arange(len(counted)), "__first": counted})
        accepted = self.executor.relation(Statement(OPEN), {"found": numbered, "closed": limits}, numbered.layout)
        run = replace(self, slices=self.slices.add(accepted), held=self.held.add(panes[~shut], by[~shut]))
        return run, Ingested(wanted, self._late(late_rows, sources, missed, counted) if late_rows else None)

    def _late(self, rows: int, sources: pa.Table, missed: Instants, counted: Instants) -> Late:
        by = sources.column(BY).to_numpy()
        own = grown(self.heartbeats, int(by.max()) + 1, NEVER)[by]
        # Sources without rows in this round may have higher numbers.
        place = np.minimum(by, len(missed) - 1)
        limits = sources.append_column("__missed", pa.array(missed[place]))
        limits = limits.append_column("__counted", pa.array(counted[place]))
        limits = limits.append_column("__behind", pa.array(own, mask=(own <= -EDGE) | (own >= EDGE)))
        named = enumerate(self.query.stream.source)
        same = " AND ".join(f"timed.{quoted(name)} <=> sources.__s{place}" for place, name in named)
        since = f" AND __pane >= {self.begins}" if self.begins != NEVER else ""
        join = f"JOIN sources ON {same}"
        condition, later = f"__pane < sources.__missed{since}", "__pane >= sources.__counted"
        return Late(rows, condition, join, {"sources": limits}, "sources.__behind", "sources.__missed", later)

    # Windows close

    def _after(self, inputs: Sequence[InputProgress]) -> tuple[int, Instants]:
        """The time that is closed for all, and the heartbeats of the sources, once inputs have come so far."""
        closed = max(self.closed_before, closed_by(self.query.panes, least_time(one.frontier for one in inputs)))
        size = max([len(self.heartbeats), int(self.held.sources.max(initial=-1)) + 1])
        heartbeats = grown(self.heartbeats, size, NEVER)
        for one in inputs:
            if one.heartbeats is not None:
                size = max(size, len(one.heartbeats))
                heartbeats = np.maximum(grown(heartbeats, size, NEVER), grown(one.heartbeats, size, NEVER))
        return closed, heartbeats

    def _closing(self, closed: Instants, heartbeats: Instants) -> pa.Table:
        """The pairs of pane and window that close, each for a source, with the heartbeat that closes it."""
        panes, by = self.held.panes, self.held.sources
        chosen = panes < closed[by]
        panes, by = panes[chosen], by[chosen]
        emitted = grown(self.emitted, len(closed), self.emitted_before)
        windows = own_windows(closing_by_source(self.query.panes, panes, by, emitted[by], closed[by]), self.begins)
        beats = heartbeats[windows.column("by").to_numpy()]
        return windows.append_column("heartbeat", pa.array(beats, pa.int64(), mask=beats == FOREVER))

    def would_emit(self, inputs: Sequence[InputProgress]) -> bool:
        """Whether inputs that have come so far, and what sources have promised, would close a window."""
        combined, heartbeats = self._after(inputs)
        return bool(self._closing(self._closed(heartbeats, combined, len(heartbeats)), heartbeats).num_rows)

    def advance(self, inputs: Sequence[InputProgress], limit: int | None = None) -> tuple[PerSourceAggregate, Output]:
        """Emit what closes, for each source by its own heartbeat; then free."""
        combined, heartbeats = self._after(inputs)
        closed = self._closed(heartbeats, combined, len(heartbeats))
        shown = np.maximum(heartbeats, least_time(one.frontier for one in inputs))
        windows = self._closing(closed, shown)

        def compute(some: pa.Table) -> Relation:
            return results_of(self.executor, self.query, self.slices, some)

        final, last = flushed(self.executor, windows, None if combined == FOREVER else limit, compute)
        emitted, for_all = closed, combined
        if last is not None:
            so_far = grown(self.emitted, len(closed), self.emitted_before)
            emitted, for_all = (
                np.maximum(so_far, np.minimum(closed, last)),
                max(self.emitted_before, min(combined, last)),
            )
        run = replace(self, closed_before=combined, heartbeats=heartbeats, emitted=emitted, emitted_before=for_all)
        return run._freed(), Output.of(result_layout(self.query), *final)

    def _freed(self) -> PerSourceAggregate:
        """Without the panes that their source does not need any more."""
        needed = needed_by_source(self.query.panes, self.emitted)
        held = self.held.since(needed) if len(self.held.panes) else self.held
        slices = self.slices.since("__pane", int(held.panes.min()) if len(held.panes) else FOREVER)
        slices = Segments(slices.layout).add(*(_trimmed(part, needed) for part in slices.parts))
        text = compact_text(self.query, f"({OPEN.replace('found', 'segments')})", BY)
        if self.query.keeps_rows:
            text = OPEN.replace("found", "segments")
        limits = pa.table({BY: np.arange(len(needed)), "__first": needed})
        merged = slices.merged(
            lambda some: self.executor.relation(
                Statement(text, self.query.driver_exact), {"segments": some, "closed": limits}, slices.layout
            )
        )
        return replace(self, held=held, slices=merged)

    @property
    def frontier(self) -> OperatorFrontier:
        """Later results are of windows that are open for all sources."""
        return open_frontier(self.query, self.emitted_before)

    def frontier_at(self, inputs: Sequence[InputProgress]) -> OperatorFrontier:
        """Its frontier once its inputs have come so far."""
        heartbeat = least_time(one.frontier for one in inputs)
        return self.frontier if heartbeat == NEVER else open_frontier(self.query, self._after(inputs)[0])

    def open(self) -> OpenTime:
        """The open windows, for those who ask why."""
        return OpenTime.of(self.query, self.closed_before, self.holds)

    # What the round record keeps

    def snapshot(self) -> dict[str, Any]:
        """What is saved besides the slices, as plain data; the names of the sources are saved with the stream."""
        closed = self._closed(self.heartbeats, self.closed_before, len(self.heartbeats))
        # Unless windows wait, all that is closed has been emitted, and need not be said twice.
        emitted = None if np.array_equal(closed, self.emitted) else self.emitted.tolist()
        return {
            "closed_before": self.closed_before,
            "begins": self.begins,
            "heartbeats": self.heartbeats.tolist(),
            "emitted": emitted,
            "emitted_before": self.emitted_before,
        }

    def restored(self, saved: Mapping[str, Any], state: Mapping[str, Segments]) -> PerSourceAggregate:
        """The operator as it was saved, without slices that were emitted before."""
        run = replace(
            self,
            closed_before=saved["closed_before"],
            begins=saved["begins"],
            heartbeats=np.array(saved["heartbeats"], dtype=np.int64),
            emitted_before=saved["emitted_before"],
            slices=state["slices"],
        )
        closed = run._closed(run.heartbeats, run.closed_before, len(run.heartbeats))
        emitted = closed if saved["emitted"] is None else np.array(saved["emitted"], dtype=np.int64)
        if not run.slices.parts:
            return replace(run, emitted=emitted)
        pairs = self.executor.table(Statement(_pairs_text(self.query)), {"found": run.slices})
        held = HeldPanes().add(pairs.column("__pane").to_numpy(), pairs.column(BY).to_numpy())
        size = max(len(emitted), int(held.sources.max()) + 1)
        return replace(run, emitted=grown(emitted, size, run.emitted_before), held=held)._freed()


def source_keys(query: BoundQuery) -> tuple[str, ...]:
    """The columns of a slice that tell its source, in the order in which the stream names them."""
    found = (place_of(name, query.query) for name in query.stream.source)
    return tuple(f"__k{place}" for place in found if place is not None)


def _numbered_text(query: BoundQuery) -> str:
    """Slices with the number of their source."""
    keys = enumerate(source_keys(query))
    same = " AND ".join(f"found.{key} <=> sources.__s{place}" for place, key in keys)
    return f"SELECT found.*, sources.{BY} FROM found JOIN sources ON {same}"


def _pairs_text(query: BoundQuery) -> str:
    """The SQL for the panes of each source, and how many rows of the stream they hold."""
    weight = "count(*)" if query.keeps_rows else "sum(__n)"
    return f"SELECT __pane, {BY}, CAST({weight} AS BIGINT) AS n FROM found GROUP BY __pane, {BY}"


def _trimmed(part: Relation, needed: Instants) -> Relation:
    """A relation of the driver without the rows that their source does not need any more."""
    if part.table is None:
        return part
    panes, by = (part.table.column(name).to_numpy() for name in ("__pane", BY))
    kept = panes >= needed[by]
    return part if kept.all() else part.kept(pa.array(kept))
