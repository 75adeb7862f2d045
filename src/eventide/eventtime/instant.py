"""Instants of application time and of the clock: plain int64, with room at both ends.

An instant is a whole number: microseconds for timestamps, the number itself for a sequence. `NEVER` lies before every
instant, `FOREVER` after; arithmetic stops there instead of wrapping around.

>>> shift(NEVER, -1) == NEVER and shift(FOREVER, 1) == FOREVER
True
>>> shift(40, 2)
42
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Instants: TypeAlias = NDArray[np.int64]
"""Instants, or distances between them, one per source, cell or row."""

NEVER = -(2**63)
FOREVER = 2**63 - 1


def shift(instant: int, distance: int) -> int:
    """Move an instant, stopping at `NEVER` and `FOREVER`; these two themselves do not move.

    >>> shift(NEVER, 10) == NEVER
    True
    """
    if instant in (NEVER, FOREVER):
        return instant
    return max(NEVER, min(FOREVER, instant + distance))


def shift_all(instants: Instants, distances: Instants | int) -> Instants:
    """`shift`, element by element.

    >>> shift_all(np.array([NEVER, 5, FOREVER - 1]), 3).tolist() == [NEVER, 8, FOREVER]
    True
    """
    distance = np.asarray(distances, dtype=np.int64)
    moved = instants + distance
    # Two's complement: a sum overflowed exactly when both operands have the sign that the sum has not.
    overflowed = ((instants ^ moved) & (distance ^ moved)) < 0
    if overflowed.any():
        moved = np.where(overflowed, np.where(distance > 0, FOREVER, NEVER), moved)
    fixed = (instants == NEVER) | (instants == FOREVER)
    return np.where(fixed, instants, moved) if fixed.any() else moved


EDGE = 2 * 10**18
"""Between -EDGE and EDGE, sums of three instants and distances still fit into int64."""


def within_edges(instants: Instants) -> Instants:
    """Instants beyond the edges, taken to be at them: where arithmetic has to be plain and fast.

    >>> within_edges(np.array([NEVER, 7, FOREVER])).tolist() == [-EDGE, 7, EDGE]
    True
    """
    return np.minimum(np.maximum(instants, -EDGE), EDGE)
