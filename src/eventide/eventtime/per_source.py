"""Arrays with one place per source that grow as sources are discovered.

>>> grown(np.array([7, 8]), 4, 0).tolist()
[7, 8, 0, 0]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def grown(array: NDArray[Any], size: int, fill: float) -> NDArray[Any]:
    """`array` with at least `size` places along its first axis, new ones holding `fill`.

    >>> grown(np.zeros((1, 2)), 2, -1).tolist()
    [[0.0, 0.0], [-1.0, -1.0]]
    """
    missing = size - len(array)
    if missing <= 0:
        return array
    return np.concatenate((array, np.full((missing, *array.shape[1:]), fill, dtype=array.dtype)))
