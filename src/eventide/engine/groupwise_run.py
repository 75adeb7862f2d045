"""A query that closes source by source while it runs: the groups of a source end with that source's own heartbeat.

Laws. The *bound* of a source is that of its own heartbeat or of the combined one, whichever is later; a source that the
pacemaker does not know yet has the combined one. *Late row*: a row is late when its pane was closed for its own source
by a round before. *Final*: a group is answered once for each window, in the round in which the bound of its source
passes the window's end; results of one window may come in many rounds. Where they would be too many for one round,
those of the windows that end first are told (`slow_flush`). *Promised*: for queries that read this one the combined
bound counts, which is never after that of a source, or the end of the last window told while others wait.

Group-wise heartbeats are punctuations `[time <= t, sensor = 7]` (prodding thesis, section 6, after Tucker).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.answers import nothing
from eventide.engine.cluster_slices import Chunk
from eventide.engine.query_run import QueryRun
from eventide.engine.row_run import RowRun
from eventide.engine.slow_flush import flushed
from eventide.engine.source_slices import SourceSlices
from eventide.engine.source_windows import bounds_of, numbers_of
from eventide.engine.taken import Answer, Answers, Taken, rows_in
from eventide.engine.windows import bound_of, needed_from
from eventide.engine.workbench import Bench
from eventide.eventtime.instant import FOREVER, NEVER, Instants
from eventide.eventtime.per_source import grown
from eventide.plan.bound import Bound
from eventide.plan.by_source import among, place_of


def _no_beats() -> Instants:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class GroupwiseRun:
    """The state of one query; arrays have one place for each source, `names` says which.

    `beats` are the heartbeats by which groups have been closed, `promises` those of the round under way. Windows that
    end by `told` have been answered for a source; those that end by `told_for_all`, for every one.
    """

    query: Bound
    bench: Bench
    slices: SourceSlices
    bound: int = NEVER
    begins: int = NEVER
    beats: Instants = field(default_factory=_no_beats)
    told: Instants = field(default_factory=_no_beats)
    told_for_all: int = NEVER
    names: pa.Array = field(default_factory=lambda: pa.array([], pa.string()))
    promises: Instants | None = None

    @classmethod
    def start(cls, query: Bound, bench: Bench, begins: int = NEVER) -> GroupwiseRun:
        """A query that has seen nothing; rows before `begins` are not for it."""
        return cls(query, bench, SourceSlices(query, bench, source_keys(query)), begins, begins, told_for_all=begins)

    @property
    def holds(self) -> Instants:
        """What is open: panes that hold something of a source whose windows have not all been answered."""
        return self.slices.panes

    def reading(self, query: Bound) -> GroupwiseRun:
        """The same: it reads its stream itself."""
        return self

    def stamped(self, chunk: pa.Table | Chunk, clock: int) -> pa.Table | Chunk:
        """Partials as they are: rows that the clock stamps are refused here."""
        return chunk

    def meeting(self, names: pa.Array, promises: Instants | None = None) -> GroupwiseRun:
        """With the names of the sources by number and, once these are known, what each has promised in this round."""
        if promises is None:
            return replace(self, names=names)
        return replace(self, names=names, promises=promises, slices=self.slices.numbered(names))

    def _bounds(self, beats: Instants, bound: int) -> Instants:
        """The bound of every source by its number; in the last place that of all others."""
        own = grown(beats, len(self.names), NEVER)
        bounds: Instants = np.append(np.maximum(bounds_of(self.query.panes, own), bound), bound)
        return bounds

    def _beats_after(self) -> Instants:
        """The heartbeats of the sources once this round is over."""
        if self.promises is None:
            return self.beats
        size = max(len(self.beats), len(self.promises))
        after: Instants = np.maximum(grown(self.beats, size, NEVER), grown(self.promises, size, NEVER))
        return after

    def take(self, chunk: pa.Table | Chunk) -> tuple[GroupwiseRun, Taken]:
        """Add the partials of a round; those of panes that are closed for their source are late."""
        assert isinstance(chunk, pa.Table)
        wanted = rows_in(chunk, self.query)
        if chunk.num_rows == 0:
            return self, Taken(wanted, chunk)
        panes = np.asarray(chunk.column("__pane").to_numpy(), dtype=np.int64)
        bounds = self._bounds(self.beats, self.bound)
        closed = panes < bounds[numbers_of(chunk, source_keys(self.query), self.names)]
        if not closed.any():
            return replace(self, slices=self.slices.added(chunk)), Taken(wanted, chunk)
        # Rows of before the query began were never its own, so they are not late for it.
        before = panes < self.begins
        late, accepted = chunk.filter(pa.array(closed & ~before)), chunk.filter(pa.array(~closed))
        lost = rows_in(late, self.query)
        late_panes = tuple(pc.unique(late.column("__pane")).to_pylist())
        # A pane that is closed for one source may be open for others, whose rows need not be fetched.
        named = [pc.unique(late.column(key)).to_pylist() for key in source_keys(self.query)]
        where = among(self.query.stream, named) if late.num_rows else None
        taken = Taken(rows_in(accepted, self.query) + lost, accepted, late_panes, lost, late_where=where)
        return replace(self, slices=self.slices.added(accepted)), taken

    def late_among(self, rows: pa.Table, combined: int) -> tuple[pa.Table, Instants]:
        """Of the rows of some panes, those that are late for their own source, and the heartbeats they came behind."""
        number = numbers_of(rows, self.query.stream.source, self.names)
        window = self.query.panes
        times = np.asarray(rows.column("__t").to_numpy(), dtype=np.int64)
        panes = times - (times - window.offset) % window.pane
        late = (panes < self._bounds(self.beats, self.bound)[number]) & (panes >= self.begins)
        beats = np.maximum(np.append(grown(self.beats, len(self.names), NEVER), NEVER), combined)
        return rows.filter(pa.array(late)), beats[number[late]]

    def would_close(self, heartbeat: int) -> bool:
        """Whether a combined heartbeat, and what the sources have promised, would answer a window."""
        return bool(self._closing(heartbeat).num_rows)

    def _closing(self, heartbeat: int) -> pa.Table:
        return self.slices.closing(self._told(), self._bounds(self._beats_after(), self._bound_after(heartbeat)))

    def _told(self) -> Instants:
        """Up to where each source has been answered, by its number; in the last place, where all others have."""
        told: Instants = np.append(grown(self.told, len(self.names), self.told_for_all), self.told_for_all)
        return told

    def advance(
        self, heartbeat: int, taken: Taken | None = None, latest: int = NEVER, most: int | None = None
    ) -> tuple[GroupwiseRun, Answers]:
        """Answer what closes, for each source by its own bound; then free.

        `most`: so many results are told at once, but when everything ends.
        """
        windows = self._closing(heartbeat)
        bound, beats = self._bound_after(heartbeat), self._beats_after()
        answer, last = flushed(windows, None if bound == FOREVER else most, self.slices.answer)
        told, for_all = self._bounds(beats, bound), bound
        if last is not None:
            told, for_all = np.maximum(self._told(), np.minimum(told, last)), max(self.told_for_all, min(bound, last))
        run = replace(self, bound=bound, beats=beats, promises=None, told=told[:-1], told_for_all=for_all)
        nobody = Answer.of(nothing(self.query))
        final = nobody if answer is None else self._shown(answer, beats, heartbeat)
        return replace(run, slices=self.slices.freed(told)), Answers(final, nobody)

    def _shown(self, answer: Answer, beats: Instants, combined: int) -> Answer:
        """The answer with the heartbeat that closed each result."""
        keys = tuple(self.query.keys[place].name for place in _places(self.query))
        own = np.maximum(np.append(grown(beats, len(self.names), NEVER), NEVER), combined)
        parts = []
        for part in answer.parts():
            closed_by = own[numbers_of(part, keys, self.names)]
            shown = pa.array(closed_by, pa.int64(), mask=closed_by == FOREVER)
            parts.append(part.append_column("heartbeat", shown))
        return Answer(answer.rows, lambda: iter(parts), answer.lossy)

    def _bound_after(self, heartbeat: int) -> int:
        return max(self.bound, bound_of(self.query.panes, heartbeat))

    def promised(self, heartbeat: int = NEVER) -> int:
        """Every later result has its last instant after this; `heartbeat`: once that has been given."""
        return _before(self.told_for_all if heartbeat == NEVER else self._bound_after(heartbeat))

    def reached(self) -> int:
        """No result that was told has its last instant after this."""
        return _before(int(self._told().max()))

    # What the round record keeps

    def saved(self) -> dict[str, Any]:
        """Plain data beside the slices themselves; the names of the sources are saved with the stream."""
        closed = np.maximum(bounds_of(self.query.panes, self.beats), self.bound)
        # Unless windows wait, all that is closed has been told, and need not be said twice.
        told = None if np.array_equal(closed, self.told) else self.told.tolist()
        saved = {"bound": self.bound, "begins": self.begins, "beats": self.beats.tolist()}
        return {**saved, "told": told, "told_for_all": self.told_for_all}

    def live(self) -> int:
        """State of panes before this is not needed by any source."""
        panes = self.slices.panes
        return int(panes[0]) if len(panes) else needed_from(self.query.panes, self.told_for_all)

    def state_table(self) -> pa.Table:
        """All that it holds."""
        return self.slices.table()

    @staticmethod
    def high(chunk: pa.Table) -> int:
        """The last pane of some state; it can go when that is not needed any more."""
        return int(pc.max(chunk.column("__pane")).as_py())

    @classmethod
    def restored(
        cls, query: Bound, bench: Bench, saved: dict[str, Any], tables: list[pa.Table], placed: object = None
    ) -> GroupwiseRun:
        """Continue from what was saved; what was answered before is let go in the first round."""
        slices = SourceSlices(query, bench, source_keys(query), fresh=tuple(t for t in tables if t.num_rows))
        beats = np.array(saved["beats"], dtype=np.int64)
        closed = np.maximum(bounds_of(query.panes, beats), saved["bound"])
        told = closed if saved["told"] is None else np.array(saved["told"], dtype=np.int64)
        return cls(query, bench, slices, saved["bound"], saved["begins"], beats, told, saved["told_for_all"])


def met(
    run: QueryRun | RowRun | GroupwiseRun, names: pa.Array, promises: Instants | None
) -> QueryRun | RowRun | GroupwiseRun:
    """A run that knows the sources of its stream, where it closes source by source; any other as it is."""
    return run.meeting(names, promises) if isinstance(run, GroupwiseRun) else run


def late_among(run: QueryRun | RowRun | GroupwiseRun, rows: pa.Table, combined: int) -> tuple[pa.Table, int | Instants]:
    """Of the rows of the panes that had late ones, those that are late, and the heartbeat that they came behind."""
    return run.late_among(rows, combined) if isinstance(run, GroupwiseRun) else (rows, combined)


def told_to(run: QueryRun | RowRun | GroupwiseRun) -> int:
    """No result that was told has its last instant after this."""
    return run.reached() if isinstance(run, GroupwiseRun) else run.promised()


def _places(query: Bound) -> tuple[int, ...]:
    """Which groups are the columns that name a source, in the order in which the stream names them."""
    found = (place_of(name, query.query) for name in query.stream.source)
    return tuple(place for place in found if place is not None)


def source_keys(query: Bound) -> tuple[str, ...]:
    """The columns of a slice that tell its source."""
    return tuple(f"__k{place}" for place in _places(query))


def _before(bound: int) -> int:
    return bound if bound in (NEVER, FOREVER) else bound - 1
