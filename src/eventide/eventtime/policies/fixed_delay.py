"""A fixed delay: time has come as far as the largest time seen, less a constant.

Law: heartbeat = largest time seen - delay. This is what Spark's `withWatermark(column, delay)` computes, per query and
over all sources together; Eventide moves it within the round, Spark with the next one.

Limits: the delay is a guess; one source ahead of the others makes the others late; one row stamped far ahead makes all
of them late (wrap it in `FutureGuard`); time stands still in silence (wrap it in `Timeout`).

>>> generator = FixedDelay(delay=10).start()
>>> generator.observe(Arrivals.of_rows(clock=100, source=[0, 1], time=[95, 70]))
>>> generator.heartbeats(100).combined
85
"""

from __future__ import annotations

from dataclasses import dataclass

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Ratchet, SavedGenerator, SavedPolicy
from eventide.eventtime.instant import NEVER, shift
from eventide.eventtime.reason import LeftOut, Reason


@dataclass(frozen=True)
class FixedDelay(SavedPolicy["FixedDelayGenerator"]):
    """Trail the largest time seen by `delay`.

    >>> FixedDelay(-1)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: delay -1 is negative: give how far time may trail the largest time seen, 0 or more
    """

    delay: int

    def __post_init__(self) -> None:
        if self.delay < 0:
            raise DeclarationError(
                f"delay {self.delay} is negative: give how far time may trail the largest time seen, 0 or more"
            )

    def start(self) -> FixedDelayGenerator:
        """A heartbeat generator that has seen nothing."""
        return FixedDelayGenerator(self)


class FixedDelayGenerator(SavedGenerator):
    """Remembers the largest time seen."""

    KIND = "fixed_delay"
    SAVED = ("_largest", "_sources", "_ratchet")

    def __init__(self, policy: FixedDelay) -> None:
        self._policy = policy
        self._largest = NEVER
        self._sources = 0
        self._ratchet = Ratchet()

    def observe(self, arrivals: Arrivals) -> None:
        """Learn the largest time of a round."""
        if arrivals.total:
            self._largest = max(self._largest, int(arrivals.latest.max()))
            self._sources = max(self._sources, arrivals.places)

    def heartbeats(self, clock: int) -> Heartbeats:
        """The largest time less the delay, for every source; the clock plays no part."""
        return self._ratchet.lift_all(shift(self._largest, -self._policy.delay), self._sources)

    def why(self, source: int) -> Reason:
        """The delay, which holds all sources alike."""
        delay = self._policy.delay
        return Reason("delay", "{delay:length} behind the largest time of all", {"delay": delay}, common=True)

    def left_out(self) -> tuple[LeftOut, ...]:
        """None: all sources have one heartbeat, and none is waited for."""
        return ()
