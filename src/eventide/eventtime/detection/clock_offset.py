"""A source whose clock jumps or drifts: its rows are suddenly, or ever more, earlier or later than they used to be.

Laws. The *offset* of a source is how far the latest time of a round is behind the clock: the delay of its quickest row,
plus what its clock is off by. The least of its last `WINDOW` offsets does not know of slow rows; its clock has *jumped*
if that is further from the usual offset than `FACTOR` times the largest distance so far, and than the usual time
between two rounds in which the source is heard. It *drifts* if the usual offset itself is as far from the first one. An
offset that stays becomes the usual one, so that what was raised clears by itself; that is no drift. Nothing is told
before a source was heard `ENOUGH` times.

>>> offsets = ClockOffsets()
>>> for clock in range(0, 1000, 10):
...     offsets.note(Arrivals.of_rows(clock, [0, 1], [clock - 3, clock - 4 + (200 if clock >= 800 else 0)]))
...     if clock == 790:
...         print(offsets.jumped().tolist())
[]
>>> offsets.jumped().tolist(), offsets.distance_of(1) < 0
([1], True)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrays import grown
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import NEVER

Floats = NDArray[np.float64]

WINDOW = 8
ENOUGH = 24
FACTOR = 4.0
SLOWLY = 1.0 / 64
"""How much of a new offset goes into the usual one."""


class ClockOffsets:
    """Arrays over sources: the last offsets, the usual one, how far offsets have been from it, the first one."""

    def __init__(self) -> None:
        self._last: Floats = np.zeros((WINDOW, 0))
        self._least, self._usual, self._spread, self._first, self._gap = (np.zeros(0) for _ in range(5))
        self._times: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._clock: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def note(self, arrivals: Arrivals) -> None:
        """Take a round into account."""
        if not arrivals.total:
            return
        arrivals = arrivals.within_edges()
        sources = arrivals.sources
        self._grow(arrivals.places)
        offset = float(arrivals.clock) - arrivals.latest_by_source
        # Where all of them are heard, parts of arrays need not be copied out and in.
        at: Any = slice(None) if len(sources) == len(self._times) else sources
        times = self._times[at].copy()
        self._last[times % WINDOW, sources] = offset
        least: Floats = self._last[:, at].min(axis=0)
        self._least[at] = least
        gap = np.where(times > 0, arrivals.clock - self._clock[at], 0).astype(np.float64)
        self._gap[at] += (gap - self._gap[at]) * np.where(times > 0, 1.0 / 16, 0.0)
        learning = times < ENOUGH
        pace = np.where(learning, 1.0 / (times + 1.0), SLOWLY)
        distance = np.abs(least - self._usual[at])
        # A jump is no measure of what is usual; it becomes usual by and by.
        beyond = ~learning & (distance > FACTOR * self._spread[at])
        self._spread[at] = np.where(
            learning,
            np.maximum(self._spread[at], np.where(times > WINDOW, distance, 0.0)),
            np.where(beyond, self._spread[at], np.maximum(self._spread[at] * (1 - SLOWLY / 16), distance)),
        )
        change = (least - self._usual[at]) * pace
        self._usual[at] += change
        # After a jump the new offset becomes the usual one, and that is no drift. What has drifted is usual in the end.
        followed = np.where(beyond, change, (self._usual[at] - self._first[at]) * SLOWLY / 16)
        self._first[at] = np.where(learning, self._usual[at], self._first[at] + followed)
        self._clock[at] = arrivals.clock
        self._times[at] += 1

    def jumped(self) -> NDArray[np.intp]:
        """The sources whose clocks have jumped, for as long as that is not usual."""
        return np.flatnonzero(np.abs(self._least - self._usual) > self._limits())

    def drifted(self) -> NDArray[np.intp]:
        """The sources whose usual offset is not what it was at first."""
        return np.flatnonzero(np.abs(self._usual - self._first) > self._limits())

    def distance_of(self, source: int) -> int:
        """How far the offset of a source is from the usual one; below 0 its clock is fast."""
        return int(self._least[source] - self._usual[source])

    def drift_of(self, source: int) -> int:
        """How far the usual offset of a source is from the first one; below 0 its clock is fast."""
        return int(self._usual[source] - self._first[source])

    def limit_of(self, source: int) -> int:
        """How far an offset may be from the usual one."""
        return int(self._limits()[source])

    def _limits(self) -> Floats:
        limits = np.maximum(FACTOR * self._spread, self._gap)
        return np.where(self._times >= ENOUGH, limits, np.inf)

    def _grow(self, places: int) -> None:
        # One row for each place of the window: the least of a source is then found without leaps through memory.
        more = max(0, places - self._last.shape[1])
        self._last = np.concatenate((self._last, np.full((WINDOW, more), np.inf)), axis=1) if more else self._last
        self._least, self._usual, self._spread, self._first, self._gap = (
            grown(one, places, 0.0) for one in (self._least, self._usual, self._spread, self._first, self._gap)
        )
        self._times = grown(self._times, places, 0)
        self._clock = grown(self._clock, places, NEVER)
