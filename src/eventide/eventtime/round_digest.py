"""The digest of a round: the few times from which references are calibrated, however many rows it had.

Law: residuals behind any reference have the opposite order of times, so the earliest times of a round give the largest
residuals for every reference alike. A round of more rows than a block stands for one block: its times are taken
at evenly spaced ranks.

>>> digest = RoundDigest.of(Arrivals.of_rows(9, [0, 1, 1], [5, 2, 8], cell_width=1), keep=2, block_rows=100)
>>> digest.earliest, digest.counted, digest.rows_up_to(5)
([2, 5], 3, 2)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventide.eventtime.arrivals import Arrivals

STORM_ROWS = 8
"""The latest rows in which a storm is seen."""


@dataclass(frozen=True)
class RoundDigest:
    """The earliest times, how many rows they were taken from, times spread over the round, and one in its middle."""

    arrivals: Arrivals
    earliest: list[int]
    counted: int
    spread: list[int]
    middle: int

    @classmethod
    def of(cls, arrivals: Arrivals, keep: int, block_rows: int) -> RoundDigest:
        """Digest a round that has rows."""
        if arrivals.total == 1:
            time = int(arrivals.earliest[0])
            return cls(arrivals, [time], 1, [time], time)
        times, rows = arrivals.earliest, arrivals.rows
        counted = min(arrivals.total, block_rows)
        step = arrivals.total / counted
        cells = min(int(keep * step) + 1, len(times))
        order = np.argpartition(times, cells - 1)[:cells] if cells < len(times) else np.arange(len(times))
        order = order[np.argsort(times[order], kind="stable")]
        ranks = np.arange(min(keep, counted)) * step
        found = np.searchsorted(np.cumsum(rows[order]), ranks, side="right")
        earliest = times[order][np.minimum(found, cells - 1)].tolist()
        if arrivals.total <= STORM_ROWS:
            spread = np.repeat(times, rows).tolist()
        else:
            places = (np.arange(STORM_ROWS) * 2 + 1) * len(times) // (2 * STORM_ROWS)
            spread = np.partition(times, np.unique(places))[places].tolist()
        return cls(arrivals, earliest, counted, spread, int(times[len(times) // 2]))

    def rows_up_to(self, heartbeat: int) -> int:
        """How many rows a heartbeat would have made late; within a cell the earliest time stands for all."""
        if self.earliest[0] > heartbeat:
            return 0
        if self.arrivals.total == 1:
            return 1
        return int(self.arrivals.rows[self.arrivals.earliest <= heartbeat].sum())
