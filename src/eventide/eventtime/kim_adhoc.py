"""The ad hoc measure that Kim et al. compare theirs with (figure 4): a baseline, not a recommendation.

Law: with the mean m and deviation s of the *times* of the latest rows (`VSeq`), and a drop ratio p,

    heartbeat = m - s + 2 p s,        size of VSeq = 30 + s z(p) / theta.

The figure prints a product with theta, which would count rows in squared time units; the quotient is the number of rows
that arrive in z(p) deviations, so that is what is computed.

Limits: no theory behind it. It holds back far more than needed of a calm stream, and neither p = 1 % nor p = 10 % is
what it loses.

>>> from eventide.eventtime.arrivals import Arrivals
>>> pacemaker = KimAdhoc(drop_ratio=0.1).start()
>>> for tick in range(0, 300, 10):
...     pacemaker.observe(Arrivals.of_row(clock=tick + 5, source=0, time=tick))
>>> pacemaker.heartbeats(300).combined
75
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from eventide.eventtime.disorder_controller import DisorderController, Estimate
from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.instant import shift
from eventide.eventtime.kim import check_drop_ratio, normal_quantile
from eventide.eventtime.vseq import LEAST_SIZE, VSeq

KIND = "kim_adhoc"


@dataclass(frozen=True)
class KimAdhoc:
    """Trail the mean time of the latest rows by a share of their deviation."""

    drop_ratio: float

    def __post_init__(self) -> None:
        check_drop_ratio(self.drop_ratio)

    def _measure(self, vseq: VSeq, clock: int) -> Estimate:
        deviation, theta = vseq.times.deviation, vseq.interval
        behind = clock - vseq.times.mean + deviation * (1 - 2 * self.drop_ratio)
        size = LEAST_SIZE + math.floor(deviation * normal_quantile(self.drop_ratio) / theta)
        return Estimate(size, shift(clock, -math.ceil(behind)))

    def start(self) -> DisorderController:
        """A controller that has seen nothing."""
        return DisorderController(KIND, self._measure, slack=None)

    def resume(self, snapshot: Snapshot) -> DisorderController:
        """A controller that continues from `snapshot`."""
        return DisorderController.resumed(KIND, self._measure, None, snapshot)
