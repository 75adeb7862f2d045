"""What one way of giving heartbeats may still lose: permitted rows less lost ones, and whether it is overdrawn.

Law: let n be the rows after the warm-up. A budget is overdrawn when more than `p * n + p * (600 + n / 20)` of them were
lost: 1.05 p, and the allowance of 600 rows. Whoever follows a candidate only while it is not overdrawn has lost no more
to it than that, and the rows of one round.

The first 1,000 rows are a warm-up with a credit of 5,000 rows' allowance. What is left of the credit then is taken
back; what is owed then is owed: a candidate that lost much more than is permitted starts in debt.

>>> budget = Budget(0.01)
>>> budget.book(1_000, 30.0)
>>> budget.balance, budget.overdrawn
(0.0, False)
>>> budget.book(1_000, 17.0)
>>> budget.balance, budget.overdrawn
(-7.0, True)
"""

from __future__ import annotations

from eventide.eventtime.heartbeat import Snapshot

WARM_UP_ROWS = 1_000
CREDIT_ROWS = 5_000
OVERDRAFT_ROWS = 600
OVERDRAFT_SHARE = 0.05


class Budget:
    """Rows, lost rows, and the balance between what was permitted and what was lost."""

    def __init__(self, ratio: float) -> None:
        self.ratio = ratio
        self.rows = 0
        self.lost = 0.0
        self.balance = ratio * CREDIT_ROWS

    @property
    def warming_up(self) -> bool:
        """Whether the first rows are not over yet."""
        return self.rows < WARM_UP_ROWS

    @property
    def judged_rows(self) -> int:
        """The rows after the warm-up."""
        return max(0, self.rows - WARM_UP_ROWS)

    def book(self, rows: int, lost: float) -> None:
        """So many rows arrived, and so many of them were lost."""
        warming_up = self.warming_up
        self.rows += rows
        self.lost += lost
        self.balance += self.ratio * rows - lost
        if warming_up and not self.warming_up:
            self.balance = min(self.balance, 0.0)

    @property
    def overdrawn(self) -> bool:
        """Whether so much more was lost than permitted that it must not go on."""
        return self.balance < -self.ratio * (OVERDRAFT_ROWS + OVERDRAFT_SHARE * self.judged_rows)

    def snapshot(self) -> Snapshot:
        """The figures as plain data."""
        return {"rows": self.rows, "lost": self.lost, "balance": self.balance}

    @classmethod
    def restored(cls, ratio: float, saved: Snapshot) -> Budget:
        """The budget that `snapshot` described."""
        budget = cls(ratio)
        budget.rows, budget.lost, budget.balance = saved["rows"], saved["lost"], saved["balance"]
        return budget
