"""Silence: how much of it may be taken for progress, and what is at stake when it is.

When a source is silent, either nothing happened there, or rows are on their way and late. A silence is *proven* up to
the longest one that ended well: with a row that was not older than expected. Proven silence counts as progress of the
source's clock. Beyond it, a heartbeat stakes rows: if the source is only held up, all rows it stamped meanwhile are
lost.

Law: rows are staked only out of the reserve (`loss_account.py`).

- The stake of a source is the number of rows it would stamp in the unproven part of its silence, at the density of rows
  it has shown, and at least the crowd, the rows that share the time of a row: a source that stamps a thousand rows
  with one second can lose a thousand rows to a heartbeat one microsecond too far.
- No single stake exceeds the reserve, nor what the source itself may lose (unless the source is so rare that all
  its rows together are within the permitted share). Proven silence is free, but not beyond the reserve either: a source
  that always came back in order may still be held up once.
- All stakes together, each weighted by the chance that such a silence ends badly (learned from those that ended),
  stay within the reserve. The smallest come first: the rarest sources are not waited for.
- A source silent for ten times its longest silence, and longer than it was ever heard or stamped rows for, is gone: it
  is not waited for.

>>> silence = Silence(places=2)
>>> silence.end(np.array([0]), np.array([30]), np.array([False]))  # a silence of 30 ended well
>>> rows = StampStatistics(rows=np.array([100, 100]), crowd=np.array([1.0, 1.0]), extent=np.array([1000, 1000]))
>>> budget = LossBudget(reserve=4.0, by_source=np.array([9.0, 9.0]), rare=0.0)
>>> silence.trusted(np.array([25, 25]), rows, budget, np.array([True, True])).tolist()
[25, 25]
>>> silence.trusted(np.array([25, 90]), rows, budget, np.array([True, True])).tolist()  # 10 rows at stake
[25, 31]
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrays import grown
from eventide.eventtime.heartbeat import SavedState, Snapshot
from eventide.eventtime.instant import EDGE, Instants

_GONE_TIMES = 10


class StampStatistics(NamedTuple):
    """Per source: rows, how many share the time of a row on average, and from its first to its largest time."""

    rows: NDArray[np.int64]
    crowd: NDArray[np.float64]
    extent: Instants

    def only(self, chosen: NDArray[np.intp] | NDArray[np.bool_]) -> StampStatistics:
        """The chosen sources."""
        return StampStatistics(self.rows[chosen], self.crowd[chosen], self.extent[chosen])

    def stake(self, silence: Instants) -> NDArray[np.float64]:
        """The rows each source would stamp in so long a silence, and at least those that share one time."""
        of_extent = silence / (silence + np.maximum(self.extent, 1).astype(np.float64))
        return self.crowd + self.rows * of_extent

    def reach(self, stake: float | NDArray[np.float64]) -> Instants:
        """The silence in which each source would stamp that many rows.

        >>> source = StampStatistics(np.array([100]), np.array([1.0]), np.array([1000]))
        >>> source.reach(source.stake(np.array([25]))).tolist()
        [25]
        """
        rows = np.maximum(self.rows, 1).astype(np.float64)
        more = np.maximum(stake - self.crowd, 0.0)
        reach = more * np.maximum(self.extent, 1) / np.maximum(rows - more, 1e-9)
        return np.where(more < rows, np.minimum(np.round(reach), EDGE), EDGE).astype(np.int64)


class LossBudget(NamedTuple):
    """What may be staked: in all, by each source, and how many rows make a source rare."""

    reserve: float
    by_source: NDArray[np.float64]
    rare: float


class Silence(SavedState):
    """Proven and longest silences per source, how silences beyond the proven ones ended, and those of all together."""

    SAVED = ("_proven", "longest", "_ended", "_ended_badly", "pause", "taken_for_an_end")
    PACKED = True

    def __init__(self, places: int) -> None:
        self._proven = np.zeros(places, dtype=np.int64)
        self.longest = np.zeros(places, dtype=np.int64)
        self._ended = 0
        self._ended_badly = 0
        self.pause = 0
        """The longest silence of all sources together."""
        self.taken_for_an_end = False
        """Whether rows were lost because the stream had been taken to be over (`rest.py`)."""

    def restore(self, saved: Snapshot) -> None:
        """Go on from what `snapshot` described; earlier versions did not keep what all were silent together."""
        super().restore({"pause": 0, "taken_for_an_end": False, **saved})
        if "pause" not in saved:
            self.pause = int(self.longest.max(initial=0))

    def grow(self, places: int) -> None:
        """Make room for more sources."""
        self._proven = grown(self._proven, places, 0)
        self.longest = grown(self.longest, places, 0)

    def end(self, source: NDArray[np.intp], length: Instants, badly: NDArray[np.bool_]) -> None:
        """Silences of these sources ended; badly where a row was older than expected."""
        proven = self._proven[source]
        unproven = length > proven
        self._ended += int(np.count_nonzero(unproven))
        self._ended_badly += int(np.count_nonzero(unproven & badly))
        self._proven[source] = np.where(badly, np.minimum(proven, length), np.maximum(proven, length))
        self.longest[source] = np.maximum(self.longest[source], length)

    def gone_after(self, heard_for: Instants, extent: Instants) -> Instants:
        """The silence after which a source is not waited for any more, given how long it was heard and what it stamped.

        A source that delivered an hour of rows in one visit has shown no silence yet: it may be an hour till the next.

        >>> silence = Silence(places=3)
        >>> silence.end(np.array([0, 1]), np.array([7, 2]), np.array([True, False]))
        >>> silence.gone_after(np.array([60, 60, 0]), np.array([60, 60, 60])).tolist()
        [70, 60, 600]
        """
        longest = np.where(self.longest > 0, self.longest, extent)
        times: Instants = np.minimum(longest, EDGE // _GONE_TIMES) * _GONE_TIMES
        return np.maximum(times, np.maximum(heard_for, extent))

    def trusted(
        self, silent: Instants, stamped: StampStatistics, budget: LossBudget, awaited: NDArray[np.bool_]
    ) -> Instants:
        """How much of each source's silence counts as progress of its clock; only those awaited stake anything."""
        proven = np.minimum(self._proven, stamped.reach(budget.reserve))
        unproven = np.flatnonzero((silent > proven) & awaited)
        if not len(unproven):
            return silent
        of_unproven = stamped.only(unproven)
        stake = of_unproven.stake(silent[unproven] - proven[unproven])

        chance = (self._ended_badly + 1) / (self._ended + 2)
        order = np.argsort(stake, kind="stable")
        smallest_first = stake[order]
        left = budget.reserve - chance * (np.cumsum(smallest_first) - smallest_first)
        own = np.where(of_unproven.rows < budget.rare, np.inf, budget.by_source[unproven])
        affordable = np.empty(len(order), dtype=np.bool_)
        affordable[order] = (smallest_first <= left) & (smallest_first <= own[order])

        trusted = silent.copy()
        if not affordable.all():
            short = ~affordable
            spent = chance * float(stake[affordable].sum())
            each = np.minimum(max(budget.reserve - spent, 0.0) / int(np.count_nonzero(short)), own[short])
            place = unproven[short]
            trusted[place] = np.minimum(silent[place], proven[place] + of_unproven.only(short).reach(each))
        return trusted
