"""Clock-based progress: rows trail the system clock by no more than a declared skew (Gigascope, section 4.5).

Law: whoever sets the system up declares that a row that arrives at clock c has a time of at least c - max_skew. So
the heartbeat at clock c is c - max_skew - 1, rows or no rows. A row that breaks the declaration is below the
heartbeat: the receiver counts it as late, as Gigascope's receivers discard it.

Limits: needs times that follow the clock. The skew includes every buffer on the way, and a source that is delayed
longer loses all its rows.

>>> h = ClockSkew(max_skew=5, by_source=(20,)).start().heartbeats(100)
>>> h.combined, h.by_source.tolist()
(79, [79])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventide.errors import DeclarationError
from eventide.eventtime.arrays import grown
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Ratchet, SavedGenerator, SavedPolicy
from eventide.eventtime.instant import NEVER, Instants, shift, shift_all
from eventide.eventtime.reason import LeftOut, Reason


@dataclass(frozen=True)
class ClockSkew(SavedPolicy["ClockSkewGenerator"]):
    """Trail the clock by `max_skew`; sources 0, 1, ... by what `by_source` says of them instead.

    A negative skew is a source whose clock is known to be ahead.

    >>> ClockSkew(max_skew=5).start().heartbeats(100).combined
    94
    """

    max_skew: int
    by_source: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for skew in (self.max_skew, *self.by_source):
            if not NEVER < skew < -NEVER:
                raise DeclarationError(f"skew {skew} does not fit into 64 bits: check its unit")

    def start(self) -> ClockSkewGenerator:
        """A heartbeat generator that has not seen the clock."""
        return ClockSkewGenerator(self)


class ClockSkewGenerator(SavedGenerator):
    """Trails the clock by the declared skews."""

    KIND = "clock_skew"
    SAVED = ("_clock", "_sources", "_ratchet")

    def __init__(self, policy: ClockSkew) -> None:
        self._skews: Instants = np.array(policy.by_source, dtype=np.int64)
        self._max_skew = policy.max_skew
        self._largest_skew = max(policy.max_skew, *policy.by_source) if policy.by_source else policy.max_skew
        self._sources = len(policy.by_source)
        self._clock = NEVER
        self._ratchet = Ratchet()

    def observe(self, arrivals: Arrivals) -> None:
        """Note the clock of a round, and how many sources there are; what the rows say plays no part."""
        self._clock = max(self._clock, arrivals.clock)
        self._sources = max(self._sources, arrivals.places)

    def heartbeats(self, clock: int) -> Heartbeats:
        """The clock less the skew of each source; for all together, less the largest skew declared."""
        self._clock = max(self._clock, clock)
        if len(self._skews) == 0:
            return self._ratchet.lift_all(self._clock_less(self._max_skew), self._sources)
        self._skews = grown(self._skews, self._sources, self._max_skew)
        now = np.full(self._sources, self._clock, dtype=np.int64)
        return self._ratchet.lift(self._clock_less(self._largest_skew), shift_all(shift_all(now, -self._skews), -1))

    def _clock_less(self, skew: int) -> int:
        return shift(shift(self._clock, -skew), -1)

    def why(self, source: int) -> Reason:
        """The declared skew to the clock."""
        skew = int(self._skews[source]) if source < len(self._skews) else self._max_skew
        text = "the clock less a declared skew of {skew:wait}"
        return Reason("clock skew", text, {"skew": skew}, common=not len(self._skews))

    def left_out(self) -> tuple[LeftOut, ...]:
        """None: the clock is waited for, no source is."""
        return ()
