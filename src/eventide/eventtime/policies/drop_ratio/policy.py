"""`DRATIO p`: heartbeats as early as a permitted share of lost rows allows. Eventide's own policy, and its default.

No parameter but the drop ratio. Two candidates run side by side on every stream, each with its own account of what it
would have lost, and the one behind which rows wait less is followed:

- *each source by itself* (`by_source.py`): the least of what every source promises. Fast where sources are in order,
  or periodic, or apart from each other.
- *all sources together* (`combined.py`): the largest time less a slack that the share p of all rows exceeded. Fast
  where sources are many and alike, disordered within themselves, silent for long, or of uneven rates.

Law: a candidate is followed only while what it would have lost is within its budget (`budget.py`). What the policy
itself lost is a third account; while that is overdrawn, the lower of the two heartbeats is followed. A heartbeat never
goes back, so a change of candidates costs nothing but waiting.

The second candidate is new to a stream and knows nothing of single sources. So it has to be better by a tenth, and by
as much more as it is unproven: its lag counts `1 + 1,000 / rows` times. And a *ceiling* holds it: it never goes so far
beyond a source that, were the source only held up, more rows would be lost than the reserve has, or than the source
may lose.

**The limits.** Nobody can foresee the first time that a source is later than ever before: a growing lateness is
followed, not foreseen. A source that is first seen with rows older than the heartbeat loses them. A source whose clock
is set back loses the rows it stamps twice. The first 1,000 rows are a warm-up.

`docs/time-core/drop-ratio.md` has the guarantee, its proof, and the measurements.

>>> generator = DropRatio(0.01).start()
>>> for second in range(40):
...     generator.observe(Arrivals.of_row(clock=second, source=0, time=10 * second))
>>> generator.heartbeats(39).combined  # the next row is due at 400
399
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eventide.errors import DeclarationError
from eventide.eventtime.arrays import grown, packed, unpacked
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Ratchet, Snapshot, check_snapshot
from eventide.eventtime.instant import EDGE, FOREVER
from eventide.eventtime.policies.drop_ratio.budget import Budget
from eventide.eventtime.policies.drop_ratio.by_source import BySource
from eventide.eventtime.policies.drop_ratio.combined import Combined
from eventide.eventtime.policies.drop_ratio.lag_meter import LagMeter
from eventide.eventtime.reason import NOT_EXPECTED, LeftOut, Reason

KIND, VERSION = "drop_ratio", 2

_BETTER_BY = 0.9
_UNPROVEN_ROWS = 1_000
_RESERVE_ROWS = 10_000
_LEAST_RESERVE_ROWS = 1_000
_SOURCE_CREDIT_ROWS = 1_000
_SOURCE_SHARE = 2
_RARE_ROWS = 2_000
"""A source all of whose rows are within the allowance of so many holds nobody up."""


@dataclass(frozen=True)
class DropRatio:
    """At most this share of the rows may be late; time comes as early as that allows.

    >>> DropRatio(1.5)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: drop ratio 1.5 is not between 0 and 1: write 0.01 for 1 %
    """

    ratio: float

    def __post_init__(self) -> None:
        if not 0 < self.ratio < 1:
            raise DeclarationError(f"drop ratio {self.ratio} is not between 0 and 1: write 0.01 for 1 %")

    def start(self) -> DropRatioGenerator:
        """A heartbeat generator that has seen nothing."""
        return DropRatioGenerator(self)

    def resume(self, snapshot: Snapshot) -> DropRatioGenerator:
        """A heartbeat generator that continues from `snapshot`."""
        check_snapshot(snapshot, KIND, VERSION)
        generator = DropRatioGenerator(self)
        generator.account = Budget.restored(self.ratio, snapshot["account"])
        generator._reserve = snapshot["reserve"]
        generator._lost_by_source = unpacked(snapshot["lost_by_source"])
        generator._clock = snapshot["clock"]
        generator._by_source = BySource.restored(self.ratio, snapshot["by_source"])
        generator._combined = Combined.restored(self.ratio, snapshot["combined"])
        generator._budget = Budget.restored(self.ratio, snapshot["budget"])
        generator._lags = [LagMeter.restored(saved) for saved in snapshot["lags"]]
        generator._ratchet = Ratchet.restored(snapshot["ratchet"])
        generator.together = snapshot["together"]
        return generator


class DropRatioGenerator:
    """Both candidates, what each would have lost and how long rows wait behind it, and what was really lost."""

    def __init__(self, policy: DropRatio) -> None:
        self.account = Budget(policy.ratio)
        self.together = False
        """Whether all sources are judged together at the moment, and not each by itself."""
        self._reserve = 0.0
        self._lost_by_source = np.zeros(0)
        self._clock = -EDGE
        self._by_source = BySource(policy.ratio)
        self._combined = Combined(policy.ratio)
        self._budget = Budget(policy.ratio)  # Of the first candidate; the second keeps its own.
        self._lags = [LagMeter(), LagMeter()]
        self._ratchet = Ratchet()
        self._answered: int | None = None

    @property
    def candidates(self) -> tuple[int, int]:
        """The combined heartbeats of both candidates: each source by itself, all sources together."""
        return self._by_source.shown, self._combined.shown

    def observe(self, arrivals: Arrivals) -> None:
        """Book what the round lost to what was shown, and let both candidates learn from it."""
        arrivals = arrivals.within_edges()
        if arrivals.clock < self._clock:
            arrivals = replace(arrivals, clock=self._clock)
        self._clock = arrivals.clock
        if arrivals.total == 0:
            return
        self._book(arrivals)
        self._budget.book(arrivals.total, _late_rows(arrivals, self._by_source.shown))
        for meter, shown in zip(self._lags, self.candidates, strict=True):
            meter.observe(arrivals, shown)
        self._by_source.observe(arrivals)
        self._combined.observe(arrivals, self._by_source.progress.largest)
        self._answered = None

    def _book(self, arrivals: Arrivals) -> None:
        late = arrivals.sum_by_source(np.where(arrivals.earliest <= self._ratchet.shown.combined, arrivals.rows, 0))
        lost = float(late.sum())
        self.account.book(arrivals.total, lost)
        earned = self._reserve + self.account.ratio * arrivals.total
        self._reserve = min(earned, self.account.ratio * max(_RESERVE_ROWS, self.account.rows / 10)) - lost
        self._lost_by_source = grown(self._lost_by_source, int(arrivals.source[-1]) + 1, 0.0)
        self._lost_by_source[arrivals.sources] += late

    def heartbeats(self, clock: int) -> Heartbeats:
        """The heartbeat of the candidate that is followed; of every source what it promises by itself."""
        self._clock = max(self._clock, min(max(clock, -EDGE), EDGE))
        if self._answered == self._clock:
            return self._ratchet.shown
        self._answered = self._clock
        alone = self._by_source.heartbeats(self._clock)
        both = (alone.combined, self._combined.lift(self._ceiling()))
        for meter, heartbeat in zip(self._lags, both, strict=True):
            meter.release(self._clock, heartbeat)
        self.together = self._choose(both)
        return self._ratchet.lift(both[self.together], alone.by_source)

    def _choose(self, heartbeats: tuple[int, int]) -> bool:
        """Whether to follow the second candidate."""
        if self.account.overdrawn:
            return heartbeats[1] < heartbeats[0]
        overdrawn = (self._budget.overdrawn, self._combined.budget.overdrawn)
        if overdrawn[0] and overdrawn[1]:
            return self._combined.budget.balance > self._budget.balance
        if overdrawn[0] or overdrawn[1]:
            return overdrawn[0]
        alone, together = (meter.mean(self._clock) for meter in self._lags)
        unproven = 1 + _UNPROVEN_ROWS / max(self.account.rows, 1)
        return self._lags[1].measured and together * unproven < _BETTER_BY * alone

    def _ceiling(self) -> int:
        """The highest heartbeat that stakes no more rows of any source than it, and all of them, may still lose."""
        rows = self._by_source.progress.rows
        if not len(rows):
            return FOREVER
        ratio = self.account.ratio
        reserve = max(self._reserve, ratio * min(self.account.rows, _LEAST_RESERVE_ROWS))
        own = _SOURCE_SHARE * ratio * (rows + _SOURCE_CREDIT_ROWS) - self._lost_by_source
        stake = np.maximum(np.minimum(own, reserve), 0.0)
        holds = self._by_source.awaited() & (rows >= ratio * _RARE_ROWS) & (rows > 1)
        return int(self._by_source.ceiling(stake).min(where=holds, initial=FOREVER))

    def why(self, source: int) -> Reason:
        """The slack that a share of all rows exceeded, or what holds this source by itself."""
        if not self.together:
            return self._by_source.why(source)
        if source >= len(self._by_source.progress.rows) or self._by_source.progress.rows[source] == 0:
            return NOT_EXPECTED
        slack = self._combined.slack()
        late, rows = self._combined.exceeded(slack)
        text = "losing at most {ratio:share}, {slack:length} behind: only {late:count} of {rows:count} rows came later"
        amounts = {"ratio": self.account.ratio, "slack": max(0, slack), "late": late, "rows": rows}
        return Reason("drop ratio", text, amounts, common=True)

    def left_out(self) -> tuple[LeftOut, ...]:
        """The sources that are gone: silent for ten times longer than ever before."""
        return self._by_source.left_out()

    def snapshot(self) -> Snapshot:
        """All of it as plain data; a resumed heartbeat generator gives the same heartbeats."""
        return {
            "kind": KIND,
            "version": VERSION,
            "account": self.account.snapshot(),
            "together": self.together,
            "reserve": self._reserve,
            "lost_by_source": packed(self._lost_by_source),
            "clock": self._clock,
            "by_source": self._by_source.snapshot(),
            "combined": self._combined.snapshot(),
            "budget": self._budget.snapshot(),
            "lags": [meter.snapshot() for meter in self._lags],
            "ratchet": self._ratchet.snapshot(),
        }


def _late_rows(arrivals: Arrivals, heartbeat: int) -> float:
    return float(arrivals.rows[arrivals.earliest <= heartbeat].sum())
