"""The rows of one side of a join that still may find partners.

Laws. The store is a value. A chunk is in the order of its first band value, so what lies in a range of it, and what is
below a bound, are slices that nobody copies; chunks grow by merging with others of their size, so there are few of
them, and each row is copied a few times only. A row that is `done` (below the bound of some band) is held no longer.

>>> rows = pa.table({"__id": [0, 1, 2], "__t": [7, 5, 9], "__k1": [7, 5, 9]})
>>> held = HeldRows(rows.slice(0, 0)).added(rows)
>>> held.near(6, 9).column("__id").to_pylist(), held.earliest
([0, 2], 5)
>>> held, matched = held.matching(np.array([0]), 7, 7)
>>> rest, alone = held.freed((8,))
>>> rest.rows, [table.column("__id").to_pylist() for table in alone]
(1, [[1]])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eventide.eventtime.instant import FOREVER, Instants
from eventide.plan.join_text import ID

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class HeldChunk:
    """Rows in the order of `__k1`; `matched` tells which had a partner, `unseen` how many more rows lie in memory."""

    rows: pa.Table
    matched: Flags
    unseen: int = 0

    @cached_property
    def first(self) -> Instants:
        """The values of the first band, ascending."""
        return self.values("__k1")

    @cached_property
    def times(self) -> Instants:
        """The times of the rows."""
        return self.values("__t")

    @cached_property
    def earliest(self) -> int:
        """The earliest time."""
        return int(self.times.min())

    @cached_property
    def earliest_alone(self) -> int:
        """The earliest time of a row without a partner."""
        alone = self.times[~self.matched]
        return int(alone.min()) if len(alone) else FOREVER

    def values(self, column: str) -> Instants:
        """A column of whole numbers without NULL."""
        found: Instants = self.rows.column(column).to_numpy()
        return found

    def done(self, bounds: Sequence[int]) -> Flags | int:
        """The rows below the bound of some band: how many from the first on, or a flag for each."""
        below = int(np.searchsorted(self.first, bounds[0]))
        more = [
            self.values(f"__k{place}") < bound
            for place, bound in enumerate(bounds[1:], 2)
            if self._least(place) < bound
        ]
        if below == self.rows.num_rows or not more:
            return below
        flags: Flags = np.logical_or.reduce([np.arange(self.rows.num_rows) < below, *more])
        return flags

    def chosen(self, flags: Flags) -> HeldChunk:
        """Some of the rows."""
        return HeldChunk(self.rows.filter(pa.array(flags)), self.matched[flags])

    def from_place(self, start: int) -> HeldChunk:
        """The rows from that place on; copied when most of the memory behind them is for nothing."""
        if start == 0:
            return self
        rows, matched, unseen = self.rows.slice(start), self.matched[start:], self.unseen + start
        if unseen > rows.num_rows:
            return HeldChunk(rows.take(pa.array(np.arange(rows.num_rows))), matched.copy())
        return HeldChunk(rows, matched, unseen)

    def least(self, column: str) -> int | None:
        """The least value of a column that carries time; None where all are NULL."""
        if column not in self._known:
            self._known[column] = _least_of(self.rows.column(column))
        return self._known[column]

    def _least(self, place: int) -> int:
        found = self.least(f"__k{place}")
        assert found is not None
        return found

    @cached_property
    def _known(self) -> dict[str, int | None]:
        return {}


@dataclass(frozen=True)
class HeldRows:
    """Chunks, the oldest first."""

    empty: pa.Table
    chunks: tuple[HeldChunk, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows are held."""
        return sum(chunk.rows.num_rows for chunk in self.chunks)

    @property
    def bytes(self) -> int:
        """Their memory."""
        return sum(chunk.rows.nbytes for chunk in self.chunks)

    @property
    def earliest(self) -> int:
        """The earliest time of a row; FOREVER where none is held."""
        return min((chunk.earliest for chunk in self.chunks), default=FOREVER)

    @property
    def earliest_alone(self) -> int:
        """The earliest time of a row without a partner; FOREVER where there is none."""
        return min((chunk.earliest_alone for chunk in self.chunks), default=FOREVER)

    def least(self, column: str) -> int | None:
        """The least value of a column that carries time; None where no row has one."""
        found = [least for chunk in self.chunks if (least := chunk.least(column)) is not None]
        return min(found, default=None)

    def added(self, rows: pa.Table, matched: Flags | None = None) -> HeldRows:
        """With more rows, in whatever order; chunks of about the same size become one."""
        if rows.num_rows == 0:
            return self
        flags = np.zeros(rows.num_rows, dtype=np.bool_) if matched is None else matched
        chunks = [*self.chunks, sorted_chunk(rows, flags)]
        while len(chunks) > 1 and chunks[-2].rows.num_rows <= 2 * chunks[-1].rows.num_rows:
            last, before = chunks.pop(), chunks.pop()
            both = pa.concat_tables([before.rows, last.rows])
            chunks.append(sorted_chunk(both, np.concatenate([before.matched, last.matched])))
        return replace(self, chunks=tuple(chunks))

    def near(self, low: int, high: int) -> pa.Table:
        """The rows whose first band value lies from `low` to `high`."""
        found = [chunk.rows.slice(start, stop - start) for chunk, start, stop in self._near(low, high)]
        return pa.concat_tables(found) if found else self.empty

    def matching(self, numbers: Instants, low: int, high: int) -> tuple[HeldRows, pa.Table]:
        """With these rows known to have had a partner; also those that had none before, as `__t` and `__id`."""
        chunks, new = list(self.chunks), []
        places = {id(chunk): place for place, chunk in enumerate(self.chunks)}
        for chunk, start, stop in self._near(low, high):
            found = np.isin(chunk.values(ID)[start:stop], numbers) & ~chunk.matched[start:stop]
            if not found.any():
                continue
            flags = chunk.matched.copy()
            flags[start:stop] |= found
            chunks[places[id(chunk)]] = HeldChunk(chunk.rows, flags, chunk.unseen)
            new.append(chunk.rows.slice(start, stop - start).select(["__t", ID]).filter(pa.array(found)))
        told = pa.concat_tables(new) if new else self.empty.select(["__t", ID])
        return replace(self, chunks=tuple(chunks)), told

    def would_free(self, bounds: Sequence[int]) -> bool:
        """Whether some row is below the bound of some band."""
        return any(np.any(chunk.done(bounds)) for chunk in self.chunks)

    def freed(self, bounds: Sequence[int]) -> tuple[HeldRows, list[pa.Table]]:
        """Without the rows below the bound of some band; also those of them that never had a partner."""
        chunks: list[HeldChunk] = []
        alone = []
        for chunk in self.chunks:
            done = chunk.done(bounds)
            if isinstance(done, int):
                told, rest = _alone(chunk.rows.slice(0, done), chunk.matched[:done]), chunk.from_place(done)
            else:
                told, rest = _alone(chunk.rows.filter(pa.array(done)), chunk.matched[done]), chunk.chosen(~done)
            alone += told
            chunks += [rest] if rest.rows.num_rows else []
        return replace(self, chunks=tuple(chunks)), alone

    def table(self) -> pa.Table:
        """All rows."""
        return pa.concat_tables([chunk.rows for chunk in self.chunks]) if self.chunks else self.empty

    def matched(self) -> pa.Table:
        """`__t` and `__id` of the rows that had a partner."""
        found = [chunk.rows.select(["__t", ID]).filter(pa.array(chunk.matched)) for chunk in self.chunks]
        return pa.concat_tables(found) if found else self.empty.select(["__t", ID])

    def _near(self, low: int, high: int) -> list[tuple[HeldChunk, int, int]]:
        found = []
        for chunk in self.chunks:
            start = int(np.searchsorted(chunk.first, low))
            stop = int(np.searchsorted(chunk.first, high, side="right"))
            if start < stop:
                found.append((chunk, start, stop))
        return found


def sorted_chunk(rows: pa.Table, matched: Flags) -> HeldChunk:
    """Rows in the order of their first band value."""
    first = rows.column("__k1").to_numpy()
    if len(first) > 1 and np.any(first[1:] < first[:-1]):
        order = np.argsort(first, kind="stable")
        rows, matched = rows.take(pa.array(order)), matched[order]
    return HeldChunk(rows.combine_chunks(), matched)


def _alone(rows: pa.Table, matched: Flags) -> list[pa.Table]:
    return [] if matched.all() else [rows.filter(pa.array(~matched))]


def _least_of(column: pa.ChunkedArray) -> int | None:
    least = pc.min(column)
    if not least.is_valid:
        return None
    kind: Any = least.type
    if pa.types.is_date32(kind):
        return int(least.value) * 86_400_000_000
    return int(least.value if pa.types.is_timestamp(kind) else least.as_py())
