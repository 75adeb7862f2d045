"""Arrays with one place per source: they grow as sources are discovered, and fit into snapshots.

>>> grown(np.array([7, 8]), 4, 0).tolist()
[7, 8, 0, 0]

Arrays in a snapshot: plain text, exact, and small where most of an array repeats.

>>> packed(np.array([[1, -2], [3, 4]]))["shape"]
[2, 2]
>>> unpacked(packed(np.array([0.5, -1.0]))).tolist()
[0.5, -1.0]
"""

from __future__ import annotations

import base64
import binascii
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eventide.errors import SnapshotError


def grown(array: NDArray[Any], size: int, fill: float) -> NDArray[Any]:
    """`array` with at least `size` places along its first axis, new ones holding `fill`.

    >>> grown(np.zeros((1, 2)), 2, -1).tolist()
    [[0.0, 0.0], [-1.0, -1.0]]
    """
    missing = size - len(array)
    if missing <= 0:
        return array
    return np.concatenate((array, np.full((missing, *array.shape[1:]), fill, dtype=array.dtype)))


def packed(array: NDArray[Any]) -> dict[str, Any]:
    """An array as type, shape and compressed text."""
    # Level 1: a snapshot is taken every round, and speed matters more than the last byte.
    text = base64.b64encode(zlib.compress(np.ascontiguousarray(array).tobytes(), 1)).decode("ascii")
    return {"dtype": array.dtype.str, "shape": list(array.shape), "data": text}


def unpacked(saved: dict[str, Any]) -> NDArray[Any]:
    """The array that `packed` wrote.

    >>> unpacked({"dtype": "<i8", "shape": [2], "data": "@"})
    Traceback (most recent call last):
        ...
    eventide.errors.SnapshotError: a packed array in this snapshot is damaged: take the snapshot before it
    """
    try:
        raw = zlib.decompress(base64.b64decode(saved["data"], validate=True))
        return np.frombuffer(raw, dtype=np.dtype(saved["dtype"])).reshape(saved["shape"]).copy()
    except (KeyError, TypeError, ValueError, binascii.Error, zlib.error) as damage:
        message = "a packed array in this snapshot is damaged: take the snapshot before it"
        raise SnapshotError(message) from damage
