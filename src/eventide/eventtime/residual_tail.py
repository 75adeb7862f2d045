"""The tail of residuals: how far rows lay behind a reference, counted over the latest rows only.

A residual says by how much a row lies behind a reference; negative, it lies ahead. `slack(level)` is the smallest bound
that no more than a share `level` of the remembered residuals exceed.

Law: what is remembered are the rows of the last two blocks, so between one and two blocks of rows; an excursion that is
older is forgotten. A block is half of all rows so far, at least 32 and at most `block_rows`, so that the beginning is
forgotten soon. Of a block only the largest residuals are kept, as many as any level up to `2 * ratio` can ask for.
Before 32 residuals are remembered no slack is below 0: a reference is not run ahead of on the word of a few rows.

>>> tail = ResidualTail(ratio=0.25, block_rows=100)
>>> for residual in range(40):
...     tail.add([residual % 8], rows=1)
>>> tail.slack(0.0), tail.slack(0.25)
(7, 5)
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence

from eventide.eventtime.heartbeat import Snapshot

PROOF_ROWS = 32
"""So many residuals are a block at least, and prove that a reference may be run ahead of."""


class ResidualTail:
    """The largest residuals of the current block and of the one before it, ascending."""

    def __init__(self, ratio: float, block_rows: int) -> None:
        self.block_rows = block_rows
        self.keep = min(int(4 * ratio * block_rows) + 1, block_rows)
        self._now: list[int] = []
        self._before: list[int] = []
        self._rows_now = 0
        self._rows_before = 0
        self._total = 0

    @property
    def rows(self) -> int:
        """How many residuals are remembered."""
        return self._rows_now + self._rows_before

    def add(self, largest: Sequence[int], rows: int) -> None:
        """Take in `rows` residuals, of which these are the largest, in any order."""
        now = self._now
        if len(largest) == 1:
            if len(now) < self.keep or largest[0] > now[0]:
                insort(now, largest[0])
        else:
            now.extend(largest)
            now.sort()
        if len(now) > self.keep:
            del now[: len(now) - self.keep]
        self._rows_now += rows
        self._total += rows
        if self._rows_now >= min(self.block_rows, max(self._total // 2, PROOF_ROWS)):
            self._before, self._rows_before = now, self._rows_now
            self._now, self._rows_now = [], 0

    def slack(self, level: float) -> int | None:
        """The least bound that at most this share of the residuals exceeds; None while there are none."""
        if self.rows == 0:
            return None
        rank = int(level * self.rows) + 1
        largest = self._now[-rank:] + self._before[-rank:]
        largest.sort()
        slack = largest[-rank] if rank <= len(largest) else largest[0]
        return slack if self.rows >= PROOF_ROWS else max(slack, 0)

    def snapshot(self) -> Snapshot:
        """Everything as plain data."""
        return {
            "now": list(self._now),
            "before": list(self._before),
            "rows_now": self._rows_now,
            "rows_before": self._rows_before,
            "total": self._total,
        }

    def restore(self, saved: Snapshot) -> None:
        """Continue from what `snapshot` described."""
        self._now, self._before = list(saved["now"]), list(saved["before"])
        self._rows_now, self._rows_before = saved["rows_now"], saved["rows_before"]
        self._total = saved["total"]
