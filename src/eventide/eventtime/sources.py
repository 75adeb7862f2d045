"""Which sources have been heard and when, and which sources time waits for.

*Heard.* The same record for every policy, so that a silence is not taken for a lag. `heard` is the clock of the last
round in which a source had a row or a promise, `largest` the largest time of a row of it; both are `NEVER` for a source
that has not spoken.

>>> hearing = LastSeen()
>>> hearing.note(Arrivals.of_rows(clock=5, source=[0, 2], time=[40, 70]))
>>> hearing.note(Arrivals.of_row(clock=9, source=2, time=60))
>>> hearing.heard_of(2), hearing.largest_of(2), hearing.heard_of(1) == NEVER
(9, 70, True)

*Waited for.* The sources that have been heard, and those known in advance even before they speak. All sources together
are as far as the slowest that is waited for; nowhere when nobody is.

>>> own, heard = np.array([30, NEVER, 20]), np.array([True, False, True])
>>> slowest(own, heard), slowest(own, heard, known=2) == NEVER
(20, True)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.arrays import grown
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, SavedState, Snapshot, resumed
from eventide.eventtime.instant import FOREVER, NEVER, Instants


class LastSeen(SavedState):
    """Two arrays over sources."""

    SAVED = ("heard", "largest")
    PACKED = True

    def __init__(self) -> None:
        self.heard: Instants = np.zeros(0, dtype=np.int64)
        self.largest: Instants = np.zeros(0, dtype=np.int64)

    def note(self, arrivals: Arrivals) -> None:
        """Note which sources a round has heard."""
        if arrivals.total == 0:
            return
        source = arrivals.sources
        self.grow(arrivals.places)
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

    @classmethod
    def restored(cls, saved: Snapshot) -> LastSeen:
        """What `snapshot` described.

        >>> LastSeen.restored(LastSeen().snapshot()).heard.tolist()
        []
        """
        return resumed(cls(), saved)


def slowest(by_source: Instants, heard: NDArray[np.bool_], known: int = 0) -> int:
    """The least over the sources that were heard and sources 0 to `known` - 1; `NEVER` when there are none.

    >>> slowest(np.array([5]), np.array([False])) == NEVER
    True
    """
    if known:
        heard = heard | (np.arange(len(heard)) < known)
    return int(by_source.min(where=heard, initial=FOREVER)) if heard.any() else NEVER


def least_without(heartbeats: Heartbeats, absent: NDArray[np.bool_]) -> int:
    """The combined heartbeat without the `absent` sources: the least over the others.

    What was promised for everybody holds anyhow; where nobody is left, it is all there is.

    >>> least_without(Heartbeats(10, np.array([10, 30, 20])), np.array([True, False, False]))
    20
    >>> least_without(Heartbeats(10, np.array([10])), np.array([True]))
    10
    """
    waited_for = ~absent[: len(heartbeats.by_source)]
    left = np.ones(len(heartbeats.by_source), dtype=np.bool_)
    left[: len(waited_for)] = waited_for
    return max(heartbeats.combined, slowest(heartbeats.by_source, left))


def check_known(known: int) -> None:
    """Refuse a number of known sources that is none.

    >>> check_known(-1)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: -1 known sources: give how many are waited for, 0 to discover them all
    """
    if known < 0:
        raise DeclarationError(f"{known} known sources: give how many are waited for, 0 to discover them all")
