"""A source that misses its heartbeats: it is silent for longer than its past allows.

Laws. A source is silent if nothing has come from it for more than `FACTOR` times its longest silence so far; never
before it was heard `ENOUGH` times. The longest silence is forgotten by half with every `MEMORY` times that a source is
heard. Between two such halvings a source therefore falls silent at most log(longest / shortest gap) / log(FACTOR)
times: each time its longest silence grows by that factor. Silence is measured up to the last row of the whole stream,
so a stream from which nothing comes is one silence and not thousands (Gigascope, section 6.3: a heartbeat that is not
seen tells of a failure, where sources are known to speak).

>>> silences = SourceSilence()
>>> for clock in range(0, 100, 10):
...     silences.note(Arrivals.of_rows(clock, [0, 1], [clock, clock]))
>>> silences.silent().tolist()
[]
>>> for clock in range(100, 150, 10):
...     silences.note(Arrivals.of_row(clock, 0, clock))
>>> silences.silent().tolist(), silences.length_of(1), silences.allowed_of(1)
([1], 50, 40)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrays import grown
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import NEVER, Instants

FACTOR = 4
ENOUGH = 8
MEMORY = 256


class SourceSilence:
    """Arrays over sources: when each was heard last, its longest silence, how often it was heard."""

    def __init__(self) -> None:
        self._heard: Instants = np.zeros(0, dtype=np.int64)
        self._longest: NDArray[np.float64] = np.zeros(0)
        self._times: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._clock = NEVER

    def note(self, arrivals: Arrivals) -> None:
        """Take a round into account."""
        if not arrivals.total:
            return
        sources, places = arrivals.sources, arrivals.places
        self._clock = max(self._clock, arrivals.clock)
        self._heard = grown(self._heard, places, NEVER)
        self._longest, self._times = grown(self._longest, places, 0.0), grown(self._times, places, 0)
        known = sources[self._times[sources] > 0]
        self._longest[known] = np.maximum(
            self._longest[known] * 0.5 ** (1.0 / MEMORY), (self._clock - self._heard[known]).astype(np.float64)
        )
        self._heard[sources] = self._clock
        self._times[sources] += 1

    def silent(self, permitted: int | None = None) -> NDArray[np.intp]:
        """The sources that are silent now: for longer than is `permitted`, or else than their past allows."""
        if permitted is not None:
            return np.flatnonzero((self._times > 0) & ((self._clock - self._heard) > permitted))
        beyond = (self._clock - self._heard) > FACTOR * self._longest
        return np.flatnonzero(beyond & (self._times >= ENOUGH) & (self._longest > 0))

    def length_of(self, source: int) -> int:
        """How long a source has been silent."""
        return self._clock - int(self._heard[source])

    def allowed_of(self, source: int) -> int:
        """How long its past allows it to be."""
        return int(FACTOR * self._longest[source])
