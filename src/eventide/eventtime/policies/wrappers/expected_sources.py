"""Expected sources: those that are named in advance are waited for from the start, for so long and no longer.

Law: until every one of `sources` has spoken, has been declared over, or has been given up, nothing is promised, for
anyone. They are given up together, `wait` of the clock after the first reading of it; without a `wait`, never. From
then on `inner` promises, and an expected source that has spoken is one like any other. One that was given up and speaks
after all joins where all stand together, as any new source does: rows of it that are behind are late.

>>> from eventide.eventtime.policies.own_progress import OwnProgress
>>> generator = Expected(OwnProgress(), sources=(0, 1), wait=60).start()
>>> generator.observe(Arrivals.of_row(clock=100, source=0, time=95))
>>> generator.heartbeats(159).combined == NEVER, generator.heartbeats(160).combined
(True, 94)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.arrays import grown
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import (
    Heartbeats,
    Policy,
    Ratchet,
    SavedGenerator,
    SavedPolicy,
    Snapshot,
    Wrapped,
    layers,
)
from eventide.eventtime.instant import NEVER, shift
from eventide.eventtime.reason import EXPECTED, NOT_HEARD, LeftOut, Reason, left_out_of, reason_of, those
from eventide.eventtime.sources import least_without


@dataclass(frozen=True)
class Expected(SavedPolicy["ExpectedGenerator"]):
    """Promise nothing before `sources` have spoken, or `wait` has passed; then follow `inner`.

    >>> from eventide.eventtime.policies.own_progress import OwnProgress
    >>> Expected(OwnProgress(), sources=())
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: no source is expected: name at least one
    """

    inner: Policy
    sources: tuple[int, ...]
    wait: int | None = None

    def __post_init__(self) -> None:
        if not self.sources:
            raise DeclarationError("no source is expected: name at least one")
        if any(source < 0 for source in self.sources):
            raise DeclarationError(f"expected {self.sources}: sources are numbered 0, 1, 2, ..., never below")
        if self.wait is not None and self.wait < 1:
            raise DeclarationError(
                f"given up after {self.wait}, a source is not expected: give how long to wait, 1 or more"
            )

    def start(self) -> ExpectedGenerator:
        """A heartbeat generator that has seen nothing."""
        return ExpectedGenerator(self)


class ExpectedGenerator(SavedGenerator):
    """Remembers who has not spoken yet, and since when they are waited for."""

    KIND = "expected"
    SAVED = ("inner", "_sources", "_first_clock", "_clock", "_ratchet")

    def __init__(self, policy: Expected) -> None:
        self._policy = policy
        self.inner = Wrapped(policy.inner)
        self._missing: NDArray[np.bool_] = np.zeros(max(policy.sources) + 1, dtype=np.bool_)
        self._missing[list(policy.sources)] = True
        self._over: set[int] = set()
        self._sources = len(self._missing)
        self._first_clock: int | None = None
        self._clock = NEVER
        self._ratchet = Ratchet()

    def observe(self, arrivals: Arrivals) -> None:
        """Pass a round on, and note who spoke."""
        self._advance(arrivals.clock)
        self.inner.observe(arrivals)
        if arrivals.total:
            self._sources = max(self._sources, arrivals.places)
            self._missing[arrivals.sources[arrivals.sources < len(self._missing)]] = False

    def hear(self, sources: NDArray[np.intp], clock: int) -> None:
        """These sources spoke without a row: they are there."""
        self._advance(clock)
        self._sources = max(self._sources, int(sources.max()) + 1)
        self._missing[sources[sources < len(self._missing)]] = False

    def end(self, source: int) -> None:
        """A source is over: it is not expected any more."""
        self._over.add(source)

    def _advance(self, clock: int) -> None:
        self._clock = max(self._clock, clock)
        if self._first_clock is None:
            self._first_clock = clock

    @property
    def awaited(self) -> NDArray[np.intp]:
        """The sources for which everything waits now."""
        wait, first = self._policy.wait, self._first_clock
        if wait is not None and first is not None and self._clock >= shift(first, wait):
            return np.zeros(0, dtype=np.intp)
        return np.array([one for one in np.flatnonzero(self._missing) if int(one) not in self._over], dtype=np.intp)

    def heartbeats(self, clock: int) -> Heartbeats:
        """Nothing while someone is awaited; then what the inner policy promises of the others."""
        self._advance(clock)
        if len(self.awaited):
            # Asked now, the inner policy would promise past rows that are still welcome, and could not take it back.
            return self._ratchet.lift(NEVER, np.full(self._sources, NEVER, dtype=np.int64))
        said = self.inner.heartbeats(self._clock)
        combined = least_without(said, self._absent(len(said.by_source))) if self._missing.any() else said.combined
        return self._ratchet.lift(combined, grown(said.by_source, self._sources, NEVER))

    def _absent(self, sources: int) -> NDArray[np.bool_]:
        """Sources that never spoke, and those that the inner policy does not wait for."""
        absent = grown(self._missing, sources, False).copy()
        for out in left_out_of(self.inner):
            absent[out.sources[out.sources < len(absent)]] = True
        return absent

    def why(self, source: int) -> Reason:
        """That it is expected; or the inner policy's reason."""
        missing = source < len(self._missing) and bool(self._missing[source])
        reason = NOT_HEARD if missing or len(self.awaited) else reason_of(self.inner, source)
        if reason is not NOT_HEARD or self._policy.wait is None:
            return reason
        first = self._clock if self._first_clock is None else self._first_clock
        given_up = Reason(EXPECTED, "given up at {at:clock}", {"at": shift(first, self._policy.wait)})
        return reason.unless(given_up)

    def left_out(self) -> tuple[LeftOut, ...]:
        """Sources that were given up or over before they spoke, and those that the inner policy does not wait for."""
        missing = self._missing.copy()
        missing[self.awaited] = False
        rule = Reason(EXPECTED, "it never spoke")
        if self._policy.wait is not None:
            rule = Reason(EXPECTED, "it never spoke, and was given up after {wait:wait}", {"wait": self._policy.wait})
        # The inner policy knows nothing of expectations: for it, who has not spoken is nobody.
        of_inner = (
            (out, out.sources[~grown(self._missing, int(out.sources.max()) + 1, False)[out.sources]])
            for out in left_out_of(self.inner)
        )
        return (*those(rule, missing), *(LeftOut(out.reason, sources) for out, sources in of_inner if len(sources)))

    def snapshot(self) -> Snapshot:
        """The inner snapshot, who has not spoken, who is over, the clocks, and the heartbeats shown."""
        missing = np.flatnonzero(self._missing).tolist()
        return {**super().snapshot(), "missing": missing, "over": sorted(self._over)}

    def restore(self, saved: Snapshot) -> None:
        """Go on from what `snapshot` described."""
        super().restore(saved)
        self._missing[:] = False
        self._missing[saved["missing"]] = True
        self._over = set(saved["over"])


def tell_end(generator: object, source: int) -> None:
    """Tell a heartbeat generator, and those it wraps, that a source is over.

    >>> from eventide.eventtime.policies.own_progress import OwnProgress
    >>> generator = Expected(OwnProgress(), sources=(0, 1)).start()
    >>> tell_end(generator, 1)
    >>> generator.awaited.tolist()
    [0]
    """
    for layer in layers(generator):
        if isinstance(layer, ExpectedGenerator):
            layer.end(source)
