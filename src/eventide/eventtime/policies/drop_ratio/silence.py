"""Silence: how likely it ends badly, and when a source, or all of them, are not waited for any more.

When a source is silent, either nothing happened there, or rows are on their way and late. How silences ended before
tells which is more likely. A silence ends badly by the share of it that its first row was late for, beyond what is
normal for the source: by 0 if the row is fresh, by 1 if everything that the source stamped meanwhile is still to come.

Law: the *chance* that a silence ends badly is the mean share of those that put at least as many rows at stake, of all
sources, with one bad one more. A source whose own silences ended badly is judged by them, if that is worse; one
that came back well from a silence as long as this one is given one in ten, if that is better. Only silences count in
which a source would usually have sent three rows.

A source silent for ten times its longest silence, and longer than it was ever heard or stamped rows for, is *gone*: it
is not waited for.

>>> silence = Silence(places=2)
>>> silence.chance(np.array([20, 20]), np.array([16.0, 16.0])).tolist()  # nothing is known yet
[1.0, 1.0]
>>> for _ in range(6):
...     silence.end(np.array([0]), np.array([30]), stake=np.array([20.0]), badly=np.array([0.0]))
>>> silence.chance(np.array([20, 20]), np.array([16.0, 16.0])).tolist()  # the first was silent for so long before
[0.1, 0.14285714285714285]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrays import grown
from eventide.eventtime.heartbeat import SavedState
from eventide.eventtime.instant import EDGE, Instants

_GONE_TIMES = 10
_WORTH_ROWS = 3
_LEAST_STAKE = 8
_PROVEN_CHANCE, _LEAST_CHANCE = 0.1, 0.01
_SHORT = 0.1
"""A row that is late for less of a silence than this came in time."""
_POWERS = 40


class Silence(SavedState):
    """How the silences of each source and of all ended, the longest ones, and those of all sources together."""

    SAVED = ("_proven", "longest", "_ended", "_badly", "_ended_of", "_badly_of", "pause", "taken_for_an_end")
    PACKED = True

    def __init__(self, places: int) -> None:
        self._proven = np.zeros(places, dtype=np.int64)
        self.longest = np.zeros(places, dtype=np.int64)
        self._ended_of = np.zeros(places)
        self._badly_of = np.zeros(places)
        # By the power of two of the rows at stake, and more of them.
        self._ended = np.zeros(_POWERS)
        self._badly = np.zeros(_POWERS)
        self.pause = 0
        """The longest silence of all sources together."""
        self.taken_for_an_end = False
        """Whether rows were lost because the stream had been taken to be over (`rest.py`)."""

    def grow(self, places: int) -> None:
        """Make room for more sources."""
        self._proven, self.longest = grown(self._proven, places, 0), grown(self.longest, places, 0)
        self._ended_of, self._badly_of = grown(self._ended_of, places, 0.0), grown(self._badly_of, places, 0.0)

    def end(
        self, source: NDArray[np.intp], length: Instants, stake: NDArray[np.float64], badly: NDArray[np.float64]
    ) -> None:
        """Silences of these sources ended: how many rows they put at stake, and how badly each ended."""
        self.longest[source] = np.maximum(self.longest[source], length)
        worth = stake > _WORTH_ROWS
        if not worth.any():
            return
        source, length, stake = source[worth], length[worth], stake[worth]
        badly = np.clip(badly[worth], 0.0, 1.0)
        badly = np.where(badly < _SHORT, 0.0, badly)
        self._ended_of[source] += 1
        self._badly_of[source] += badly
        power = _power(stake)
        self._ended += _at_least(np.bincount(power, minlength=_POWERS))
        self._badly += _at_least(np.bincount(power, weights=badly, minlength=_POWERS))
        proven = self._proven[source]
        self._proven[source] = np.where(badly < 0.5, np.maximum(proven, length), np.minimum(proven, length))

    def chance(self, silent: Instants, stake: NDArray[np.float64]) -> NDArray[np.float64]:
        """How likely each silence, of so many rows at stake, ends badly."""
        power = _power(np.maximum(stake, _LEAST_STAKE))
        chance = (self._badly[power] + 1) / (self._ended[power] + 1)
        own = (self._badly_of + 0.5) / (self._ended_of + 1)
        well = np.where(silent <= self._proven, np.minimum(chance, _PROVEN_CHANCE), chance)
        return np.clip(np.where(self._badly_of > 0, np.maximum(chance, own), well), _LEAST_CHANCE, 1.0)

    def gone_after(
        self, heard_for: Instants, extent: Instants, source: NDArray[np.intp] | slice = slice(None)
    ) -> Instants:
        """The silence after which a source is not waited for any more, given how long it was heard and what it stamped.

        A source that delivered an hour of rows in one visit has shown no silence yet: it may be an hour till the next.

        >>> silence = Silence(places=3)
        >>> silence.longest[:2] = 7, 2
        >>> silence.gone_after(np.array([60, 60, 0]), np.array([60, 60, 60])).tolist()
        [70, 60, 600]
        """
        longest = np.where(self.longest[source] > 0, self.longest[source], extent)
        times: Instants = np.minimum(longest, EDGE // _GONE_TIMES) * _GONE_TIMES
        return np.maximum(times, np.maximum(heard_for, extent))


def _power(stake: NDArray[np.float64]) -> NDArray[np.intp]:
    power: NDArray[np.intp] = np.minimum(np.frexp(stake)[1] - 1, _POWERS - 1).astype(np.intp)
    return power


def _at_least(counted: NDArray[np.float64] | NDArray[np.intp]) -> NDArray[np.float64]:
    return np.cumsum(counted[::-1])[::-1].astype(np.float64)
