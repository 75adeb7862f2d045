"""The least of several policies: promise only what all of them promise.

Law: each heartbeat, combined or of a source, is the least of what the policies promise there.

Limits: it is as slow as the slowest of them, and stops where one of them stops.

>>> from eventide.eventtime.policies.clock_skew import ClockSkew
>>> from eventide.eventtime.policies.fixed_delay import FixedDelay
>>> generator = Minimum((FixedDelay(10), ClockSkew(50))).start()
>>> generator.observe(Arrivals.of_row(clock=100, source=0, time=95))
>>> generator.heartbeats(100).combined, generator.heartbeats(200).combined
(49, 85)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventide.errors import DeclarationError, SnapshotError
from eventide.eventtime.arrays import grown
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Policy, Ratchet, SavedGenerator, SavedPolicy, Snapshot, Wrapped
from eventide.eventtime.reason import LeftOut, Reason, left_out_of, reason_of


@dataclass(frozen=True)
class Minimum(SavedPolicy["MinimumGenerator"]):
    """Promise what every one of `policies` promises.

    >>> Minimum(())
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: the least of no policies is no promise: give at least one
    """

    policies: tuple[Policy, ...]

    def __post_init__(self) -> None:
        if not self.policies:
            raise DeclarationError("the least of no policies is no promise: give at least one")

    def start(self) -> MinimumGenerator:
        """A heartbeat generator that has seen nothing."""
        return MinimumGenerator(self)


class MinimumGenerator(SavedGenerator):
    """Runs all policies side by side."""

    KIND = "minimum"
    SAVED = ("inner", "_ratchet")

    def __init__(self, policy: Minimum) -> None:
        self.inner = tuple(map(Wrapped, policy.policies))
        self._ratchet = Ratchet()
        self._promises: tuple[Heartbeats, ...] = ()

    def observe(self, arrivals: Arrivals) -> None:
        """Pass a round on to every policy."""
        for generator in self.inner:
            generator.observe(arrivals)

    def heartbeats(self, clock: int) -> Heartbeats:
        """The least of what the policies promise."""
        promises = self._promises = tuple(generator.heartbeats(clock) for generator in self.inner)
        sources = max(len(promise.by_source) for promise in promises)
        # A policy that does not know a source promises for it what it promises for all.
        by_source = [grown(promise.by_source, sources, promise.combined) for promise in promises]
        return self._ratchet.lift(min(promise.combined for promise in promises), np.minimum.reduce(by_source))

    def why(self, source: int) -> Reason:
        """The reason of the policy that promises least."""
        least = [promise.of(source) for promise in self._promises]
        return reason_of(self.inner[least.index(min(least)) if least else 0], source)

    def left_out(self) -> tuple[LeftOut, ...]:
        """Sources that none of the policies waits for; the rule is that of the first."""
        of_each = [{int(source) for out in left_out_of(one) for source in out.sources} for one in self.inner]
        everywhere = set.intersection(*of_each)
        kept = (
            (out.reason, [one for one in out.sources if int(one) in everywhere]) for out in left_out_of(self.inner[0])
        )
        return tuple(LeftOut(reason, np.array(sources, dtype=np.intp)) for reason, sources in kept if sources)

    def check(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot of more or fewer policies, too."""
        super().check(snapshot)
        if len(snapshot["inner"]) != len(self.inner):
            raise SnapshotError(f"this snapshot is of {len(snapshot['inner'])} policies, not of {len(self.inner)}")
