"""The few moves from which every generated stream is built.

A generator first says when rows happen (`time`, microseconds from the start of the run) and from which source, then how
long each one travels. `arrived` puts the rows in the order of their arrival, as whoever records them would see them.

>>> rng = np.random.default_rng(7)
>>> time, source = emissions(rng, rows=4, seconds=2, sources=2)
>>> bool((np.diff(time) >= 0).all()), bool((source < 2).all())
(True, True)
>>> arrived("two rows", np.array([0, 5]), np.array([9, 6]), np.array([0, 1])).source_names
('1', '0')
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.instant import Instants
from eventide.profile.recording import Recording

MILLISECOND = 1_000
SECOND = 1_000_000
START = 1_700_000_000 * SECOND
"""The instant at which generated runs begin, so that times look like real ones."""


def emissions(rng: np.random.Generator, rows: int, seconds: float, sources: int) -> tuple[Instants, NDArray[np.intp]]:
    """Rows that happen independently over the run, each in one of equally busy sources: times ascending, and sources.

    >>> emissions(np.random.default_rng(0), rows=100, seconds=1, sources=1)[1].max()
    np.int64(0)
    """
    time = np.sort(rng.uniform(0, seconds * SECOND, rows)).astype(np.int64)
    return time, rng.integers(0, sources, rows).astype(np.intp)


def exponential(rng: np.random.Generator, mean: NDArray[np.float64] | float, rows: int) -> Instants:
    """Memoryless delays with the given mean (microseconds), one mean for all rows or one per row.

    >>> exponential(np.random.default_rng(0), 1e6, 1000).mean().round(-5)
    np.float64(1000000.0)
    """
    return (rng.exponential(1.0, rows) * mean).astype(np.int64)


def in_order(source: NDArray[np.intp], time: Instants, arrival: Instants) -> Instants:
    """Arrivals over order-preserving connections: no row overtakes an earlier row of its own source.

    >>> in_order(np.array([0, 0, 1]), np.array([1, 2, 3]), np.array([9, 5, 4])).tolist()
    [9, 9, 4]
    """
    order = np.lexsort((time, source))
    # A running maximum restarts at each source when every source is lifted above all the sources before it.
    lift = source[order] * (int(arrival.max()) - int(arrival.min()) + 1)
    held = np.empty_like(arrival)
    held[order] = np.maximum.accumulate(arrival[order] + lift) - lift
    return held


def arrived(name: str, time: Instants, arrival: Instants, source: NDArray[np.intp]) -> Recording:
    """The recording of these rows, by arrival; rows that arrive together keep the order of their times.

    >>> arrived("x", np.array([3, 1]), np.array([4, 4]), np.array([0, 0])).time.tolist() == [START + 1, START + 3]
    True
    """
    order = np.lexsort((time, arrival))
    return Recording.of(name, time[order] + START, arrival[order] + START, source[order])
