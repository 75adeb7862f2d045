"""Quality-driven slack: a delay behind the largest time, corrected by the share of rows that it has lost.

After AQ-K-slack (Ji et al., "Quality-driven processing of sliding window
aggregates over out-of-order data streams", DEBS 2015). There the slack K of a reordering buffer is chosen anew after
every interval: the least one by whose statistics a window would hold enough of its rows, where "enough" is moved by a
proportional-derivative controller that looks at the error of the last results. Here quality is the share of rows that
are not late, which is what a window that is infinitely short would see.

Law: *lateness* of a row is how far it is behind the largest time seen before it, 0 if it is not. Heartbeat = largest
time seen - K - 1. After every `interval_rows` rows, K becomes the theta-quantile of the lateness of the last
`window_rows` rows, and theta moves by half the error (share lost in the interval less the share permitted) plus a
quarter of the change of the error. It starts at 1 - p and stays within 0 and 1. Until the first interval is over, K
is the largest lateness seen.

Limits: sources are not told apart, so a source whose clock is behind makes K as large as its distance. The controller
looks at one interval, and forgets what earlier ones lost, so the total may come out above p. The constants of the
controller are those of this file, chosen on streams like those of the paper; they suit no other stream better.

>>> generator = QualityDriven(drop_ratio=0.25, interval_rows=4, window_rows=8).start()
>>> for time in (10, 30, 20, 40):
...     generator.observe(Arrivals.of_row(clock=0, source=0, time=time))    # lateness 0, 0, 10, 0
>>> generator.heartbeats(0).combined    # a quarter may be lost: K is 0
39
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Ratchet, SavedGenerator, SavedPolicy
from eventide.eventtime.instant import NEVER, shift, shift_all
from eventide.eventtime.policies.delay_quantile import LatestRows
from eventide.eventtime.policies.kim import check_drop_ratio
from eventide.eventtime.reason import LeftOut, Reason

_PROPORTIONAL = 0.5
_DERIVATIVE = 0.25


@dataclass(frozen=True)
class QualityDriven(SavedPolicy["QualityDrivenGenerator"]):
    """Trail the largest time by a slack that is corrected, every `interval_rows` rows, by what was lost.

    >>> QualityDriven(0.01, interval_rows=0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: an interval of 0 rows has none to judge: give 1 or more
    """

    drop_ratio: float
    interval_rows: int = 100
    window_rows: int = 1000

    def __post_init__(self) -> None:
        check_drop_ratio(self.drop_ratio)
        for what, rows in (("an interval", self.interval_rows), ("a window", self.window_rows)):
            if rows < 1:
                raise DeclarationError(f"{what} of {rows} rows has none to judge: give 1 or more")

    def start(self) -> QualityDrivenGenerator:
        """A heartbeat generator that has seen nothing."""
        return QualityDrivenGenerator(self)


class QualityDrivenGenerator(SavedGenerator):
    """Remembers the lateness of the latest rows, and what the interval has lost so far."""

    KIND = "quality_driven"
    SAVED = (
        "_lateness",
        "_largest",
        "_slack",
        "_share",
        "_error",
        "_rows",
        "_lost",
        "_intervals",
        "_sources",
        "_ratchet",
    )

    def __init__(self, policy: QualityDriven) -> None:
        self._policy = policy
        self._lateness = LatestRows()
        self._largest = NEVER
        self._slack = 0
        self._share = 1 - policy.drop_ratio
        self._error = 0.0
        self._rows = 0
        self._lost = 0
        self._intervals = 0
        self._sources = 0
        self._ratchet = Ratchet()

    def observe(self, arrivals: Arrivals) -> None:
        """Learn the lateness of a round; at the end of an interval, correct the slack."""
        if arrivals.total == 0:
            return
        self._sources = max(self._sources, arrivals.places)
        # While nothing was seen (NEVER), nothing is behind it.
        lateness = np.maximum(shift_all(np.full(len(arrivals.rows), self._largest), -arrivals.earliest), 0)
        self._lateness.add(lateness, arrivals.rows)
        self._lateness.keep(self._policy.window_rows)
        self._rows += arrivals.total
        self._lost += int(arrivals.rows[arrivals.earliest <= self._ratchet.shown.combined].sum())
        self._largest = max(self._largest, int(arrivals.latest.max()))
        if self._rows >= self._policy.interval_rows:
            self._correct()
        elif not self._intervals:
            self._slack = max(self._slack, int(lateness.max()))
        self._ratchet.lift_all(shift(shift(self._largest, -self._slack), -1), self._sources)

    def _correct(self) -> None:
        error = self._lost / self._rows - self._policy.drop_ratio
        if self._intervals:
            step = _PROPORTIONAL * error + _DERIVATIVE * (error - self._error)
            self._share = min(1.0, max(0.0, self._share + step))
        self._error = error
        self._slack = self._lateness.quantile(self._share)
        self._rows = self._lost = 0
        self._intervals += 1

    def heartbeats(self, clock: int) -> Heartbeats:
        """The largest time less the slack, for every source; the clock plays no part."""
        return self._ratchet.shown

    def why(self, source: int) -> Reason:
        """The slack, and which share of the latest rows it is enough for."""
        text = "{slack:length} behind the largest time of all, enough for {share:share} of the latest rows"
        return Reason("quality-driven slack", text, {"slack": self._slack, "share": self._share}, common=True)

    def left_out(self) -> tuple[LeftOut, ...]:
        """None: all sources have one heartbeat, and none is waited for."""
        return ()
