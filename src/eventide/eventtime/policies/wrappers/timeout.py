"""Timeout: when every source has paused, time catches up with the largest time seen (STREAM, section 3.3).

Law: if no row arrives on any source for `after` of the clock, a heartbeat equal to the largest time seen so far is
given for all sources: the user declares that whatever comes afterwards is later than anything before.

Limits: it cannot tell a pause from an outage of everybody; rows that were stuck meanwhile are late when they come.

>>> from eventide.eventtime.policies.fixed_delay import FixedDelay
>>> generator = Timeout(FixedDelay(10), after=60).start()
>>> generator.observe(Arrivals.of_row(clock=100, source=0, time=95))
>>> generator.heartbeats(159).combined, generator.heartbeats(160).combined
(85, 95)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Policy, Ratchet, SavedGenerator, SavedPolicy, Wrapped
from eventide.eventtime.instant import NEVER, Instants
from eventide.eventtime.reason import LeftOut, Reason, beyond, left_out_of, reason_of


@dataclass(frozen=True)
class Timeout(SavedPolicy["TimeoutGenerator"]):
    """Follows `inner`; when all sources are silent for `after`, moves the heartbeat to the largest time seen.

    >>> from eventide.eventtime.policies.fixed_delay import FixedDelay
    >>> Timeout(FixedDelay(10), after=0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a timeout after 0 would never wait: give how long a silence may last, 1 or more
    """

    inner: Policy
    after: int

    def __post_init__(self) -> None:
        if self.after < 1:
            raise DeclarationError(
                f"a timeout after {self.after} would never wait: give how long a silence may last, 1 or more"
            )

    def start(self) -> TimeoutGenerator:
        """A heartbeat generator that has seen nothing."""
        return TimeoutGenerator(self)


class TimeoutGenerator(SavedGenerator):
    """Remembers the largest time, and when any row arrived last."""

    KIND = "timeout"
    SAVED = ("inner", "_largest", "_heard", "_clock", "_ratchet")

    def __init__(self, policy: Timeout) -> None:
        self._after = policy.after
        self.inner = Wrapped(policy.inner)
        self._largest = NEVER
        self._heard: int | None = None
        self._clock = NEVER
        self._ratchet = Ratchet()
        self._timed_out = NEVER
        self._promised: Instants = np.zeros(0, dtype=np.int64)

    def observe(self, arrivals: Arrivals) -> None:
        """Pass a round on, and note when it brought rows."""
        self._clock = max(self._clock, arrivals.clock)
        self.inner.observe(arrivals)
        if arrivals.total:
            self._largest = max(self._largest, int(arrivals.latest.max()))
            self._heard = self._clock

    def hear(self, sources: NDArray[np.intp], clock: int) -> None:
        """Somebody spoke without a row: there is no common silence."""
        self._clock = max(self._clock, clock)
        self._heard = self._clock

    def heartbeats(self, clock: int) -> Heartbeats:
        """What the inner policy promises, or the largest time seen once the silence has lasted."""
        self._clock = max(self._clock, clock)
        inner = self.inner.heartbeats(self._clock)
        silent = self._heard is not None and self._heard + self._after <= self._clock
        self._timed_out, self._promised = self._largest if silent else NEVER, inner.by_source
        return self._ratchet.lift(max(inner.combined, self._timed_out), inner.by_source)

    def why(self, source: int) -> Reason:
        """The inner policy's reason, unless all are silent for so long."""
        rule = Reason(
            "timeout", "after a common silence of {after:wait} time goes on all the same", {"after": self._after}
        )
        return reason_of(self.inner, source).unless(rule)

    def left_out(self) -> tuple[LeftOut, ...]:
        """Sources that the inner policy does not wait for, and those that the timeout has passed."""
        rule = Reason("timeout", "everyone was silent for {after:wait}", {"after": self._after})
        return (*left_out_of(self.inner), *beyond(rule, self._timed_out, self._promised))
