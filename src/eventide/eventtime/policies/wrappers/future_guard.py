"""The future guard: a row stamped far ahead must not move time.

Law: a row whose time lies more than `ahead` beyond its reference is withheld from `inner` and counted. So one broken
clock, one wrong unit, one date in 2099 makes no honest row late. The row itself is not lost: it is an ordinary row of a
slice that is open for a long time. The reference is

- `against="clock"`: the clock of the round; for times that follow the clock.
- `against="peers"`: the largest time that any *other* source spoke of in the last round it spoke; for times with no
  relation to the clock. A source without peers cannot be judged and passes.

In a cell that lies on both sides of the limit, one row is withheld and the others are taken to be at its earliest time.

Limits: `ahead` must cover honest clock errors, and, with peers, honest gaps between sources: the first source to wake
up after a long common silence is not believed until a second one agrees.

>>> from eventide.eventtime.policies.fixed_delay import FixedDelay
>>> generator = FutureGuard(FixedDelay(10), ahead=60).start()
>>> generator.observe(Arrivals.of_row(clock=1000, source=0, time=990))
>>> generator.observe(Arrivals.of_row(clock=1001, source=1, time=999_999))
>>> generator.heartbeats(1001).combined, generator.withheld
(980, 1)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from eventide.errors import DeclarationError
from eventide.eventtime.arrays import grown
from eventide.eventtime.arrivals import Arrivals, selected
from eventide.eventtime.heartbeat import Heartbeats, Policy, Ratchet, SavedGenerator, SavedPolicy, Wrapped
from eventide.eventtime.instant import FOREVER, NEVER, Instants, shift_all
from eventide.eventtime.reason import LeftOut, Reason, left_out_of, reason_of


@dataclass(frozen=True)
class FutureGuard(SavedPolicy["FutureGuardGenerator"]):
    """Hides rows from `inner` that are more than `ahead` beyond the clock, or beyond all other sources.

    >>> from eventide.eventtime.policies.fixed_delay import FixedDelay
    >>> FutureGuard(FixedDelay(10), ahead=-1)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: ahead -1 is negative: give how far an honest row may be ahead, 0 or more
    """

    inner: Policy
    ahead: int
    against: Literal["clock", "peers"] = "clock"

    def __post_init__(self) -> None:
        if self.ahead < 0:
            raise DeclarationError(
                f"ahead {self.ahead} is negative: give how far an honest row may be ahead, 0 or more"
            )
        if self.against not in ("clock", "peers"):
            raise DeclarationError(f"a row cannot be judged against {self.against!r}: write 'clock' or 'peers'")

    def start(self) -> FutureGuardGenerator:
        """A heartbeat generator that has seen nothing."""
        return FutureGuardGenerator(self)


class FutureGuardGenerator(SavedGenerator):
    """Counts the rows withheld, and remembers the time each source spoke of last (`NEVER` if it has not)."""

    KIND = "future_guard"
    SAVED = ("inner", "withheld", "_spoke_of", "_clock", "_ratchet")

    def __init__(self, policy: FutureGuard) -> None:
        self._policy = policy
        self.inner = Wrapped(policy.inner)
        self.withheld = 0
        self._spoke_of: Instants = np.zeros(0, dtype=np.int64)
        self._clock = NEVER
        self._ratchet = Ratchet()

    def observe(self, arrivals: Arrivals) -> None:
        """Pass on what can be believed of a round."""
        self._clock = max(self._clock, arrivals.clock)
        if arrivals.total == 0:
            self.inner.observe(arrivals)
            return
        self._spoke_of = grown(self._spoke_of, arrivals.places, NEVER)
        self._spoke_of[arrivals.sources] = arrivals.latest_by_source
        limit = shift_all(self._reference(arrivals), self._policy.ahead)
        beyond = arrivals.earliest > limit
        astride = ~beyond & (arrivals.latest > limit)
        self.withheld += int(arrivals.rows[beyond].sum()) + int(astride.sum())
        if astride.any():
            arrivals = self._without_one(arrivals, astride)
        self.inner.observe(selected(arrivals, ~beyond) if beyond.any() else arrivals)

    def _reference(self, arrivals: Arrivals) -> Instants:
        if self._policy.against == "clock":
            return np.full(len(arrivals.source), self._clock, dtype=np.int64)
        foremost = int(self._spoke_of.argmax())
        others = np.delete(self._spoke_of, foremost).max(initial=NEVER)
        reference = np.where(arrivals.source == foremost, others, self._spoke_of[foremost])
        return np.where(reference == NEVER, FOREVER, reference)

    @staticmethod
    def _without_one(arrivals: Arrivals, astride: np.ndarray) -> Arrivals:
        rows = arrivals.rows - astride
        delay = float(arrivals.clock) - arrivals.earliest.astype(np.float64)
        return replace(
            arrivals,
            rows=rows,
            latest=np.where(astride, arrivals.earliest, arrivals.latest),
            delay_sum=np.where(astride, rows * delay, arrivals.delay_sum),
            delay_square_sum=np.where(astride, rows * delay * delay, arrivals.delay_square_sum),
        )

    def heartbeats(self, clock: int) -> Heartbeats:
        """What the inner policy promises."""
        self._clock = max(self._clock, clock)
        inner = self.inner.heartbeats(self._clock)
        # The inner policy has not met a source all of whose rows were withheld: it stands where all stand together.
        return self._ratchet.lift(inner.combined, grown(inner.by_source, len(self._spoke_of), inner.combined))

    def why(self, source: int) -> Reason:
        """The inner policy's reason; rows that were withheld moved nothing."""
        return reason_of(self.inner, source)

    def left_out(self) -> tuple[LeftOut, ...]:
        """The sources that the inner policy does not wait for."""
        return left_out_of(self.inner)
