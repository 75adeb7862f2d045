"""Adaptive disorder control (Kim, Kim, Kim): two policies that size a buffer, and their shared controller.

*Kim.* A buffer sized by the drop ratio (section 5, figure 3). Assumed: intervals between rows are exponential with mean
theta, delays are normal with mean mu and deviation sigma, both learnt from the latest rows (`VSeq`). Law: the buffer
holds n rows, the most for which (equation 7)

    n^2 - c n - 2 c (sigma / theta)^2 < 0,    c = square of the normal quantile of the drop ratio,

and the heartbeat, given when a row arrives at clock t, is (equation 8) t - mu - n theta.

The three configurations of section 4: `Kim(p)` is the dynamic buffer; `Kim(p, slack=n)` the same, fixed to n rows while
the estimate exceeds n; `Kim(p, slack=0)` is the punctuation mode: heartbeats, and no buffer to bound.

Limits: where delays grow (a backlog) mu trails them, and far more rows are lost than permitted; where intervals are
tiny beside the deviation, n is huge and the estimate stands still until as many rows have come: a slack bounds what is
held meanwhile. The clock and the times must be of one unit, and the clock must move.

>>> from eventide.eventtime.arrivals import Arrivals
>>> generator = Kim(drop_ratio=0.01).start()
>>> for tick in range(0, 300, 10):
...     generator.observe(Arrivals.of_row(clock=tick + 5, source=0, time=tick))
>>> generator.heartbeats(300).combined
241

*KimAdhoc.* The ad hoc measure that the paper compares its own with (figure 4), a baseline and not a recommendation.
With the mean m and deviation s of the *times* of the latest rows (`VSeq`), and a drop ratio p,

    heartbeat = m - s + 2 p s,        size of VSeq = 30 + s z(p) / theta.

The figure prints a product with theta, which would count rows in squared time units; the quotient is the number of rows
that arrive in z(p) deviations, so that is what is computed.

Limits: no theory behind it. It holds back far more than needed of a calm stream, and neither p = 1 % nor p = 10 % is
what it loses.

>>> from eventide.eventtime.arrivals import Arrivals
>>> generator = KimAdhoc(drop_ratio=0.1).start()
>>> for tick in range(0, 300, 10):
...     generator.observe(Arrivals.of_row(clock=tick + 5, source=0, time=tick))
>>> generator.heartbeats(300).combined
75

*The controller.* The steps that figures 3 and 4 share. Every round goes into `VSeq`. When that is full, a measure
estimates how many rows the buffer must hold and the heartbeat that follows from it, and `VSeq` takes the estimated
size; otherwise, and while the clock has not moved at all from the oldest row to the newest (there is no interval to
reckon with), the last heartbeat stands. With a slack, a buffer whose estimated size exceeds the slack is fixed to it:
then the heartbeat is that of `Slack`, and the drop ratio has no effect until the estimate is small enough again
(section 4).

A round is digested whole and estimated once; with rounds of one row this is figure 3 to the letter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Ratchet, Snapshot, check_snapshot
from eventide.eventtime.instant import NEVER, shift
from eventide.eventtime.policies.kim_rows import LEAST_SIZE, VSeq
from eventide.eventtime.policies.slack import Slack
from eventide.eventtime.reason import LeftOut, Reason

VERSION = 1


@dataclass(frozen=True)
class Estimate:
    """What a measure concludes: the size of the buffer in rows and the heartbeat."""

    size: int
    heartbeat: int


Measure: TypeAlias = Callable[[VSeq, int], Estimate]
"""Concludes from a full `VSeq` and the clock of its newest row."""


class DisorderController:
    """Feeds a measure from `VSeq`; one heartbeat for all sources."""

    def __init__(self, kind: str, measure: Measure, slack: int | None) -> None:
        self._kind = kind
        self._measure = measure
        self._vseq = VSeq()
        self._fixed = Slack(slack).start() if slack else None
        self._estimate = Estimate(LEAST_SIZE, NEVER)
        self._slack = slack
        self._clock = NEVER
        self._sources = 0
        self._ratchet = Ratchet()

    def observe(self, arrivals: Arrivals) -> None:
        """Take in a round; estimate anew if enough rows are known."""
        self._clock = max(self._clock, arrivals.clock)
        if arrivals.total == 0:
            return
        self._sources = max(self._sources, int(arrivals.source[-1]) + 1)
        if self._fixed is not None:
            self._fixed.observe(arrivals)
        self._vseq.add(self._clock, arrivals)
        if self._vseq.ready and self._vseq.interval > 0:
            self._estimate = self._measure(self._vseq, self._clock)
            self._vseq.resize(self._estimate.size)
        self._ratchet.lift_all(self._promise(), self._sources)

    def _promise(self) -> int:
        if self._fixed is not None and self._estimate.size > self.buffer_size:
            return self._fixed.heartbeats(self._clock).combined
        return self._estimate.heartbeat

    def heartbeats(self, clock: int) -> Heartbeats:
        """The heartbeat of the last estimate, for every source; it stands still between rows."""
        return self._ratchet.shown

    @property
    def buffer_size(self) -> int:
        """The rows that the buffer is meant to hold at present: the estimate, or the slack where that is less."""
        return min(self._estimate.size, self._slack) if self._slack else self._estimate.size

    def why(self, source: int) -> Reason:
        """The rows held back, as estimated."""
        text = "about {rows:count} rows are held back, as the disorder of the latest rows demands"
        return Reason("estimated slack", text, {"rows": self.buffer_size}, common=True)

    def left_out(self) -> tuple[LeftOut, ...]:
        """None: all sources have one heartbeat, and none is waited for."""
        return ()

    def snapshot(self) -> Snapshot:
        """`VSeq`, the last estimate, the fixed buffer and the heartbeats shown."""
        return {
            "kind": self._kind,
            "version": VERSION,
            "vseq": self._vseq.snapshot(),
            "fixed": None if self._fixed is None else self._fixed.snapshot(),
            "size": self._estimate.size,
            "heartbeat": self._estimate.heartbeat,
            "clock": self._clock,
            "sources": self._sources,
            "ratchet": self._ratchet.snapshot(),
        }

    @classmethod
    def resumed(cls, kind: str, measure: Measure, slack: int | None, snapshot: Snapshot) -> DisorderController:
        """The controller that continues from `snapshot`."""
        check_snapshot(snapshot, kind, VERSION)
        controller = cls(kind, measure, slack)
        controller._vseq = VSeq.restored(snapshot["vseq"])
        if slack and snapshot["fixed"] is not None:
            controller._fixed = Slack(slack).resume(snapshot["fixed"])
        controller._estimate = Estimate(snapshot["size"], snapshot["heartbeat"])
        controller._clock = snapshot["clock"]
        controller._sources = snapshot["sources"]
        controller._ratchet = Ratchet.restored(snapshot["ratchet"])
        return controller


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


ADHOC_KIND = "kim_adhoc"


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
        return DisorderController(ADHOC_KIND, self._measure, slack=None)

    def resume(self, snapshot: Snapshot) -> DisorderController:
        """A controller that continues from `snapshot`."""
        return DisorderController.resumed(ADHOC_KIND, self._measure, None, snapshot)
