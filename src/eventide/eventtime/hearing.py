"""Who was heard, when, and of which time: the same for every policy, so that a silence can be told from a lag.

Law: `heard` is the clock of the last round in which a source had a row or a promise, `largest` the largest time of a
row of it; both are `NEVER` for a source that has not spoken.

>>> hearing = Hearing()
>>> hearing.note(Arrivals.of_rows(clock=5, source=[0, 2], time=[40, 70]))
>>> hearing.note(Arrivals.of_row(clock=9, source=2, time=60))
>>> hearing.heard_of(2), hearing.largest_of(2), hearing.heard_of(1) == NEVER
(9, 70, True)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.instant import NEVER, Instants
from eventide.eventtime.packing import packed, unpacked
from eventide.eventtime.per_source import grown


class Hearing:
    """Two arrays over sources."""

    def __init__(self) -> None:
        self.heard: Instants = np.zeros(0, dtype=np.int64)
        self.largest: Instants = np.zeros(0, dtype=np.int64)

    def note(self, arrivals: Arrivals) -> None:
        """Hear a round."""
        if arrivals.total == 0:
            return
        source = arrivals.sources
        self.grow(int(source[-1]) + 1)
        self.heard[source] = np.maximum(self.heard[source], arrivals.clock)
        self.largest[source] = np.maximum(self.largest[source], arrivals.latest_by_source)

    def hear(self, sources: NDArray[np.intp], clock: int) -> None:
        """These sources spoke, though not of a row."""
        if len(sources):
            self.grow(int(sources.max()) + 1)
            self.heard[sources] = np.maximum(self.heard[sources], clock)

    def grow(self, sources: int) -> None:
        """Make room for more sources, which have not spoken."""
        self.heard, self.largest = grown(self.heard, sources, NEVER), grown(self.largest, sources, NEVER)

    def heard_of(self, source: int) -> int:
        """When a source was last heard."""
        return int(self.heard[source]) if source < len(self.heard) else NEVER

    def largest_of(self, source: int) -> int:
        """The largest time that a source spoke of."""
        return int(self.largest[source]) if source < len(self.largest) else NEVER

    def snapshot(self) -> Snapshot:
        """Both arrays as plain data."""
        return {"heard": packed(self.heard), "largest": packed(self.largest)}

    @classmethod
    def restored(cls, saved: Snapshot) -> Hearing:
        """What `snapshot` described.

        >>> Hearing.restored(Hearing().snapshot()).heard.tolist()
        []
        """
        hearing = cls()
        hearing.heard, hearing.largest = unpacked(saved["heard"]), unpacked(saved["largest"])
        return hearing
