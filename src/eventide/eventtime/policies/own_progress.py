"""Own progress: each source is as far as its own largest time; all together, as far as the slowest.

Law: the heartbeat of a source is its largest time - 1 - slack. With slack 0 it loses nothing from a source whose rows
come in order, equal times included. The combined heartbeat is the least over the sources: those discovered so far, and
those `known` from the start even before they speak.

Limits: a source that falls silent holds everybody (wrap in `Idle`); a discovered source joins at the combined
heartbeat, so its first rows may be late (declare it `known`).

>>> generator = OwnProgress(slack=2).start()
>>> generator.observe(Arrivals.of_rows(clock=0, source=[0, 0, 1], time=[10, 14, 30]))
>>> h = generator.heartbeats(0)
>>> h.combined, h.by_source.tolist()
(11, [11, 27])
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
class OwnProgress(SavedPolicy["OwnProgressGenerator"]):
    """Keeps the heartbeat of each source `slack` behind its own largest time; the combined one is the least of them.

    Sources 0 to `known` - 1 are waited for from the start.

    >>> OwnProgress(slack=-5)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: slack -5 is negative: give how far a source's rows may be out of order, 0 or more
    """

    slack: int = 0
    known: int = 0

    def __post_init__(self) -> None:
        if self.slack < 0:
            raise DeclarationError(
                f"slack {self.slack} is negative: give how far a source's rows may be out of order, 0 or more"
            )
        check_known(self.known)

    def start(self) -> OwnProgressGenerator:
        """A heartbeat generator that has seen nothing."""
        return OwnProgressGenerator(self)


class OwnProgressGenerator(SavedGenerator):
    """Remembers the largest time of every source, `NEVER` for one that has not spoken."""

    KIND = "own_progress"
    SAVED = ("_largest", "_ratchet")

    def __init__(self, policy: OwnProgress) -> None:
        self._policy = policy
        self._largest: Instants = np.full(policy.known, NEVER, dtype=np.int64)
        self._ratchet = Ratchet()

    def observe(self, arrivals: Arrivals) -> None:
        """Learn the largest times of a round."""
        if arrivals.total:
            self._largest = grown(self._largest, arrivals.places, NEVER)
            spoke = arrivals.sources
            self._largest[spoke] = np.maximum(self._largest[spoke], arrivals.latest_by_source)

    def heartbeats(self, clock: int) -> Heartbeats:
        """The own progress of each source, and the least of them; the clock plays no part."""
        own = shift_all(shift_all(self._largest, -self._policy.slack), -1)
        return self._ratchet.lift(slowest(own, self._largest > NEVER, self._policy.known), own)

    def why(self, source: int) -> Reason:
        """The source's own largest time, which holds it."""
        if source >= len(self._largest) or self._largest[source] == NEVER:
            return NOT_HEARD
        slack = {"slack": self._policy.slack} if self._policy.slack else {}
        text = "{slack:length} behind its own largest time" if slack else "as far as its own largest time"
        return Reason("own progress", text, slack)

    def left_out(self) -> tuple[LeftOut, ...]:
        """Only who has not spoken and is not expected."""
        return not_expected(self._largest > NEVER, self._policy.known)
