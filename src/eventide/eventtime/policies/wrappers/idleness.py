"""Idleness: a source that has been silent too long no longer holds the others.

Law: a source that has not spoken for `after` of the clock is idle. The combined heartbeat is the least over the
sources that are not idle, or what `inner` promises if that is more. When every source is idle, time stands where the
last of them stood (that is a case for `Timeout`), however rarely it was asked. A source that speaks again is waited for
again; rows below the combined heartbeat that it brings are late.

Sources are those that `inner` has a heartbeat for; one that never spoke is silent since the first clock seen.

Limits: `after` has to be longer than the honest silences of the rarest source. Useful over policies that have a
heartbeat per source (`OwnProgress`, `OnDemand`); a policy with one heartbeat for all waits for nobody anyway.

>>> from eventide.eventtime.policies.own_progress import OwnProgress
>>> generator = Idle(OwnProgress(), after=30).start()
>>> generator.observe(Arrivals.of_rows(clock=100, source=[0, 1], time=[51, 91]))
>>> generator.observe(Arrivals.of_row(clock=129, source=1, time=121))
>>> generator.heartbeats(129).combined, generator.heartbeats(130).combined
(50, 120)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.arrays import grown
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Policy, Ratchet, SavedGenerator, SavedPolicy, Wrapped, layers
from eventide.eventtime.instant import NEVER, Instants, shift
from eventide.eventtime.reason import LeftOut, Reason, left_out_of, reason_of, those
from eventide.eventtime.sources import slowest


@dataclass(frozen=True)
class Idle(SavedPolicy["IdleGenerator"]):
    """Follow `inner`, but wait for no source that has been silent for `after`.

    >>> from eventide.eventtime.policies.own_progress import OwnProgress
    >>> Idle(OwnProgress(), after=0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: idle after 0 would wait for nobody: give how long a silence may last, 1 or more
    """

    inner: Policy
    after: int

    def __post_init__(self) -> None:
        if self.after < 1:
            raise DeclarationError(
                f"idle after {self.after} would wait for nobody: give how long a silence may last, 1 or more"
            )

    def start(self) -> IdleGenerator:
        """A heartbeat generator that has seen nothing."""
        return IdleGenerator(self)


def permitted_silence(policy: object) -> int | None:
    """How long a source may be silent before nobody waits for it; None where that is not declared.

    >>> from eventide.eventtime.policies.own_progress import OwnProgress
    >>> permitted_silence(Idle(OwnProgress(), after=60)), permitted_silence(OwnProgress())
    (60, None)
    """
    return next((layer.after for layer in layers(policy) if isinstance(layer, Idle)), None)


class IdleGenerator(SavedGenerator):
    """Remembers at which clock each source spoke last."""

    KIND = "idle"
    SAVED = ("inner", "_heard", "_first_clock", "_clock", "_ratchet")

    def __init__(self, policy: Idle) -> None:
        self._after = policy.after
        self.inner = Wrapped(policy.inner)
        self._heard: Instants = np.zeros(0, dtype=np.int64)
        self._first_clock: int | None = None
        self._clock = NEVER
        self._ratchet = Ratchet()

    def observe(self, arrivals: Arrivals) -> None:
        """Pass a round on, and note who spoke."""
        self._advance(arrivals.clock)
        self.inner.observe(arrivals)
        if arrivals.total:
            self._meet(arrivals.places)
            self._heard[arrivals.sources] = self._clock

    def hear(self, sources: NDArray[np.intp], clock: int) -> None:
        """These sources spoke without a row: they are not idle."""
        self._advance(clock)
        self._meet(int(sources.max()) + 1)
        self._heard[sources] = self._clock

    def _advance(self, clock: int) -> None:
        self._clock = max(self._clock, clock)
        if self._first_clock is None:
            self._first_clock = clock

    def _meet(self, sources: int) -> None:
        self._heard = grown(self._heard, sources, NEVER if self._first_clock is None else self._first_clock)

    def heartbeats(self, clock: int) -> Heartbeats:
        """What the inner policy promises for the sources that are not idle."""
        before = self._clock
        self._advance(clock)
        # While someone is awake, fewer are waited for as time goes on; when nobody is, that is over. So the last such
        # moment has to be asked about, lest what is promised depend on how often it is asked.
        last_awake = shift(int(self._heard.max(initial=NEVER)), self._after - 1)
        if before < last_awake < self._clock:
            self._asked(last_awake)
        return self._asked(self._clock)

    def _asked(self, clock: int) -> Heartbeats:
        inner = self.inner.heartbeats(clock)
        self._meet(len(inner.by_source))
        awake = self._heard[: len(inner.by_source)] > shift(clock, -self._after)
        return self._ratchet.lift(max(inner.combined, slowest(inner.by_source, awake)), inner.by_source)

    def why(self, source: int) -> Reason:
        """The inner policy's reason, unless it is silent for so long."""
        rule = Reason("idle after", "not waited for after {after:wait} of silence", {"after": self._after})
        return reason_of(self.inner, source).unless(rule)

    def left_out(self) -> tuple[LeftOut, ...]:
        """The idle sources, and those that the inner policy does not wait for."""
        rule = Reason("idle after", "silent for {after:wait} or longer", {"after": self._after})
        return (*left_out_of(self.inner), *those(rule, self._heard <= shift(self._clock, -self._after)))
