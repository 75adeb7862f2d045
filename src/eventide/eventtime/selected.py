"""A part of a round: some of its cells, as a round of their own.

>>> a = Arrivals.of_rows(clock=9, source=[0, 1, 2], time=[4, 5, 6])
>>> selected(a, np.array([True, False, True])).latest.tolist()
[4, 6]
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrivals import Arrivals


def selected(arrivals: Arrivals, cells: NDArray[Any], source: NDArray[np.intp] | None = None) -> Arrivals:
    """The chosen `cells` of a round, by mask or by index, with other `source` numbers if given for all cells.

    >>> a = Arrivals.of_rows(clock=9, source=[0, 7], time=[4, 6])
    >>> selected(a, np.array([1]), source=np.array([0, 1])).source.tolist()
    [1]
    """
    return replace(
        arrivals,
        source=(arrivals.source if source is None else source)[cells],
        rows=arrivals.rows[cells],
        earliest=arrivals.earliest[cells],
        latest=arrivals.latest[cells],
        delay_sum=arrivals.delay_sum[cells],
        delay_square_sum=arrivals.delay_square_sum[cells],
    )
