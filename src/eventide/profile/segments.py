"""One pass over all sources: running maxima and sorting within each source, without a loop over sources.

The values of each source are lifted above all values of the sources before it; then one running maximum, or one sort,
over everything never mixes two sources.

>>> bounds = np.array([0, 3, 5])
>>> running_maximum(np.array([5, 9, 7, 1, 4]), bounds).tolist()
[5, 9, 9, 1, 4]
>>> sorted_within(np.array([5, 9, 7, 4, 1]), bounds).tolist()
[5, 7, 9, 1, 4]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.instant import Instants

_ROOM = 2**62


def grouped(labels: NDArray[np.intp], count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """An order that puts rows of one label side by side, else as they were, and the bounds of the labels in it.

    >>> order, bounds = grouped(np.array([1, 0, 1]), 2)
    >>> order.tolist(), bounds.tolist()
    ([1, 0, 2], [0, 1, 3])
    """
    # NumPy sorts 16-bit numbers by counting, ten times as fast as wider ones.
    narrow = labels.astype(np.uint16) if count <= 2**16 else labels
    order = np.argsort(narrow, kind="stable")
    bounds = np.concatenate(([0], np.cumsum(np.bincount(labels, minlength=count))))
    return order, bounds.astype(np.intp)


def running_maximum(values: Instants, bounds: NDArray[np.intp]) -> Instants:
    """The running maximum of values, starting anew at every bound."""
    level, lift, ladder = _lifted(values, bounds)
    return _values(np.maximum.accumulate(level + lift) - lift, ladder)


def sorted_within(values: Instants, bounds: NDArray[np.intp]) -> Instants:
    """The values between any two bounds, sorted."""
    level, lift, ladder = _lifted(values, bounds)
    return _values(np.sort(level + lift) - lift, ladder)


def _lifted(values: Instants, bounds: NDArray[np.intp]) -> tuple[Instants, Instants, int | Instants]:
    """Levels from 0 up, what lifts each source above those before it, and the ladder from levels back to values.

    Levels are the values less the smallest, which is then the ladder. Where these would not fit so many times over,
    levels are ranks, and the ladder holds the value of each rank.
    """
    sources = len(bounds) - 1
    lowest, highest = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    height = highest - lowest + 1
    ladder: int | Instants = lowest
    if height <= _ROOM // max(sources, 1):
        level = values - lowest
    else:
        ladder = np.sort(values)
        level = np.searchsorted(ladder, values)
        height = len(values)
    return level, np.repeat(np.arange(sources) * height, np.diff(bounds)), ladder


def _values(level: Instants, ladder: int | Instants) -> Instants:
    return level + ladder if isinstance(ladder, int) else ladder[level]
