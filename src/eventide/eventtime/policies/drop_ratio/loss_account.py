"""The loss account: what may still be lost, and how bold that allows one to be.

Every row that arrives earns `drop_ratio`; every row lost costs 1. The balance decides the rung of the ladder of records
(`record_ladder.py`) on which slack is read: each allowance of 1,000 rows that is saved makes the policy one rung
bolder, each of 300 rows that is overdrawn one rung safer, and a rung halves the chance of a loss. It starts where
1 / 2^k is the ratio.

Law: boldness is an integral of `permitted - lost`, as in online conformal control. Let the safest rung lose nothing.
Then over any stretch of n rows, whatever the stream does, the rows lost are at most

    drop_ratio * (n + 3,000 + 300 * (rungs from the first to the safest)) + the rows lost in one round,

because a larger loss would have pushed the rung past the safest. The share lost thus tends to the permitted one or
less. Boldness is not saved up beyond three rungs, so a calm year does not buy a reckless hour.

Two further balances serve what a rung cannot express. The *reserve* (allowance saved, up to that of 10,000 rows or of a
tenth of all rows) is what may be staked on silent sources (`silence.py`). A balance *per source*, which earns 1.3 times
the ratio, makes one source alone more careful when it loses more than its share: a fair promise holds for each of them.

The first 1,000 rows are a warm-up: what they lose is counted and reported, but starts no debt.

>>> account = LossAccount(0.01, places=1)
>>> account.rungs().tolist()  # 1 / 2^7 is the first power below 1 %
[7]
>>> account.settle(np.array([0]), np.array([1000]), np.array([0.0]))  # warm-up
>>> account.settle(np.array([0]), np.array([1000]), np.array([40.0]))  # 4 % lost
>>> account.rungs().tolist()
[15]
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrays import grown
from eventide.eventtime.heartbeat import SavedState
from eventide.eventtime.policies.drop_ratio.record_ladder import SAFEST
from eventide.eventtime.policies.drop_ratio.silence import LossBudget

WARM_UP_ROWS = 1_000
ROWS_PER_RUNG = 1_000
DEBT_ROWS_PER_RUNG = 300
BOLDER_RUNGS = 3
RESERVE_ROWS = 10_000
RARE_ROWS = 2_000
"""A source all of whose rows are within the allowance of so many is too rare to be owed a share of its own."""
CREDIT_ROWS = 300
"""What a new source may lose before it has earned anything, as the allowance of so many rows."""

_SPEND = 0.85  # What rungs may spend; the rest of the allowance is for silences.
_FAIR = 1.3


class LossAccount(SavedState):
    """Allowance earned and spent: in all, in reserve, and per source."""

    SAVED = ("rows", "lost", "_balance", "_reserve", "by_source")
    PACKED = True

    def __init__(self, drop_ratio: float, places: int = 0) -> None:
        self.drop_ratio = drop_ratio
        self._turn = drop_ratio * ROWS_PER_RUNG
        self._nominal = -math.log2(drop_ratio)
        self._debt_turn = drop_ratio * DEBT_ROWS_PER_RUNG
        self._safest_below = -self._debt_turn * (SAFEST - 1 - self._nominal)
        self.rows = 0
        self.lost = 0.0
        self._balance = 0.0
        self._reserve = 0.0
        self.by_source = np.full(places, _FAIR * drop_ratio * CREDIT_ROWS)

    def grow(self, places: int) -> None:
        """Open accounts for more sources."""
        self.by_source = grown(self.by_source, places, _FAIR * self.drop_ratio * CREDIT_ROWS)

    def settle(self, source: NDArray[np.intp], rows: NDArray[np.int64], lost: NDArray[np.float64]) -> None:
        """Book the rows of one round, and those of them that were lost."""
        arrived, gone = int(rows.sum()), float(lost.sum())
        warming_up = self.rows < WARM_UP_ROWS
        self.rows += arrived
        self.lost += gone
        earned = self.drop_ratio * arrived
        before = self._balance
        self._balance = min(before + _SPEND * earned, BOLDER_RUNGS * self._turn) - gone
        if before < self._safest_below:
            # What the safest rung loses could not be helped, and is not owed; what a bolder one lost is, to the row.
            self._balance = max(self._balance, before)
        self._reserve = min(self._reserve + earned, self.drop_ratio * max(RESERVE_ROWS, self.rows / 10)) - gone
        if warming_up and self.rows >= WARM_UP_ROWS:
            self._balance = max(self._balance, 0.0)
            self._reserve = max(self._reserve, self.drop_ratio * WARM_UP_ROWS)
        share = _FAIR * self.drop_ratio
        self.by_source[source] = np.minimum(self.by_source[source] + share * rows, BOLDER_RUNGS * _FAIR * self._turn)
        self.by_source[source] -= lost

    @property
    def reserve(self) -> float:
        """Rows that may be staked on silent sources: what was saved, and never less than the last 1,000 rows earned."""
        return max(self._reserve, self.drop_ratio * min(self.rows, WARM_UP_ROWS))

    @property
    def nominal_rung(self) -> int:
        """Where the rungs start."""
        return math.ceil(self._nominal)

    def budget(self) -> LossBudget:
        """What may be staked on silent sources."""
        return LossBudget(self.reserve, self.by_source, self.drop_ratio * RARE_ROWS)

    def rungs(self) -> NDArray[np.int64]:
        """The rung of each source: the common one, or a safer one where the source's own balance asks for it."""
        common = math.ceil(self._nominal - self._balance / (self._debt_turn if self._balance < 0 else self._turn))
        balances = self.by_source / _FAIR
        own = np.ceil(self._nominal - np.where(balances < 0, balances / self._debt_turn, balances / self._turn))
        return np.clip(np.maximum(own, common), 0, SAFEST).astype(np.int64)
