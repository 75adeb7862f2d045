"""How long heartbeats trail when sources speak at random: a yardstick for skew and for groupings of sources.

The model: every source speaks on average every `gap`, at random, in step with the clock (`pace` units of application
time in each unit of the clock). A row of source i that has just arrived promises to source j what lies w[i, j] back,
where w is the least of after + lag / pace over the time bounds of the pair. When i last spoke `age` ago, that is age
+ w[i, j]. So heartbeats of j trail by

    latency[j] + mean of the least, over i, of (age of i + w[i, j])        with ages drawn from exponential laws.

Row bounds are left out: a group has none. A pair without a bound waits for ever; a source that nothing bounds has an
infinite delay.

>>> from eventide.eventtime.skew_systems import distributed_sensors
>>> sensors = distributed_sensors(deviation=[10, 10, 90], latency=[0, 0, 0])
>>> [round(expected_delay(sensors, gap=6, assignment=a), 1) for a in (None, (0, 0, 1), (0, 1, 1))]
[42.0, 47.1, 73.3]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.grouping import group, members_of
from eventide.eventtime.skew_bounds import TimeBound
from eventide.eventtime.skew_matrix import Skew

Delays = NDArray[np.float64]


@dataclass(frozen=True)
class Rhythm:
    """How sources speak: each every `gap` of the clock on average, `pace` of application time passing per clock unit.

    >>> Rhythm(gap=0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: gap 0 and pace 1.0 must be positive: how often do sources speak, how fast is time?
    """

    gap: float
    pace: float = 1.0

    def __post_init__(self) -> None:
        if not (self.gap > 0 and self.pace > 0):
            raise DeclarationError(
                f"gap {self.gap} and pace {self.pace} must be positive: how often do sources speak, how fast is time?"
            )


def pair_waits(skew: Skew, pace: float) -> Delays:
    """w[i, j]: how far back lies what a fresh row of i promises to j, `inf` where it never does."""
    n = range(len(skew.latency))
    bounds = ((b.after + b.lag / pace for b in skew.bounds(i, j) if isinstance(b, TimeBound)) for i in n for j in n)
    return np.array([min(waits, default=np.inf) for waits in bounds]).reshape(len(n), len(n))


def expected_delay(skew: Skew, gap: float, pace: float = 1.0, assignment: Sequence[int] | None = None) -> float:
    """The mean delay of heartbeats over all sources, watched each alone or in the groups of `assignment`."""
    rhythm = Rhythm(gap, pace)
    if assignment is None:
        return mean_delay(pair_waits(skew, pace), np.array(skew.latency), np.ones(len(skew.latency)), rhythm)
    grouped = group(skew, assignment)
    sizes = np.array([len(sources) for sources in members_of(assignment)], dtype=np.float64)
    return mean_delay(pair_waits(grouped, pace), np.array(grouped.latency), sizes, rhythm)


def mean_delay(waits: Delays, latency: NDArray[np.int64], sizes: Delays, rhythm: Rhythm) -> float:
    """The mean over sources, from the waits between groups, their latencies and sizes.

    >>> float(mean_delay(np.array([[7.0]]), np.array([2]), np.array([4.0]), Rhythm(gap=8)))
    11.0
    """
    return float((sizes * (latency + _mean_of_least(waits, sizes / rhythm.gap))).sum() / sizes.sum())


def _mean_of_least(waits: Delays, rate: Delays) -> Delays:
    # The least of (wait + exponential age) exceeds x with probability exp(-sum of rate * (x - wait) over waits < x).
    # Between two neighbouring waits that is one exponential, integrated piece by piece.
    order = np.argsort(waits, axis=0)
    in_order = np.take_along_axis(waits, order, axis=0)
    first = in_order[0]
    reachable = np.isfinite(in_order)
    start = np.where(reachable, in_order, 0) - np.where(np.isfinite(first), first, 0)
    speed = np.where(reachable, rate[order], 0)
    total = np.cumsum(speed, axis=0)
    moment = np.cumsum(speed * start, axis=0)
    # Exponents are negative, except for rounding and for pieces that do not exist.
    survival_at_start = np.exp(np.minimum(moment - total * start, 0))
    survival_at_end = np.zeros_like(start)
    survival_at_end[:-1] = np.where(reachable[1:], np.exp(np.minimum(moment[:-1] - total[:-1] * start[1:], 0)), 0)
    pieces = np.where(reachable, (survival_at_start - survival_at_end) / np.where(total > 0, total, 1), 0)
    mean: Delays = first + pieces.sum(axis=0)
    return mean
