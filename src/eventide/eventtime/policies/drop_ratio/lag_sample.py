"""How long rows wait behind each of several heartbeats: the mean lag, measured on one sample of the rows.

Law: every row has the same chance to be in the sample, whatever it is and however long it waits. A row that still waits
counts with the time it has waited so far, so a heartbeat that stalls is seen to stall at once. A row that is lost to a
heartbeat does not wait for it.

The sample holds at most 256 rows that wait for any of the heartbeats. When it is full, every second one in the order of
time is dropped, the others count twice, and from then on half as many rows are taken, until few of them wait.

>>> sample = LagSample(candidates=2)
>>> shown = np.array([0, 0])
>>> for clock in (10, 20, 30):
...     sample.observe(clock, np.array([clock]), np.array([1]), shown)
>>> sample.release(clock=30, heartbeats=np.array([20, 0]))  # the first two waited 20 and 10 behind one of them
>>> sample.mean(clock=30).tolist(), sample.mean(clock=60).tolist()
([10.0, 10.0], [20.0, 40.0])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrays import packed, unpacked
from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.instant import Instants

SAMPLE_ROWS = 256


class LagSample:
    """A sample of waiting rows, and the lags behind each heartbeat of those that were released."""

    _ARRAYS = ("_time", "_arrival", "_weight", "_waiting", "_lag", "_released")

    def __init__(self, candidates: int) -> None:
        self._seen = 0
        self._stride = 1
        self._time = np.zeros(0, dtype=np.int64)
        self._arrival = np.zeros(0, dtype=np.int64)
        self._weight = np.zeros(0)
        self._waiting = np.zeros((candidates, 0))
        self._lag = np.zeros(candidates)
        self._released = np.zeros(candidates)

    def observe(self, clock: int, time: Instants, rows: NDArray[np.int64], shown: Instants) -> None:
        """Take some rows of a round into the sample; those at or below a heartbeat of `shown` are lost to it."""
        before, total = self._seen, int(rows.sum())
        self._seen += total
        if self._stride > 1 and len(self._time) < SAMPLE_ROWS // 8:
            self._stride //= 2
        while total // self._stride > SAMPLE_ROWS // 4:
            self._stride *= 2
        counted = before + np.cumsum(rows)
        taken = counted // self._stride - (counted - rows) // self._stride
        at = taken > 0
        if not at.any():
            return
        self._time = np.concatenate((self._time, time[at]))
        self._arrival = np.concatenate((self._arrival, np.full(int(at.sum()), clock, dtype=np.int64)))
        self._weight = np.concatenate((self._weight, self._stride * taken[at].astype(np.float64)))
        self._waiting = np.concatenate((self._waiting, (time[at] > shown[:, None]).astype(np.float64)), axis=1)
        if len(self._time) > SAMPLE_ROWS:
            self._make_room()

    def _make_room(self) -> None:
        self._keep(np.flatnonzero(self._waiting.any(axis=0)))
        if len(self._time) <= SAMPLE_ROWS // 2:
            return
        self._keep(np.sort(np.argsort(self._time, kind="stable")[::2]))
        self._weight *= 2
        self._stride *= 2

    def _keep(self, rows: NDArray[np.intp]) -> None:
        self._time, self._arrival, self._weight = self._time[rows], self._arrival[rows], self._weight[rows]
        self._waiting = self._waiting[:, rows]

    def release(self, clock: int, heartbeats: Instants) -> None:
        """The rows up to each heartbeat wait no longer for it."""
        reached = self._waiting * (self._time <= heartbeats[:, None])
        if reached.any():
            released = reached * self._weight
            self._lag += released @ self._waited(clock)
            self._released += released.sum(axis=1)
            self._waiting -= reached

    def mean(self, clock: int) -> NDArray[np.float64]:
        """The mean lag behind each heartbeat of the rows released, and of those that wait, so far."""
        waiting = self._waiting * self._weight
        rows = self._released + waiting.sum(axis=1)
        lag = self._lag + waiting @ self._waited(clock)
        mean: NDArray[np.float64] = lag / np.maximum(rows, 1.0)
        return mean

    def learned(self, clock: int, rows: int) -> LagSample:
        """A sample without a row, whose mean lags are those of this one, as if of so many rows."""
        begun = LagSample(len(self._lag))
        if self._seen:
            begun._released = np.full(len(self._lag), float(rows))
            begun._lag = self.mean(clock) * rows
        return begun

    def _waited(self, clock: int) -> NDArray[np.float64]:
        return clock - self._arrival.astype(np.float64)

    def snapshot(self) -> Snapshot:
        """The sample as plain data."""
        arrays = {name.lstrip("_"): packed(getattr(self, name)) for name in self._ARRAYS}
        return {"seen": self._seen, "stride": self._stride, **arrays}

    def restore(self, saved: Snapshot) -> None:
        """Go on from what `snapshot` described."""
        self._seen, self._stride = saved["seen"], saved["stride"]
        for name in self._ARRAYS:
            setattr(self, name, unpacked(saved[name.lstrip("_")]))
