"""Residuals of the last rows against one reference, and the slack that a share of them exceeded.

Law: let R be a reference that never goes back, and trail it by a slack s. A row is lost exactly when its *residual*, R
just before the row less its time, is s or more. So the cheapest slack that would have lost no more than a share of the
last rows is the least number above all residuals but that share of the largest ones: nothing has to be assumed of what
lies between sources and of how their delays are distributed.

>>> window = ResidualWindow(entries=100)
>>> window.add(np.arange(50), np.ones(50, dtype=np.int64))
>>> window.slack(share=0.0), window.slack(share=0.1), window.exceeded(slack=45)
(50, 45, (5, 50))
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrays import packed, unpacked
from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.instant import Instants

Entry = tuple[int, int, int]
"""Residual, number in the order of arrival, rows."""


class ResidualWindow:
    """The last so many entries, each the residual of some rows, in the order of arrival and in that of residuals."""

    def __init__(self, entries: int) -> None:
        self._most = entries
        self._number = 0
        self._rows = 0
        self._arrived: deque[Entry] = deque()
        self._sorted: list[Entry] = []

    def __len__(self) -> int:
        """How many rows are remembered."""
        return self._rows

    def add(self, residuals: Instants, rows: NDArray[np.int64]) -> None:
        """Remember the residuals of some rows, and forget as many older ones."""
        for residual, count in zip(residuals.tolist(), rows.tolist(), strict=True):
            entry = (residual, self._number, count)
            self._number += 1
            self._rows += count
            self._arrived.append(entry)
            insort(self._sorted, entry)
            if len(self._arrived) > self._most:
                oldest = self._arrived.popleft()
                self._rows -= oldest[2]
                del self._sorted[bisect_left(self._sorted, oldest)]

    def slack(self, share: float) -> int:
        """The least slack that no more than a share of the rows reached."""
        left = share * self._rows
        for residual, _, rows in reversed(self._sorted):
            left -= rows
            if left < 0:
                return residual + 1
        return self._sorted[0][0]

    def exceeded(self, slack: int) -> tuple[int, int]:
        """How many rows reached a slack, and how many are remembered."""
        at = bisect_left(self._sorted, (slack, -1, 0))
        return sum(rows for _, _, rows in self._sorted[at:]), self._rows

    def snapshot(self) -> Snapshot:
        """The entries as plain data."""
        entries = np.array([(residual, rows) for residual, _, rows in self._arrived], dtype=np.int64).reshape(-1, 2)
        return {"entries": packed(entries)}

    def restore(self, saved: Snapshot) -> None:
        """Go on from what `snapshot` described."""
        self.__init__(self._most)  # type: ignore[misc]
        residuals, rows = unpacked(saved["entries"]).T
        self.add(residuals, rows)
