"""A delay quantile over a window that shrinks when delays change: adaptive watermarks with ADWIN.

Awad, Traub and Sakr ("Adaptive watermarks: a concept drift-based approach for predicting event-time progress in data
streams", EDBT 2019) have a detector of change decide when what was learned of a stream no longer holds. The detector is
ADWIN (Bifet and Gavalda, "Learning from time-changing data with adaptive windowing", SDM 2007): a window of the latest
values, which loses its older part wherever the means of the two parts differ by more than chance explains.

Law: heartbeat = clock of the last round - the q-quantile of the delays (clock - time) in the window - 1, as in
`DelayQuantile`. The window grows with every row. Whenever a block of 64 rows is full, and as long as there is a cut
between two blocks such that the means of both sides differ by more than

    sqrt(2 / m * variance * ln(2 / d)) + 2 / (3 m) * range * ln(2 / d),    1 / m = 1 / n0 + 1 / n1,  d = 0.002 / ln(n),

the oldest block is forgotten. A window has 10,000 rows at most. (ADWIN looks for cuts among blocks that double in
size, to remember unbounded windows; among a hundred and fifty blocks all cuts are looked at.)

Limits: those of a delay quantile. The window notices that delays have changed, not that they are changing: where a
backlog grows, most rows are lost all the same. Rare long delays widen `range`, and with it what passes for chance.

>>> generator = AdaptiveWindow(quantile=0.9).start()
>>> for clock in range(1280):    # the delay steps from 40 to 10 half-way
...     generator.observe(Arrivals.of_row(clock, 0, clock - (40 if clock < 640 else 10)))
>>> generator.heartbeats(1279).combined, generator.rows
(1268, 640)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Ratchet, SavedGenerator, SavedPolicy
from eventide.eventtime.instant import NEVER, shift, shift_all
from eventide.eventtime.policies.delay_quantile import LatestRows
from eventide.eventtime.reason import LeftOut, Reason

_BLOCK_ROWS = 64
_MOST_ROWS = 10_000
_CONFIDENCE = 0.002  # the value that is usual for ADWIN


@dataclass(frozen=True)
class AdaptiveWindow(SavedPolicy["AdaptiveWindowGenerator"]):
    """Trail the clock by the `quantile` of the delays since they last changed.

    >>> AdaptiveWindow(99)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: quantile 99 is not between 0 and 1: write 0.99 to wait for 99 % of the rows
    """

    quantile: float

    def __post_init__(self) -> None:
        if not 0 < self.quantile < 1:
            raise DeclarationError(
                f"quantile {self.quantile} is not between 0 and 1: write 0.99 to wait for 99 % of the rows"
            )

    def start(self) -> AdaptiveWindowGenerator:
        """A heartbeat generator that has seen nothing."""
        return AdaptiveWindowGenerator(self)


class AdaptiveWindowGenerator(SavedGenerator):
    """Remembers the delays in the window, and rows, sum and sum of squares of each of its blocks, oldest first."""

    KIND = "adaptive_window"
    SAVED = ("_delays", "_blocks", "_clock", "_sources", "_ratchet")

    def __init__(self, policy: AdaptiveWindow) -> None:
        self._policy = policy
        self._delays = LatestRows()
        self._blocks: NDArray[np.float64] = np.zeros((0, 5))
        self._clock = NEVER
        self._sources = 0
        self._ratchet = Ratchet()

    @property
    def rows(self) -> int:
        """How many rows are in the window."""
        return self._delays.total

    def observe(self, arrivals: Arrivals) -> None:
        """Learn the delays of a round, and forget those of a time that is over."""
        self._clock = max(self._clock, arrivals.clock)
        if arrivals.total == 0:
            return
        self._sources = max(self._sources, arrivals.places)
        delays = shift_all(np.full(len(arrivals.rows), self._clock, dtype=np.int64), -arrivals.earliest)
        self._delays.add(delays, arrivals.rows)
        self._note(delays.astype(np.float64), arrivals.rows)
        self._ratchet.lift_all(shift(self._clock, -self._delays.quantile(self._policy.quantile) - 1), self._sources)

    def _note(self, delays: NDArray[np.float64], rows: NDArray[np.int64]) -> None:
        moments = [rows.sum(), (rows * delays).sum(), (rows * delays * delays).sum(), delays.min(), delays.max()]
        if len(self._blocks) and self._blocks[-1, 0] < _BLOCK_ROWS:
            last = self._blocks[-1]
            last[:3] += moments[:3]
            last[3:] = min(last[3], moments[3]), max(last[4], moments[4])
        else:
            self._blocks = np.concatenate((self._blocks, [moments]))
        if self._blocks[-1, 0] >= _BLOCK_ROWS:
            while len(self._blocks) > 1 and (self._has_changed() or self._blocks[:, 0].sum() > _MOST_ROWS):
                self._blocks = self._blocks[1:]
            self._delays.keep(int(self._blocks[:, 0].sum()))

    def _has_changed(self) -> bool:
        """Whether some cut between two blocks has means on its sides that differ by more than chance explains."""
        rows, sums, squares = np.cumsum(self._blocks[:, :3], axis=0).T
        mean = sums[-1] / rows[-1]
        variance = max(0.0, squares[-1] / rows[-1] - mean * mean)
        extent = self._blocks[:, 4].max() - self._blocks[:, 3].min()
        older, newer = rows[:-1], rows[-1] - rows[:-1]
        apart = np.abs(sums[:-1] / older - (sums[-1] - sums[:-1]) / newer)
        inverse = 1 / older + 1 / newer
        doubt = math.log(2 * math.log(rows[-1]) / _CONFIDENCE)
        by_chance = np.sqrt(2 * inverse * variance * doubt) + 2 / 3 * inverse * extent * doubt
        return bool((apart > by_chance).any())

    def heartbeats(self, clock: int) -> Heartbeats:
        """The heartbeat of the last round, for every source; it stands still between rounds."""
        return self._ratchet.shown

    def why(self, source: int) -> Reason:
        """The delay that all but a few rows needed since delays last changed."""
        if self.rows == 0:
            return Reason("adaptive window", "no row has shown a delay yet", common=True)
        text = "{delay:wait} behind the clock of the last row, as {share:share} of the latest {rows:count} rows needed"
        quantile = self._policy.quantile
        values = {"delay": self._delays.quantile(quantile), "share": quantile, "rows": self.rows}
        return Reason("adaptive window", text, values, common=True)

    def left_out(self) -> tuple[LeftOut, ...]:
        """None: all sources have one heartbeat, and none is waited for."""
        return ()
