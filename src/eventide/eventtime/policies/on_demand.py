"""On-demand timestamps: what an empty source may promise when an operator waits for it (Stream Mill, section 5).

Law: an enabling timestamp e says that the next row of a source is at e or later, so its heartbeat is e - 1.

- Internal timestamps (given by our clock on entry): e is the clock.
- External timestamps (given by the application): e = t + elapsed * rate - max_skew, where t is the largest time of the
  last round in which the source spoke, `elapsed` the clock since then, `max_skew` the declared largest skew between
  two arrivals, and `rate` the least speed of the source's clock relative to ours.

The combined heartbeat is the least over the sources discovered so far, and over sources 0 to `known` - 1 from the
start.

Limits: it holds as long as the skew does. A source that stops its clock while it is silent needs a rate it can keep.

>>> generator = OnDemand(max_skew=5, internal=(1,)).start()
>>> generator.observe(Arrivals.of_rows(clock=100, source=[0, 1], time=[90, 100]))
>>> generator.heartbeats(120).by_source.tolist()    # 90 + 20 - 5 - 1; 120 - 1
[104, 119]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventide.errors import DeclarationError
from eventide.eventtime.arrays import grown
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Ratchet, SavedGenerator, SavedPolicy
from eventide.eventtime.instant import NEVER, Instants, shift_all
from eventide.eventtime.reason import NOT_HEARD, LeftOut, Reason, not_expected
from eventide.eventtime.sources import check_known, slowest


@dataclass(frozen=True)
class OnDemand(SavedPolicy["OnDemandGenerator"]):
    """Let each silent source's time run on, `max_skew` behind, at `rate`; `internal` sources our clock stamps.

    >>> OnDemand(max_skew=5, rate=0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: rate 0 is not in (0, 1]: give the least speed of a source's clock
    """

    max_skew: int
    rate: float = 1.0
    internal: tuple[int, ...] = ()
    known: int = 0

    def __post_init__(self) -> None:
        if self.max_skew < 0:
            raise DeclarationError(f"skew {self.max_skew} is negative: give the largest skew between two arrivals")
        if not 0 < self.rate <= 1:
            raise DeclarationError(f"rate {self.rate} is not in (0, 1]: give the least speed of a source's clock")
        check_known(self.known)
        if any(source < 0 for source in self.internal):
            raise DeclarationError(f"internal {self.internal}: sources are numbered 0, 1, 2, ..., never below")

    def start(self) -> OnDemandGenerator:
        """A heartbeat generator that has seen nothing."""
        return OnDemandGenerator(self)


class OnDemandGenerator(SavedGenerator):
    """Remembers of every source the time it spoke of last, and at which clock."""

    KIND = "on_demand"
    SAVED = ("_time", "_heard", "_clock", "_ratchet")

    def __init__(self, policy: OnDemand) -> None:
        self._policy = policy
        self._time: Instants = np.full(policy.known, NEVER, dtype=np.int64)
        self._heard: Instants = np.full(policy.known, NEVER, dtype=np.int64)
        self._clock = NEVER
        self._ratchet = Ratchet()

    def observe(self, arrivals: Arrivals) -> None:
        """Note what each source of a round said last."""
        self._clock = max(self._clock, arrivals.clock)
        if arrivals.total:
            self._time = grown(self._time, arrivals.places, NEVER)
            self._heard = grown(self._heard, arrivals.places, NEVER)
            self._time[arrivals.sources] = arrivals.latest_by_source
            self._heard[arrivals.sources] = self._clock

    def heartbeats(self, clock: int) -> Heartbeats:
        """Just below the enabling timestamp of each source, and the least of them."""
        self._clock = max(self._clock, clock)
        own = shift_all(self._enabling_timestamps(), -1)
        return self._ratchet.lift(slowest(own, self._time > NEVER, self._policy.known), own)

    def _enabling_timestamps(self) -> Instants:
        now = np.full(len(self._time), self._clock, dtype=np.int64)
        # A source that has never been heard keeps the time NEVER, however much clock has passed.
        elapsed = shift_all(now, -np.maximum(self._heard, NEVER + 1))
        if self._policy.rate < 1:
            elapsed = np.floor(elapsed * self._policy.rate).astype(np.int64)
        external = shift_all(shift_all(self._time, elapsed), -self._policy.max_skew)
        internal = [source for source in self._policy.internal if source < len(now)]
        external[internal] = now[internal]
        return external

    def why(self, source: int) -> Reason:
        """The skew behind its clock, which runs on in silence."""
        if source in self._policy.internal:
            return Reason("on demand", "stamped by our clock: time is as far as that")
        if source >= len(self._time) or self._time[source] == NEVER:
            return NOT_HEARD
        text = "its time runs on in silence, {skew:length} behind"
        return Reason("on demand", text, {"skew": self._policy.max_skew})

    def left_out(self) -> tuple[LeftOut, ...]:
        """Only who has not spoken and is not expected."""
        return not_expected(self._time > NEVER, self._policy.known)
