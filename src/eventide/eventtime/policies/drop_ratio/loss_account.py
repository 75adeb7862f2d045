"""The loss account: what was permitted and lost, in all and by source, and what may be staked on top.

Every row that arrives earns `drop_ratio`; every row lost costs 1. The first 1,000 rows are a warm-up: what they lose is
counted and reported, but starts no debt.

Law: let the *balance* be what was earned less what was lost since the warm-up. The *budget*, what heartbeats may put at
stake beyond what sources have said (`ceiling.py`), is the balance and the allowance of 300 rows and of a tenth of all
rows, and never below zero; in the warm-up it is twice the allowance of the rows so far. So if no stake is lost with
more rows than were reckoned, after n rows at most

    drop_ratio * (1.1 n + 300) + the rows lost in one round

are lost to stakes: each stake is paid from what is left after those before it.

No source may lose more than 1.9 times the ratio of its rows, reckoned as if it had 1,000 at least. From 1.2 times on it
is read on safer rungs (`extra_rungs`), one for each allowance of 300 rows; beyond 1.9 times it is *overdrawn*, and held
to its own rows, each allowance of 150 rows more on a safer rung still. A source so rare that all its rows are within
the allowance of 2,000 is owed no share of its own.

>>> account = LossAccount(0.01, places=1)
>>> account.settle(np.array([0]), np.array([1000]), np.array([9.0]))  # warm-up
>>> account.balance, round(account.budget, 9)
(0.0, 4.0)
>>> account.settle(np.array([0]), np.array([1000]), np.array([40.0]))  # 4 % lost
>>> account.balance, account.budget, account.extra_rungs().tolist()
(-30.0, 0.0, [8])
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrays import grown
from eventide.eventtime.heartbeat import SavedState
from eventide.eventtime.policies.drop_ratio.record_ladder import SAFEST

WARM_UP_ROWS = 1_000
WARM_UP_TIMES = 2
RESERVE_ROWS = 300
RESERVE_SHARE = 0.1
FAIR, CAREFUL = 1.9, 1.2
LEAST_ROWS = 1_000
"""The rows for which a source has a share from the start."""
RARE_ROWS = 2_000
CAREFUL_ROWS = 100
ROWS_PER_RUNG, OVERDRAWN_ROWS_PER_RUNG = 300, 150


class LossAccount(SavedState):
    """Allowance earned and spent: in all, and rows lost per source."""

    SAVED = ("rows", "lost", "balance", "rows_of", "lost_of")
    PACKED = True

    def __init__(self, drop_ratio: float, places: int = 0) -> None:
        self.drop_ratio = drop_ratio
        self.rows = 0
        self.lost = 0.0
        self.balance = drop_ratio * WARM_UP_ROWS
        self.rows_of = np.zeros(places, dtype=np.int64)
        self.lost_of = np.zeros(places)

    def grow(self, places: int) -> None:
        """Open accounts for more sources."""
        self.rows_of, self.lost_of = grown(self.rows_of, places, 0), grown(self.lost_of, places, 0.0)

    def settle(self, source: NDArray[np.intp], rows: NDArray[np.int64], lost: NDArray[np.float64]) -> None:
        """Book the rows of one round, and those of them that were lost."""
        arrived, gone = int(rows.sum()), float(lost.sum())
        warming_up = self.warming_up
        self.rows += arrived
        self.lost += gone
        self.rows_of[source] += rows
        self.lost_of[source] += lost
        self.balance += self.drop_ratio * arrived - gone
        if warming_up and not self.warming_up:
            self.balance = 0.0

    @property
    def warming_up(self) -> bool:
        """Whether the first rows are not over yet."""
        return self.rows < WARM_UP_ROWS

    @property
    def nominal_rung(self) -> int:
        """The rung on which a source by itself loses the ratio."""
        return min(math.ceil(-math.log2(self.drop_ratio)), SAFEST)

    @property
    def budget(self) -> float:
        """Rows that may be put at stake at the moment."""
        if self.warming_up:
            return WARM_UP_TIMES * self.drop_ratio * self.rows
        return max(self.balance + self.drop_ratio * (RESERVE_ROWS + RESERVE_SHARE * self.rows), 0.0)

    def left_of(self, source: NDArray[np.intp] | slice = slice(None)) -> NDArray[np.float64]:
        """What each source may still lose; below zero for one that is overdrawn, without limit for a rare one."""
        rows = self.rows_of[source]
        left: NDArray[np.float64] = FAIR * self.drop_ratio * np.maximum(rows, LEAST_ROWS) - self.lost_of[source]
        return np.where(rows < self.drop_ratio * RARE_ROWS, np.inf, left)

    def extra_rungs(self, source: NDArray[np.intp] | slice = slice(None)) -> NDArray[np.int64]:
        """How many rungs safer each source is to be read for what it lost."""
        permitted = CAREFUL * self.drop_ratio * self.rows_of[source] + self.drop_ratio * CAREFUL_ROWS
        owed = np.ceil((self.lost_of[source] - permitted) / (self.drop_ratio * ROWS_PER_RUNG))
        return np.clip(owed, 0, SAFEST).astype(np.int64)

    def overdrawn_rungs(self, left: NDArray[np.float64]) -> NDArray[np.int64]:
        """The rung of sources that are overdrawn: what each `left` is not above zero."""
        owed = np.ceil(-left / (self.drop_ratio * OVERDRAWN_ROWS_PER_RUNG))
        rungs: NDArray[np.int64] = np.clip(self.nominal_rung - 2 + owed, 0, SAFEST).astype(np.int64)
        return rungs

    def rare(self, share: float) -> NDArray[np.bool_]:
        """The sources that together have no more than that share of the permitted rows: the smallest of all."""
        order = np.argsort(self.rows_of, kind="stable")
        rare = np.empty(len(order), dtype=np.bool_)
        rare[order] = np.cumsum(self.rows_of[order]) <= share * self.drop_ratio * self.rows
        return rare
