"""Caps: however unsure a policy is, time never trails by more than the user can bear.

Law: the heartbeat is what `inner` promises, or more where a cap demands it:

- `rows`: at most so many rows have times above the heartbeat, so no more has to be held. In a digested round all rows
  of a cell are taken to be at its latest time: a cap is a hard bound on memory and errs on that side.
- `behind_clock`: the heartbeat trails the clock by at most that.
- `behind_largest`: the heartbeat trails the largest time seen by at most that.

Limits: a cap trades rows for memory or time; what it closes early is late when it comes.

>>> from eventide.eventtime.policies.own_progress import OwnProgress
>>> generator = Cap(OwnProgress(), behind_largest=20).start()
>>> generator.observe(Arrivals.of_rows(clock=0, source=[0, 1], time=[10, 100]))
>>> generator.heartbeats(0).combined
80
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Policy, Ratchet, SavedGenerator, SavedPolicy, Wrapped
from eventide.eventtime.instant import NEVER, Instants, shift
from eventide.eventtime.policies.slack import LargestTimes
from eventide.eventtime.reason import LeftOut, Reason, beyond, left_out_of, reason_of


@dataclass(frozen=True)
class Cap(SavedPolicy["CapGenerator"]):
    """Follow `inner`, holding at most `rows`, trailing the clock or the largest time at most so far.

    >>> from eventide.eventtime.policies.own_progress import OwnProgress
    >>> Cap(OwnProgress())
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a cap on nothing: give at least one of rows, behind_clock, behind_largest
    """

    inner: Policy
    rows: int | None = None
    behind_clock: int | None = None
    behind_largest: int | None = None

    def __post_init__(self) -> None:
        limits = {"rows": self.rows, "behind_clock": self.behind_clock, "behind_largest": self.behind_largest}
        given = {name: limit for name, limit in limits.items() if limit is not None}
        if not given:
            raise DeclarationError(f"a cap on nothing: give at least one of {', '.join(limits)}")
        for name, limit in given.items():
            if limit < 0:
                raise DeclarationError(f"cap {name}={limit} is negative: give 0 or more")

    def start(self) -> CapGenerator:
        """A heartbeat generator that has seen nothing."""
        return CapGenerator(self)


class CapGenerator(SavedGenerator):
    """Remembers the largest time, and as many of the largest times as may be held, and one more."""

    KIND = "cap"
    SAVED = ("inner", "_held", "_largest", "_clock", "_ratchet")

    def __init__(self, policy: Cap) -> None:
        self._policy = policy
        self.inner = Wrapped(policy.inner)
        self._keep = 0 if policy.rows is None else policy.rows + 1
        self._held = LargestTimes(self._keep)
        self._largest = NEVER
        self._clock = NEVER
        self._ratchet = Ratchet()
        self._raised = NEVER
        self._promised: Instants = np.zeros(0, dtype=np.int64)

    def observe(self, arrivals: Arrivals) -> None:
        """Pass a round on, and note its times."""
        self._clock = max(self._clock, arrivals.clock)
        self.inner.observe(arrivals)
        if arrivals.total:
            self._largest = max(self._largest, int(arrivals.latest.max()))
            if self._policy.rows is not None:
                self._held.add(arrivals.latest, arrivals.rows)

    def heartbeats(self, clock: int) -> Heartbeats:
        """What the inner policy promises, raised to the caps."""
        self._clock = max(self._clock, clock)
        inner = self.inner.heartbeats(self._clock)
        least = inner.combined
        if self._policy.rows is not None:
            least = max(least, self._held.least)
        if self._policy.behind_clock is not None:
            least = max(least, shift(self._clock, -self._policy.behind_clock))
        if self._policy.behind_largest is not None:
            least = max(least, shift(self._largest, -self._policy.behind_largest))
        self._raised, self._promised = least if least > inner.combined else NEVER, inner.by_source
        return self._ratchet.lift(least, inner.by_source)

    def why(self, source: int) -> Reason:
        """The inner policy's reason, unless a cap demands more."""
        return reason_of(self.inner, source).unless(self._rule())

    def _rule(self) -> Reason:
        texts = {
            "rows": "{rows:count} rows held back",
            "behind_clock": "{behind_clock:wait} behind the clock",
            "behind_largest": "{behind_largest:length} behind the largest time",
        }
        limits = {name: limit for name in texts if (limit := getattr(self._policy, name)) is not None}
        return Reason("cap", "at most " + " and ".join(texts[name] for name in limits), limits)

    def left_out(self) -> tuple[LeftOut, ...]:
        """Sources that the inner policy does not wait for, and those that a cap has passed."""
        return (*left_out_of(self.inner), *beyond(self._rule(), self._raised, self._promised))
