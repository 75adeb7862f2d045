"""How long rows wait behind a candidate's heartbeats: the mean lag, measured on a sample of the rows.

Law: every row has the same chance to be in the sample, whatever it is and however long it waits. A row that still waits
counts with the time it has waited so far, so a candidate that stalls is seen to stall at once. Of older rows less is
remembered: the weight of a row halves with every 500 rows.

The sample holds at most 64 waiting rows. When it is full, every second one is dropped, the others count twice, and from
then on half as many rows are taken.

>>> meter = LagMeter()
>>> for clock in (10, 20, 30):
...     meter.observe(Arrivals.of_row(clock, source=0, time=clock), shown=0)
>>> meter.release(clock=30, heartbeat=20)  # the first two waited 20 and 10
>>> round(meter.mean(clock=30), 1), round(meter.mean(clock=60), 1)
(10.0, 20.0)
"""

from __future__ import annotations

import heapq

import numpy as np

from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Snapshot

_SAMPLE_ROWS = 64
_HALF_LIFE_ROWS = 500


class LagMeter:
    """A sample of waiting rows, the next to be released first, and the lags of those that were released."""

    def __init__(self) -> None:
        self._waiting: list[tuple[int, int, int]] = []  # time, arrival, how many rows it stands for
        self._rows = 0
        self._stride = 1
        self._lag = 0.0
        self._released = 0.0

    def observe(self, arrivals: Arrivals, shown: int) -> None:
        """Take some of the rows of a round into the sample; those at or below the heartbeat `shown` are lost."""
        before, self._rows = self._rows, self._rows + arrivals.total
        fading: float = 0.5 ** (arrivals.total / _HALF_LIFE_ROWS)
        self._lag *= fading
        self._released *= fading
        if len(self._waiting) < _SAMPLE_ROWS // 8 and self._stride > 1:
            self._stride //= 2
        while arrivals.total // self._stride > _SAMPLE_ROWS:
            self._stride *= 2
        counted = before + np.cumsum(arrivals.rows)
        taken = counted // self._stride - (counted - arrivals.rows) // self._stride
        for cell in np.flatnonzero((taken > 0) & (arrivals.latest > shown)).tolist():
            if len(self._waiting) >= _SAMPLE_ROWS:
                self._thin()
            stands_for = self._stride * int(taken[cell])
            heapq.heappush(self._waiting, (int(arrivals.latest[cell]), arrivals.clock, stands_for))

    def _thin(self) -> None:
        # A sorted list is a heap; every second in order of time leaves no part of it out.
        kept = sorted(self._waiting)[::2]
        self._waiting = [(time, arrival, 2 * rows) for time, arrival, rows in kept]
        self._stride *= 2

    def release(self, clock: int, heartbeat: int) -> None:
        """The rows up to this heartbeat wait no longer."""
        while self._waiting and self._waiting[0][0] <= heartbeat:
            _, arrival, rows = heapq.heappop(self._waiting)
            self._lag += float(rows) * (clock - arrival)
            self._released += rows

    @property
    def measured(self) -> bool:
        """Whether any row was released yet."""
        return self._released > 0

    def mean(self, clock: int) -> float:
        """The mean lag of the rows released, and of those that wait, so far; 0 without any."""
        waiting = sum(rows for _, _, rows in self._waiting)
        waited = sum(float(rows) * (clock - arrival) for _, arrival, rows in self._waiting)
        rows = self._released + waiting
        return (self._lag + waited) / rows if rows > 0 else 0.0

    def snapshot(self) -> Snapshot:
        """The sample as plain data."""
        return {
            "waiting": [list(row) for row in self._waiting],
            "rows": self._rows,
            "stride": self._stride,
            "lag": self._lag,
            "released": self._released,
        }

    @classmethod
    def restored(cls, saved: Snapshot) -> LagMeter:
        """The meter that `snapshot` described."""
        meter = cls()
        meter._waiting = [(time, arrival, rows) for time, arrival, rows in saved["waiting"]]
        meter._rows, meter._stride = saved["rows"], saved["stride"]
        meter._lag, meter._released = saved["lag"], saved["released"]
        return meter
