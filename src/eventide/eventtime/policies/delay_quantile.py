"""Clock minus a delay quantile: trail the clock by what all but a few of the latest rows needed.

Law: heartbeat = clock of the last round - the q-quantile of the delays (clock - time) of the last `window_rows` rows
- 1: a row that needs just as long as the quantile is not late. All rows of a cell are taken to have the delay of its
earliest row, so a digested round never promises more than its rows one by one.

Limits: a quantile of the past is no promise. Where a backlog grows, every row is later than the window says and most
rows are lost; between rows time stands still.

>>> generator = DelayQuantile(quantile=0.75, window_rows=4).start()
>>> for clock, time in [(10, 9), (20, 18), (30, 22), (40, 37)]:
...     generator.observe(Arrivals.of_row(clock, 0, time))    # delays 1, 2, 8, 3
>>> generator.heartbeats(40).combined
36

*The latest rows.* They are numbers, oldest first, each standing for some rows: of a round, a cell gives one number.

>>> latest = LatestRows()
>>> latest.add(np.array([5, 1, 9]), np.array([1, 2, 1]))
>>> latest.keep(3)
>>> latest.quantile(0.5), latest.total
(1, 3)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Ratchet, SavedGenerator, SavedPolicy, SavedState, Snapshot
from eventide.eventtime.instant import NEVER, Instants, shift, shift_all
from eventide.eventtime.reason import LeftOut, Reason


class LatestRows(SavedState):
    """A number, such as a delay, of each of the latest rows, oldest first."""

    SAVED = ("_values", "_rows")

    def __init__(self) -> None:
        self._values: Instants = np.zeros(0, dtype=np.int64)
        self._rows: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    @property
    def total(self) -> int:
        """How many rows they are."""
        return int(self._rows.sum())

    def add(self, values: Instants, rows: NDArray[np.int64]) -> None:
        """Take in `rows[i]` more rows of `values[i]`."""
        self._values = np.concatenate((self._values, values))
        self._rows = np.concatenate((self._rows, rows))

    def keep(self, rows: int) -> None:
        """Forget the oldest down to so many rows."""
        surplus = self.total - rows
        if surplus > 0:
            gone_up_to = np.cumsum(self._rows)
            first = int(np.searchsorted(gone_up_to, surplus, side="right"))
            self._values, self._rows = self._values[first:], self._rows[first:].copy()
            if len(self._rows):
                self._rows[0] = gone_up_to[first] - surplus

    def quantile(self, share: float) -> int:
        """The least number that is not below those of so large a share of the rows; there are rows."""
        ascending = np.argsort(self._values)
        up_to = np.cumsum(self._rows[ascending])
        wanted = min(max(1, math.ceil(share * int(up_to[-1]))), int(up_to[-1]))
        return int(self._values[ascending[np.searchsorted(up_to, wanted)]])


@dataclass(frozen=True)
class DelayQuantile(SavedPolicy["DelayQuantileGenerator"]):
    """Trail the clock by the `quantile` of the delays of the last `window_rows` rows.

    >>> DelayQuantile(99)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: quantile 99 is not between 0 and 1: write 0.99 to wait for 99 % of the rows
    """

    quantile: float
    window_rows: int = 1000

    def __post_init__(self) -> None:
        if not 0 < self.quantile < 1:
            raise DeclarationError(
                f"quantile {self.quantile} is not between 0 and 1: write 0.99 to wait for 99 % of the rows"
            )
        if self.window_rows < 1:
            raise DeclarationError(f"a window of {self.window_rows} rows holds none: give 1 or more")

    def start(self) -> DelayQuantileGenerator:
        """A heartbeat generator that has seen nothing."""
        return DelayQuantileGenerator(self)


class DelayQuantileGenerator(SavedGenerator):
    """Remembers the latest delays, oldest first, with a number of rows each."""

    KIND = "delay_quantile"
    SAVED = ("_delays", "_clock", "_sources", "_ratchet")

    def __init__(self, policy: DelayQuantile) -> None:
        self._policy = policy
        self._delays = LatestRows()
        self._clock = NEVER
        self._sources = 0
        self._ratchet = Ratchet()

    def snapshot(self) -> Snapshot:
        """Everything needed to go on; delays and their rows side by side, as checkpoints have them."""
        found = super().snapshot()
        latest = found.pop("delays")
        return found | {"delays": latest["values"], "rows": latest["rows"]}

    def restore(self, saved: Snapshot) -> None:
        """Go on from what `snapshot` described."""
        self.check(saved)
        super().restore({**saved, "delays": {"values": saved["delays"], "rows": saved["rows"]}})

    def observe(self, arrivals: Arrivals) -> None:
        """Learn the delays of a round and forget the oldest."""
        self._clock = max(self._clock, arrivals.clock)
        if arrivals.total == 0:
            return
        self._sources = max(self._sources, arrivals.places)
        delays = shift_all(np.full(len(arrivals.rows), self._clock, dtype=np.int64), -arrivals.earliest)
        self._delays.add(delays, arrivals.rows)
        self._delays.keep(self._policy.window_rows)
        self._ratchet.lift_all(shift(self._clock, -self._quantile() - 1), self._sources)

    def _quantile(self) -> int:
        return self._delays.quantile(self._policy.quantile)

    def heartbeats(self, clock: int) -> Heartbeats:
        """The heartbeat of the last round, for every source; it stands still between rounds."""
        return self._ratchet.shown

    def why(self, source: int) -> Reason:
        """The delay that all but a few rows needed."""
        if self._delays.total == 0:
            return Reason("delay quantile", "no row has shown a delay yet", common=True)
        text = "{delay:wait} behind the clock of the last row, as {share:share} of the latest rows needed"
        values = {"delay": self._quantile(), "share": self._policy.quantile}
        return Reason("delay quantile", text, values, common=True)

    def left_out(self) -> tuple[LeftOut, ...]:
        """None: all sources have one heartbeat, and none is waited for."""
        return ()
