"""The loss account: what may still be lost, and which share of rows a slack may therefore give up.

Every row earns 90 % of the ratio, and a row that is lost costs 1. The balance is kept within plus and minus the
*margin*, the allowance of 300 rows and of a tenth of all rows. The *level*, the share of rows that a slack may leave
behind, is the ratio where the balance is 0, nothing where it is overdrawn by the margin, and twice the ratio at most:

    level = ratio * min(2, 1 + balance / margin) * fairness.

*Fairness* is 1 while no source has lost more than 1.7 times the ratio of its rows, and falls to 0 at twice the ratio;
a source with fewer than 1,000 rows is judged as if it had them.

Law: where level 0 loses nothing, whatever the stream does, the rows lost among n rows after the warm-up are at most

    0.9 * ratio * n + 2 * margin + the rows lost in one round,

for a larger loss would have brought the level to 0 (`docs/time-core/drop-ratio.md`). The first 1,000 rows are a
warm-up: what they lose is reported and starts no debt.

>>> account = LossAccount(0.01)
>>> account.settle(rows=1000, lost=3)
>>> account.level(fairness=1.0)
0.01
>>> account.settle(rows=100, lost=15)
>>> account.level(fairness=1.0) < 0.001
True
"""

from __future__ import annotations

from dataclasses import dataclass

from eventide.eventtime.heartbeat import Snapshot


@dataclass(frozen=True)
class Tuning:
    """The constants of the policy: counts of rows, and shares of the ratio. None is in the unit of anybody's data."""

    block_rows: int = 2_000
    """Rows of a block of residuals, at least; also the rows in which ten may be lost, where these are more."""
    warm_up_rows: int = 1_000
    """Rows of the warm-up, and of a source that is judged by what it lost."""
    margin_rows: int = 300
    """The rows whose allowance is the margin."""
    margin_share: float = 0.1
    """The share of all rows whose allowance belongs to the margin too."""
    spend: float = 0.9
    """The share of the allowance that is spent; the rest makes up for what was lost in a storm."""
    fair_times: float = 1.7
    """A source that lost this many times the ratio makes the level fall; at twice the ratio it is 0."""
    lag_rows: int = 256
    """Rows over which the lag of a reference is averaged."""
    gone_times: int = 10
    """A source silent for so many times its longest silence, and longer than it was ever heard, is gone."""
    leap_times: int = 16
    """A single row ahead of its clock by so many times the longest leap or silence of its source is not believed."""


TUNING = Tuning()


class LossAccount:
    """Rows, rows lost, and the balance of what was permitted and what was lost."""

    def __init__(self, ratio: float, tuning: Tuning = TUNING) -> None:
        self.ratio = ratio
        self._tuning = tuning
        self.rows = 0
        self.lost = 0
        self.balance = 0.0
        self.learned = False

    @property
    def margin(self) -> float:
        """How far the balance may be from 0, in rows."""
        return self.ratio * (self._tuning.margin_rows + self._tuning.margin_share * self.rows)

    @property
    def warm(self) -> bool:
        """Whether the warm-up is over, or was had before the stream began."""
        return self.learned or self.rows >= self._tuning.warm_up_rows

    def settle(self, rows: int, lost: int) -> None:
        """Book a round."""
        warm = self.warm
        self.rows += rows
        self.lost += lost
        if warm:
            self.balance = settled(self.balance, self._tuning.spend * self.ratio * rows, lost, self.margin)

    def level(self, fairness: float, balance: float = 0.0) -> float:
        """The share of rows that a slack may leave behind, for the lower one of this balance and another."""
        return self.ratio * fairness * min(2.0, max(0.0, 1.0 + min(self.balance, balance) / self.margin))

    @property
    def stake(self) -> float:
        """Rows that may be at risk behind one source: a margin, and what is left until the level would be 0."""
        return max(2 * self.margin + self.balance, 1.0)

    def snapshot(self) -> Snapshot:
        """The balance as plain data."""
        return {"rows": self.rows, "lost": self.lost, "balance": self.balance, "learned": self.learned}

    def restore(self, saved: Snapshot) -> None:
        """Continue from what `snapshot` described."""
        self.rows, self.lost, self.balance = saved["rows"], saved["lost"], saved["balance"]
        self.learned = saved["learned"]


def settled(balance: float, earned: float, lost: int, margin: float) -> float:
    """A balance after a round, kept within the margin on both sides.

    >>> settled(9.0, earned=5.0, lost=0, margin=10.0), settled(-4.0, earned=1.0, lost=50, margin=10.0)
    (10.0, -10.0)
    """
    return max(min(balance + earned, margin) - lost, -margin)
