"""Rest: how the clock goes on when all sources are silent, so that the last window closes too.

Either nothing more comes, or all of it is held up, and no statistics of the past can tell which. So it is a bet, and
bets are paid from what may still be lost.

Law: let s be how long all sources have been silent together, and r the *rest length*: ten times the longest such
silence or lateness remembered, and no less than the times that came at once. While s <= r nothing moves. After it the
combined heartbeat goes on with the clock from where all sources stood, r behind it: a row that is stamped after the
silence, and on its way for less than r, is in time. It goes on

- to the *limit* at first: as far as the rows that all sources would stamp up to there, together with those lost so far,
  are within the permitted share of the rows so far. Should all of them have been held up, the drop ratio is kept.
- further when s is also longer than the stream was ever heard, and longer than the times that it has stamped: it is
  taken to be over. Then the clock goes on once more, for as much time as the stream has stamped, and no further. Where
  rows turn out to have been held up all the same, this is never done again.

In a sequence, or in a recording that is replayed slowly, time goes on at the pace that it had. A stream that delivered
an hour of rows at once has shown no silence yet: it may be an hour till the next.

>>> sources = Standing(*(np.array([value]) for value in (100, 1_000, 1_000, 0, 0)), crowd=np.array([1.0]))
>>> rest = Rest.of(sources, pause=5, lateness=8, allowance=3.0)  # a row every 10 or so; 3 may still be lost
>>> rest.length, rest.limit, rest.over_after
(80, 1020, 1000)
>>> [rest.heartbeat(silent) for silent in (80, 90, 100, 999)], rest.heartbeat(1_300)
([None, 1009, 1019, 1019], 1319)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.instant import EDGE, Instants

REST_TIMES = 10


class Standing(NamedTuple):
    """Where the sources stand that were not gone when the last row of all came.

    `heard` and `born` are the clock at their last and first rows, `largest` and `first` the times of their rows.
    """

    rows: NDArray[np.int64]
    largest: Instants
    heard: Instants
    first: Instants
    born: Instants
    crowd: NDArray[np.float64]


class Rest(NamedTuple):
    """What a common silence brings: it changes with rows only."""

    length: int
    """The silence after which the clock goes on."""
    over_after: int
    """The silence after which the stream is taken to be over."""
    base: int
    """The least that a source's clock stood at when the last row of all came."""
    pace: float
    """How fast the times of the stream went beside the clock, and at most as fast."""
    limit: int
    """How far the permitted share reaches."""
    extent: int
    """The time that was stamped so far."""

    @classmethod
    def of(cls, sources: Standing, pause: int, lateness: int, allowance: float) -> Rest:
        """Of these sources; `pause` is their longest common silence, `allowance` the rows that may still be lost."""
        last = int(sources.heard.max())
        heard_for = last - int(sources.born.min())
        extent = int(sources.largest.max()) - int(sources.first.min())
        speed = extent / heard_for if heard_for > 0 else 1.0
        at_once = round(pause * speed) if heard_for > 0 else extent
        length = max(REST_TIMES * max(lateness, pause), at_once)
        pace = min(speed, 1.0)
        stood = sources.largest + ((last - sources.heard) * pace).astype(np.int64)
        base = min(int(stood.min()), int(sources.largest.max()))
        limit = _reach(sources, base, allowance)
        return cls(length, max(length, heard_for, extent), base, pace, limit, extent)

    @property
    def surely(self) -> int:
        """How far the heartbeat comes before the stream is taken to be over."""
        return min(self.base + self._walk(self.over_after - self.length), self.limit) - 1

    def heartbeat(self, silent: int, may_be_over: bool = True) -> int | None:
        """The combined heartbeat after so long a silence of all; None while the silence is not long enough."""
        if silent <= self.length:
            return None
        if silent > self.over_after and may_be_over:
            return self.surely + min(self._walk(silent - self.over_after), self.extent)
        return min(self.base + self._walk(silent - self.length), self.limit) - 1

    def _walk(self, silent: int) -> int:
        return silent if self.pace == 1.0 else int(silent * self.pace)


def _reach(sources: Standing, base: int, allowance: float) -> int:
    """The latest time up to which all sources together would stamp no more rows than the allowance has."""
    extent = np.maximum(sources.largest - sources.first, 1).astype(np.float64)

    def at_stake(time: int) -> float:
        ahead = time - sources.largest
        past = np.maximum(ahead, 0)
        stamped = sources.crowd + sources.rows * (past / (past + extent))
        return float(np.where(ahead > 0, stamped, 0.0).sum())

    low, high = int(sources.largest.min()), min(base, EDGE) + EDGE
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if at_stake(middle) <= allowance else (low, middle - 1)
    return low
