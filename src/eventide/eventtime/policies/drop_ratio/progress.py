"""The progress of every source: its largest believed time, when it was heard, how densely it stamps its rows.

Law: a leap needs a second witness. A time that runs ahead of the source's clock by more than sixteen times its longest
leap or silence so far is not believed before another row says the like; so a single row stamped years ahead moves
nothing, and a clock that is set forward costs one row of waiting.

>>> progress = Progress(places=1)
>>> for clock in range(0, 100, 10):
...     progress.note(Arrivals.of_row(clock, source=0, time=clock), np.array([10]))
>>> progress.note(Arrivals.of_row(100, 0, 10**12), np.array([10]))
>>> progress.largest.tolist()
[90]
>>> progress.note(Arrivals.of_row(110, 0, 10**12 + 10), np.array([10]))
>>> progress.largest.tolist()
[1000000000010]
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrays import grown
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import SavedState
from eventide.eventtime.instant import EDGE, Instants

_LEAP_TIMES = 16
_YOUNG_ROWS = 8


class Progress(SavedState):
    """Arrays over sources; instants lie within the edges of plain arithmetic."""

    _FILL: ClassVar[dict[str, int]] = {
        "rows": 0,
        "crowd": 0,
        "crowds": 0,
        "largest": -EDGE,
        "first": 0,
        "born": 0,
        "heard": 0,
        "passed": -EDGE,
        "leap": 0,
        "doubted": 0,
        "prompt": 2 * EDGE,
    }
    SAVED = tuple(_FILL)
    PACKED = True
    rows: NDArray[np.int64]
    crowd: NDArray[np.int64]
    crowds: NDArray[np.int64]
    largest: Instants
    first: Instants
    born: Instants
    heard: Instants
    passed: Instants
    leap: Instants
    doubted: NDArray[np.int64]
    prompt: Instants
    """The least by which the clock was beyond a row when it came: negative where the source's clock is ahead."""

    def __init__(self, places: int) -> None:
        for name, fill in self._FILL.items():
            setattr(self, name, np.full(places, fill, dtype=np.int64))

    def grow(self, places: int) -> None:
        """Make room for more sources."""
        for name, fill in self._FILL.items():
            setattr(self, name, grown(getattr(self, name), places, fill))

    def expected(self, source: NDArray[np.intp], clock: int) -> Instants:
        """The time of each source if its clock has run on since it was last heard."""
        now: Instants = self.largest[source] + (clock - self.heard[source])
        return np.minimum(now, EDGE)

    def furthest(self, source: NDArray[np.intp], clock: int) -> Instants:
        """How far the clock of each source was ever taken to be, now included."""
        self.passed[source] = passed = np.maximum(self.passed[source], self.expected(source, clock))
        return passed

    def note(self, arrivals: Arrivals, longest_silence: Instants) -> None:
        """Learn from a round; `longest_silence` is known for every source, this round included."""
        source = arrivals.sources
        rows = self.rows[source]
        new = rows == 0
        expected = self.expected(source, arrivals.clock)
        reach = np.minimum(np.maximum(self.leap[source], longest_silence[source]), EDGE // _LEAP_TIMES) * _LEAP_TIMES
        latest = self._believed(arrivals, np.where(rows < _YOUNG_ROWS, EDGE, np.minimum(expected + reach, EDGE)))

        before = self.largest[source]
        raised = latest > before
        leaps = np.where(new | ~raised, 0, latest - expected)
        self.leap[source] = np.maximum(self.leap[source], leaps)
        self.largest[source] = np.where(raised, latest, before)
        self.prompt[source] = np.minimum(self.prompt[source], arrivals.clock - latest)
        self._note_crowds(arrivals, raised, same=latest == before)
        earliest = arrivals.earliest_by_source
        self.first[source] = np.where(new, earliest, np.minimum(self.first[source], earliest))
        self.born[source] = np.where(new, arrivals.clock, self.born[source])
        self.heard[source] = arrivals.clock
        self.rows[source] = rows + arrivals.rows_by_source

    def _note_crowds(self, arrivals: Arrivals, raised: NDArray[np.bool_], same: NDArray[np.bool_]) -> None:
        """Count the rows that share a time, by the sum of squares: that of a row's crowd over all rows."""
        source = arrivals.sources
        top = arrivals.rows[np.cumsum(arrivals.cells_by_source) - 1]
        squares = arrivals.sum_by_source(arrivals.rows * arrivals.rows).astype(np.int64)
        crowd = self.crowd[source]
        self.crowds[source] += squares + np.where(same, 2 * crowd * top, 0)
        self.crowd[source] = np.where(raised, top, np.where(same, crowd + top, crowd))

    def mean_crowd(self) -> NDArray[np.float64]:
        """How many rows of the source share the time of one of its rows, on average over the rows.

        Within a cell all rows are taken to share one time.
        """
        return self.crowds / np.maximum(self.rows, 1)

    def crowding(self) -> NDArray[np.float64]:
        """How many rows share the time of a row, on average, or the largest time where these are more."""
        return np.maximum(np.maximum(self.mean_crowd(), self.crowd), 1.0)

    def pace(self, source: NDArray[np.intp] | slice = slice(None)) -> NDArray[np.float64]:
        """How fast the times of each source go beside the clock, at most as fast: slower in a sequence of numbers."""
        born, first = self.born[source], self.first[source]
        heard_for, extent = self.heard[source] - born, self.largest[source] - first
        known = (heard_for > 0) & (extent > 0)
        return np.where(known, np.minimum(extent / np.maximum(heard_for, 1), 1.0), 1.0)

    def rate(
        self, clock: int, pace: NDArray[np.float64], source: NDArray[np.intp] | slice = slice(None)
    ) -> NDArray[np.float64]:
        """How many rows each source sends in a unit of its time, by its times or by the clock, whichever are longer."""
        by_clock, extent = (clock - self.born[source]) * pace, self.largest[source] - self.first[source]
        rate: NDArray[np.float64] = (self.rows[source] + 1) / np.maximum(np.maximum(by_clock, extent), 1)
        return rate

    def _believed(self, arrivals: Arrivals, bound: Instants) -> Instants:
        """The latest time of each source, leaving out a single row beyond its bound."""
        source, latest = arrivals.sources, arrivals.latest_by_source
        leaping = latest > bound
        if not leaping.any():
            self.doubted[source] = 0
            return latest
        cell_bound = np.repeat(bound, arrivals.cells_by_source)
        beyond = arrivals.latest > cell_bound
        # Of a cell that only ends beyond the bound, one row is known to lie there; its first row is believed anyway.
        partly = beyond & (arrivals.earliest <= cell_bound)
        leapt = np.where(partly, 1, np.where(beyond, arrivals.rows, 0))
        witnesses = arrivals.sum_by_source(leapt) + self.doubted[source]
        alone = leaping & (witnesses < 2)
        self.doubted[source] = alone
        left_out = beyond & np.repeat(alone, arrivals.cells_by_source)
        return arrivals.max_by_source(np.where(left_out, np.where(partly, arrivals.earliest, -EDGE), arrivals.latest))
