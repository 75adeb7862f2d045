"""Arrays with one place per source: they grow as sources are discovered, and fit into snapshots.

>>> grown(np.array([7, 8]), 4, 0).tolist()
[7, 8, 0, 0]

*Snapshots.* Arrays in a snapshot no longer change. As plain data they are text, exact, and small where most of an array
repeats; who saves large ones may keep them in another way.

>>> packed(np.array([[1, -2], [3, 4]])).to_json()["shape"]
[2, 2]
>>> unpacked(packed(np.array([0.5, -1.0]))).tolist()
[0.5, -1.0]
"""

from __future__ import annotations

import base64
import binascii
import zlib
from dataclasses import dataclass
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


def stretch(places: NDArray[np.intp]) -> slice | NDArray[np.intp]:
    """Ascending places, each once, as a slice where they follow one another: a view then serves, nothing is gathered.

    >>> stretch(np.array([4, 5, 6])), stretch(np.array([4, 6]))
    (slice(4, 7, None), array([4, 6]))
    """
    first, last = int(places[0]), int(places[-1])
    return slice(first, last + 1) if last - first + 1 == len(places) else places


@dataclass(frozen=True, eq=False)
class Packed:
    """An array of a snapshot. Two are equal if every bit is.

    >>> packed(np.array([1.0, np.nan])) == packed(np.array([1.0, np.nan]))
    True
    """

    array: NDArray[Any]

    def to_json(self) -> dict[str, Any]:
        """Type, shape and compressed text."""
        # Level 1: a snapshot is taken every round, and speed matters more than the last byte.
        text = base64.b64encode(zlib.compress(self.array.tobytes(), 1)).decode("ascii")
        return {"dtype": self.array.dtype.str, "shape": list(self.array.shape), "data": text}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Packed):
            return NotImplemented
        mine, theirs = self.array, other.array
        return (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape) and mine.tobytes() == theirs.tobytes()

    def __hash__(self) -> int:
        return hash(self.array.tobytes())


def as_plain(value: Any) -> Any:
    """What `json.dumps` asks for in snapshots: numbers of NumPy, and arrays.

    >>> import json
    >>> json.dumps({"n": np.int64(7)}, default=as_plain)
    '{"n": 7}'
    """
    if isinstance(value, Packed):
        return value.to_json()
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"snapshots hold numbers, strings, lists, dictionaries and arrays, not {type(value).__name__}")


def packed(array: NDArray[Any]) -> Packed:
    """A copy of an array, for a snapshot."""
    copy = np.array(array, order="C")
    copy.setflags(write=False)
    return Packed(copy)


def unpacked(saved: Packed | dict[str, Any]) -> NDArray[Any]:
    """The array that was packed, also if it was made plain data since.

    >>> unpacked({"dtype": "<i8", "shape": [2], "data": "@"})
    Traceback (most recent call last):
        ...
    eventide.errors.SnapshotError: a packed array in this snapshot is damaged: take the snapshot before it
    """
    if isinstance(saved, Packed):
        return saved.array.copy()
    try:
        raw = zlib.decompress(base64.b64decode(saved["data"], validate=True))
        return np.frombuffer(raw, dtype=np.dtype(saved["dtype"])).reshape(saved["shape"]).copy()
    except (KeyError, TypeError, ValueError, binascii.Error, zlib.error) as damage:
        message = "a packed array in this snapshot is damaged: take the snapshot before it"
        raise SnapshotError(message) from damage
