"""Adaptive disorder control: a buffer sized by the drop ratio (Kim, Kim, Kim: section 5, figure 3).

Assumed: intervals between rows are exponential with mean theta, delays are normal with mean mu and deviation sigma,
both learnt from the latest rows (`VSeq`). Law: the buffer holds n rows, the most for which (equation 7)

    n^2 - c n - 2 c (sigma / theta)^2 < 0,    c = square of the normal quantile of the drop ratio,

and the heartbeat, given when a row arrives at clock t, is (equation 8) t - mu - n theta.

The three configurations of section 4: `Kim(p)` is the dynamic buffer; `Kim(p, slack=n)` the same, fixed to n rows while
the estimate exceeds n; `Kim(p, slack=0)` is the punctuation mode: heartbeats, and no buffer to bound.

Limits: where delays grow (a backlog) mu trails them, and far more rows are lost than permitted; where intervals are
tiny beside the deviation, n is huge and the estimate stands still until as many rows have come: a slack bounds what is
held meanwhile. The clock and the times must be of one unit, and the clock must move.

>>> from eventide.eventtime.arrivals import Arrivals
>>> pacemaker = Kim(drop_ratio=0.01).start()
>>> for tick in range(0, 300, 10):
...     pacemaker.observe(Arrivals.of_row(clock=tick + 5, source=0, time=tick))
>>> pacemaker.heartbeats(300).combined
241
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

from eventide.errors import DeclarationError
from eventide.eventtime.disorder_controller import DisorderController, Estimate
from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.instant import shift
from eventide.eventtime.vseq import VSeq

KIND = "kim"


def check_drop_ratio(drop_ratio: float) -> None:
    """Refuse a share of rows outside (0, 1).

    >>> check_drop_ratio(3)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: drop ratio 3 is not between 0 and 1: write 0.03 for 3 %
    """
    if not 0 < drop_ratio < 1:
        raise DeclarationError(f"drop ratio {drop_ratio} is not between 0 and 1: write 0.03 for 3 %")


def normal_quantile(drop_ratio: float) -> float:
    """How many deviations a normal number stays above with probability `drop_ratio`; 0 from one half on.

    >>> round(normal_quantile(0.05), 3), normal_quantile(0.6)
    (1.645, 0.0)
    """
    return max(0.0, NormalDist().inv_cdf(1 - drop_ratio))


def buffer_rows(c: float, sigma: float, theta: float) -> int:
    """Equation 7: the largest whole n with n^2 - c n - 2 c (sigma / theta)^2 < 0; 0 if there is none.

    >>> buffer_rows(c=1.0, sigma=2.0, theta=1.0)    # n^2 - n - 8 < 0
    3
    """
    root = (c + math.sqrt(c * c + 8 * c * (sigma / theta) ** 2)) / 2
    return max(0, math.ceil(root) - 1)


@dataclass(frozen=True)
class Kim:
    """Lose about `drop_ratio` of the rows if delays are normal; hold at most `slack` rows (0: punctuation mode)."""

    drop_ratio: float
    slack: int | None = None

    def __post_init__(self) -> None:
        check_drop_ratio(self.drop_ratio)
        if self.slack is not None and self.slack < 0:
            raise DeclarationError(
                f"slack of {self.slack} rows: give the most rows to hold back, 0 for heartbeats without a buffer"
            )

    def _measure(self, vseq: VSeq, clock: int) -> Estimate:
        mu, sigma, theta = vseq.delays.mean, vseq.delays.deviation, vseq.interval
        c = normal_quantile(self.drop_ratio) ** 2
        rows = buffer_rows(c, sigma, theta)
        return Estimate(rows, shift(clock, -math.ceil(mu + rows * theta)))

    def start(self) -> DisorderController:
        """A controller that has seen nothing."""
        return DisorderController(KIND, self._measure, self.slack)

    def resume(self, snapshot: Snapshot) -> DisorderController:
        """A controller that continues from `snapshot`."""
        return DisorderController.resumed(KIND, self._measure, self.slack, snapshot)
