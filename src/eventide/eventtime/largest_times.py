"""The n largest times seen: what a buffer of n rows has to remember, and nothing more.

>>> seen = LargestTimes(keep=3)
>>> seen.add(np.array([10, 40]), rows=np.array([2, 1]))
>>> seen.least
10
>>> seen.add(np.array([30]), rows=np.array([1]))
>>> seen.least
10
>>> seen.add(np.array([50]), rows=np.array([7]))
>>> seen.least
50
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.instant import NEVER, Instants


class LargestTimes:
    """The `keep` largest times, as descending times with a number of rows each."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        self._times: Instants = np.zeros(0, dtype=np.int64)
        self._rows: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    @property
    def least(self) -> int:
        """The `keep`-th largest time seen; `NEVER` while fewer rows were seen."""
        return int(self._times[-1]) if int(self._rows.sum()) >= self._keep else NEVER

    def add(self, times: Instants, rows: NDArray[np.int64]) -> None:
        """See `rows[i]` more rows at `times[i]`."""
        higher = times > self.least
        if not higher.any():
            return
        times = np.concatenate((self._times, times[higher]))
        rows = np.concatenate((self._rows, np.minimum(rows[higher], self._keep)))
        descending = np.argsort(times, kind="stable")[::-1]
        enough = int(np.searchsorted(np.cumsum(rows[descending]), self._keep)) + 1
        self._times = times[descending[:enough]]
        self._rows = rows[descending[:enough]]

    def snapshot(self) -> Snapshot:
        """The times and their rows as plain data."""
        return {"times": self._times.tolist(), "rows": self._rows.tolist()}

    @classmethod
    def restored(cls, keep: int, saved: Snapshot) -> LargestTimes:
        """The largest times that `snapshot` described.

        >>> LargestTimes.restored(2, {"times": [9, 4], "rows": [1, 1]}).least
        4
        """
        seen = cls(keep)
        seen._times = np.array(saved["times"], dtype=np.int64)
        seen._rows = np.array(saved["rows"], dtype=np.int64)
        return seen
