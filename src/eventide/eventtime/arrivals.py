"""Arrivals: the summary of one round from which every policy learns, and parts of it.

Law: rows of one round arrive together, at its clock. A policy sees cells, never rows: a cell says how many rows of one
source arrived with times from `earliest` to `latest`. A row alone is a round of one cell, so per row and per round are
the same code. One cell per source is enough to be correct; several (one per stretch of time) keep a single straggler
from looking like a whole late round.

>>> a = Arrivals.of_rows(clock=100, source=[1, 0, 1], time=[90, 95, 97], cell_width=5)
>>> a.source.tolist(), a.rows.tolist(), a.earliest.tolist(), a.latest.tolist()
([0, 1, 1], [1, 1, 1], [95, 90, 97], [95, 90, 97])
>>> a.sources.tolist(), a.rows_by_source.tolist(), a.latest_by_source.tolist()
([0, 1], [1, 2], [95, 97])

*Parts.* Some of the cells of a round are a round of their own.

>>> a = Arrivals.of_rows(clock=9, source=[0, 1, 2], time=[4, 5, 6])
>>> selected(a, np.array([True, False, True])).latest.tolist()
[4, 6]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eventide.eventtime.instant import EDGE, FOREVER, Instants, within_edges

_NO_SECOND_ROW: Instants = np.full(1, FOREVER, dtype=np.int64)


@dataclass(frozen=True)
class Arrivals:
    """A summary of one round (micro-batch) for a policy: its clock, and cells sorted by source, then by time.

    A cell says how many rows of one source came, and their earliest and latest time.

    `source` holds small whole numbers: whoever feeds a policy numbers its sources 0, 1, 2, ... as they appear.
    `delay_sum` and `delay_square_sum` are the sums of `clock - time` and of its square over the rows of a cell.
    """

    clock: int
    source: NDArray[np.intp]
    rows: NDArray[np.int64]
    earliest: Instants
    latest: Instants
    delay_sum: NDArray[np.float64]
    delay_square_sum: NDArray[np.float64]

    @classmethod
    def of_row(cls, clock: int, source: int, time: int) -> Arrivals:
        """A round of one row.

        >>> Arrivals.of_row(clock=12, source=0, time=10).delay_sum.tolist()
        [2.0]
        """
        at = np.array([time], dtype=np.int64)
        delay = np.array([float(clock) - float(time)])
        return cls(clock, np.array([source], dtype=np.intp), np.ones(1, dtype=np.int64), at, at, delay, delay * delay)

    @classmethod
    def of_rows(cls, clock: int, source: ArrayLike, time: ArrayLike, cell_width: int | None = None) -> Arrivals:
        """Digest rows into cells of at most `cell_width` of time each (one cell per source without it)."""
        sources = np.asarray(source, dtype=np.intp)
        times = np.asarray(time, dtype=np.int64)
        order = np.lexsort((times, sources))
        sources, times = sources[order], times[order]
        if len(times) == 0:
            starts = np.zeros(0, dtype=np.intp)
        else:
            new = sources[1:] != sources[:-1]
            if cell_width is not None:
                stretch = times // cell_width
                new |= stretch[1:] != stretch[:-1]
            starts = np.flatnonzero(np.concatenate(([True], new)))
        ends = np.append(starts[1:], len(times)) - 1 if len(starts) else starts
        delay = float(clock) - times.astype(np.float64)
        return cls(
            clock,
            sources[starts],
            (ends - starts + 1).astype(np.int64),
            times[starts],
            times[ends],
            np.add.reduceat(delay, starts) if len(starts) else np.zeros(0),
            np.add.reduceat(delay * delay, starts) if len(starts) else np.zeros(0),
        )

    @classmethod
    def of_cells(
        cls, clock: int, source: NDArray[np.intp], rows: NDArray[np.int64], low: Instants, high: Instants
    ) -> Arrivals:
        """Cells in the order the time core wants; delays are taken to be those of a cell's middle."""
        # Which of two cells that start together comes first does not matter, and the quicker sort is not stable.
        order = np.argsort(low)
        if len(source) and source.min() < source.max():
            order = order[np.argsort(source[order], kind="stable")]
        source, rows, low, high = source[order], rows[order], low[order], high[order]
        # Cells of one source that start together (other groups of the same pane) are one.
        first = np.flatnonzero(np.concatenate(([True], (source[1:] != source[:-1]) | (low[1:] != low[:-1]))))
        rows, high = np.add.reduceat(rows, first), np.maximum.reduceat(high, first)
        source, low = source[first], low[first]
        delay = clock - (low.astype(np.float64) + high.astype(np.float64)) / 2
        return cls(clock, source, rows, low, high, rows * delay, rows * delay * delay)

    @classmethod
    def silence(cls, clock: int) -> Arrivals:
        """A round without rows: only the clock moved.

        >>> Arrivals.silence(5).total
        0
        """
        return cls.of_rows(clock, [], [])

    @cached_property
    def total(self) -> int:
        """How many rows arrived, over all sources."""
        return int(self.rows.sum())

    @cached_property
    def _starts(self) -> NDArray[np.intp]:
        if len(self.source) < 2:
            return np.zeros(len(self.source), dtype=np.intp)
        return np.flatnonzero(np.concatenate(([True], self.source[1:] != self.source[:-1])))

    @cached_property
    def sources(self) -> NDArray[np.intp]:
        """The sources that spoke in this round, ascending, each once."""
        return self.source[self._starts]

    @property
    def places(self) -> int:
        """How long an array over sources must be for those that spoke; 0 without rows.

        >>> Arrivals.of_rows(9, [0, 4], [1, 2]).places, Arrivals.silence(9).places
        (5, 0)
        """
        return int(self.source[-1]) + 1 if len(self.source) else 0

    @cached_property
    def rows_by_source(self) -> NDArray[np.int64]:
        """Rows of each of `sources`."""
        return np.add.reduceat(self.rows, self._starts) if len(self._starts) else self.rows[:0]

    @cached_property
    def earliest_by_source(self) -> Instants:
        """Smallest time of each of `sources`."""
        return np.minimum.reduceat(self.earliest, self._starts) if len(self._starts) else self.earliest[:0]

    @cached_property
    def latest_by_source(self) -> Instants:
        """Largest time of each of `sources`."""
        return np.maximum.reduceat(self.latest, self._starts) if len(self._starts) else self.latest[:0]

    def sum_by_source(self, of_cells: NDArray[np.float64] | NDArray[np.int64]) -> NDArray[np.float64]:
        """Add up a quantity of the cells for each of `sources`.

        >>> Arrivals.of_rows(9, [0, 1, 1], [1, 2, 8], cell_width=4).sum_by_source(np.array([1.0, 2.0, 3.0])).tolist()
        [1.0, 5.0]
        """
        quantity = np.asarray(of_cells, dtype=np.float64)
        return np.add.reduceat(quantity, self._starts) if len(self._starts) else quantity[:0]

    def max_by_source(self, of_cells: Instants) -> Instants:
        """The largest of a quantity of the cells for each of `sources`.

        >>> Arrivals.of_rows(9, [0, 1, 1], [1, 2, 8], cell_width=4).max_by_source(np.array([5, 7, 6])).tolist()
        [5, 7]
        """
        return np.maximum.reduceat(of_cells, self._starts) if len(self._starts) else of_cells[:0]

    @cached_property
    def cells_by_source(self) -> NDArray[np.intp]:
        """How many cells each of `sources` has."""
        return np.diff(np.append(self._starts, len(self.source)))

    @cached_property
    def second_earliest_by_source(self) -> Instants:
        """A time not above the second smallest of each of `sources`; `FOREVER` where it has one row.

        Within a cell only the smallest time is known, and stands for all of them.

        >>> Arrivals.of_rows(9, [0, 1, 1, 2, 2], [1, 2, 8, 3, 3], cell_width=4).second_earliest_by_source.tolist()[1:]
        [8, 3]
        """
        if len(self.source) == 1 and self.rows[0] == 1:
            return _NO_SECOND_ROW
        following = np.minimum(self._starts + 1, len(self.source) - 1)
        second = np.where(self.cells_by_source > 1, self.earliest[following], FOREVER)
        return np.where(self.rows[self._starts] > 1, self.earliest_by_source, second)

    def within_edges(self) -> Arrivals:
        """The same round, with instants beyond the edges of plain arithmetic taken to be at them.

        >>> Arrivals.of_row(5, 0, -(2**63)).within_edges().earliest.tolist()
        [-2000000000000000000]
        """
        if -EDGE <= self.clock <= EDGE and (
            self.total == 0 or (self.earliest.min() >= -EDGE and self.latest.max() <= EDGE)
        ):
            return self
        clock = max(-EDGE, min(EDGE, self.clock))
        return replace(self, clock=clock, earliest=within_edges(self.earliest), latest=within_edges(self.latest))


def selected(arrivals: Arrivals, cells: NDArray[Any], source: NDArray[np.intp] | None = None) -> Arrivals:
    """The chosen `cells` of a round, by mask or by index, with other `source` numbers if given for all cells.

    >>> a = Arrivals.of_rows(clock=9, source=[0, 7], time=[4, 6])
    >>> selected(a, np.array([1]), source=np.array([0, 1])).source.tolist()
    [1]
    """
    return replace(
        arrivals,
        source=(arrivals.source if source is None else source)[cells],
        rows=arrivals.rows[cells],
        earliest=arrivals.earliest[cells],
        latest=arrivals.latest[cells],
        delay_sum=arrivals.delay_sum[cells],
        delay_square_sum=arrivals.delay_square_sum[cells],
    )


def together(parts: Sequence[Arrivals]) -> Arrivals:
    """The cells of several rounds as one round, at the latest of their clocks.

    >>> one = together([Arrivals.of_row(clock=8, source=3, time=4), Arrivals.of_row(clock=9, source=0, time=6)])
    >>> one.clock, one.source.tolist(), one.latest.tolist()
    (9, [0, 3], [6, 4])
    """
    source = np.concatenate([part.source for part in parts])
    earliest = np.concatenate([part.earliest for part in parts])
    order = np.lexsort((earliest, source))
    return Arrivals(
        max(part.clock for part in parts),
        source[order],
        np.concatenate([part.rows for part in parts])[order],
        earliest[order],
        np.concatenate([part.latest for part in parts])[order],
        np.concatenate([part.delay_sum for part in parts])[order],
        np.concatenate([part.delay_square_sum for part in parts])[order],
    )


def renumbered(arrivals: Arrivals, source: NDArray[np.intp]) -> Arrivals:
    """The same round with another source number for each cell.

    >>> renumbered(Arrivals.of_rows(clock=9, source=[0, 1], time=[4, 6]), np.array([5, 2])).source.tolist()
    [2, 5]
    """
    return together([replace(arrivals, source=source)])
