"""Choose what a plot of a recording draws: some rows of many, the oddest sources, the course of a heartbeat.

>>> spread(10, 4).tolist()
[0, 3, 6, 9]
>>> spread(3, 100).tolist()
[0, 1, 2]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.instant import NEVER, Instants, shift_all
from eventide.profile.disorder import grouped, sorted_within
from eventide.profile.dry_run import DryRun

COLOURED_SOURCES = 8

STRETCHES = 150
"""A heartbeat moves thousands of times: its line is drawn through so many stretches."""


def spread(rows: int, most: int) -> NDArray[np.intp]:
    """At most so many rows, spread evenly: more only make the ink thicker."""
    return np.linspace(0, rows - 1, min(rows, most)).astype(np.intp)


def oddest(source: NDArray[np.intp], delay: Instants, sources: int) -> NDArray[np.intp]:
    """The sources to look at, those whose rows are farthest from the usual delay first.

    A tenth of its rows makes a source odd, not a single one; the busier goes first among equals.
    """
    order, bounds = grouped(source, sources)
    away = sorted_within(np.abs(delay - np.int64(np.median(delay)))[order], bounds)
    seen = np.flatnonzero(np.diff(bounds))
    ninetieth = away[(bounds[seen] + 0.9 * (bounds[seen + 1] - 1 - bounds[seen])).astype(np.intp)]
    return seen[np.lexsort((-np.diff(bounds)[seen], -ninetieth))][:COLOURED_SOURCES]


def has_promised(run: DryRun) -> bool:
    """Whether there is a heartbeat to draw."""
    return bool(run.heartbeat[-1] > NEVER)


def trail(run: DryRun) -> tuple[Instants, Instants, Instants, Instants]:
    """How far heartbeats trail the clock: its start, and the least, middle and most, in each stretch of questions."""
    promised = run.heartbeat > NEVER
    clock, heartbeat = run.clock[promised], run.heartbeat[promised]
    bounds = np.unique(np.linspace(0, len(clock), min(len(clock), STRETCHES) + 1).astype(np.intp))
    behind = sorted_within(shift_all(clock, -heartbeat), bounds)
    first, last = bounds[:-1], bounds[1:] - 1
    return clock[first], behind[first], behind[(first + last) // 2], behind[last]
