"""A calibrated reference: one way to tell how far time has come, and the slack that loses the permitted share.

A reference is any instant that can be told from what has arrived: the largest time, the clock, the slowest source.
Whoever trails its furthest value by a constant slack loses exactly the rows whose residual exceeds that slack. So
the residuals alone say, for every slack at once, what would have been lost: nothing has to be tried, and no
distribution is assumed.

Law: the heartbeat of a reference is its furthest value less the slack that its residuals (`residual_tail.py`) and the
level of its account call for. The account books what this heartbeat would have lost, had it been the one that is shown.
Three corrections, each for what a constant slack does not know:

- *a ceiling* given from outside bounds the heartbeat; a row that only the ceiling kept counts as kept by the slack;
- *a storm*: of the last eight rows let more than half be late. Then the slack is at least what the lateness of the
  second latest will be if it goes on to grow as it did;
- *its lag* is measured: one row at a time is followed from its arrival until the heartbeat reaches it, and counts for
  all rows that arrived meanwhile.

>>> reference = CalibratedReference("largest time", ratio=0.01)
>>> for time in range(0, 400, 10):
...     reference.advance(time - 10, ceiling=10**9, clock=time, rows=time // 10)
...     digest = RoundDigest.of(Arrivals.of_row(time, 0, time), keep=10, block_rows=100)
...     reference.learn(digest, time, rows=time // 10, earned=0.01, level=lambda balance: 0.01, margin=10.0)
>>> reference.slack  # every row lies ten ahead
-10
"""

from __future__ import annotations

from collections.abc import Callable

from eventide.eventtime.arrivals import Arrivals as Arrivals
from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.instant import EDGE, NEVER
from eventide.eventtime.loss_account import TUNING, Tuning, settled
from eventide.eventtime.residual_tail import ResidualTail
from eventide.eventtime.round_digest import STORM_ROWS, RoundDigest

_FIELDS = ("furthest", "heartbeat", "slack", "balance", "lag", "_weight", "_followed", "_recent")


class CalibratedReference:
    """Furthest value, residuals, account and lag of one reference."""

    def __init__(self, name: str, ratio: float, tuning: Tuning = TUNING) -> None:
        self.name = name
        self.tail = ResidualTail(ratio, max(tuning.block_rows, int(10 / ratio)))
        self.furthest: int | None = None
        self.heartbeat = NEVER
        self.slack: int | None = None
        self.balance = 0.0
        self.lag = 0.0
        self._weight = 0.0
        self._lag_rows = tuning.lag_rows
        self._followed: list[int] | None = None
        self._recent: list[int] = []

    def advance(self, value: int, ceiling: int, clock: int, rows: int) -> None:
        """Move on to what the reference says now."""
        if self.furthest is None or value > self.furthest:
            self.furthest = value
        if self.slack is None:
            return
        heartbeat = min(self.furthest - self.slack - 1, ceiling)
        if heartbeat > self.heartbeat:
            self.heartbeat = heartbeat
        if self._followed is not None and self.heartbeat >= self._followed[0]:
            self._average(clock - self._followed[1], 1 + rows - self._followed[2])
            self._followed = None

    def learn(
        self,
        digest: RoundDigest,
        clock: int,
        rows: int,
        earned: float,
        level: Callable[[float], float],
        margin: float,
    ) -> None:
        """Learn from a round; `rows` have come in all, and the level is given for the balance of this reference."""
        lost = digest.rows_up_to(self.heartbeat)
        self.balance = settled(self.balance, earned, lost, margin)
        if self.furthest is not None:
            self._add(digest, self.furthest)
        self.slack = self.tail.slack(level(self.balance))
        self._see_storm()
        if self._followed is None:
            if digest.middle > self.heartbeat:
                self._followed = [digest.middle, clock, rows]
            else:
                self._average(0, digest.counted)

    def _add(self, digest: RoundDigest, furthest: int) -> None:
        slack = self.slack
        if slack is None:
            residuals = [furthest - time for time in digest.earliest]
        else:
            residuals = [
                furthest - time if time <= self.heartbeat else min(furthest - time, slack) for time in digest.earliest
            ]
        self.tail.add(residuals, digest.counted)
        self._recent = (self._recent + [furthest - time for time in digest.spread])[-STORM_ROWS:]

    def _see_storm(self) -> None:
        if self.slack is not None and len(self._recent) == STORM_ROWS:
            recent = sorted(self._recent)
            if recent[4] > 0:
                self.slack = min(max(self.slack, 2 * recent[6] - recent[4]), 2 * EDGE)

    def _average(self, wait: int, rows: int) -> None:
        self._weight = min(self._weight + rows, float(self._lag_rows))
        self.lag += (wait - self.lag) * min(1.0, rows / self._weight)

    def expected_lag(self, clock: int, rows: int) -> float:
        """The lag of its rows, with that of the row that still waits."""
        if self._followed is None:
            return self.lag
        wait, came = clock - self._followed[1], 1 + rows - self._followed[2]
        if wait <= self.lag:
            return self.lag
        return self.lag + (wait - self.lag) * min(1.0, came / min(self._weight + came, self._lag_rows))

    def snapshot(self) -> Snapshot:
        """Everything as plain data."""
        return {"tail": self.tail.snapshot(), **{name: getattr(self, name) for name in _FIELDS}}

    def restore(self, saved: Snapshot) -> None:
        """Continue from what `snapshot` described."""
        self.tail.restore(saved["tail"])
        for name in _FIELDS:
            value = saved[name]
            setattr(self, name, list(value) if isinstance(value, list) else value)
