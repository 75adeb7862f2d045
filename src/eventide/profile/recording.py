"""A recorded stream: rows in arrival order, with what they say of time and when they came.

>>> r = Recording.of("two clocks", time=[10, 12, 11], arrival=[20, 21, 22], source=["a", "b", "a"])
>>> r.rows, r.source.tolist(), r.source_names
(3, [0, 1, 0], ('a', 'b'))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eventide.errors import InputError
from eventide.eventtime.instant import Instants


@dataclass(frozen=True, eq=False)
class Recording:
    """Columns of equal length; `arrival` never decreases; `source` numbers `source_names`, in order of first sight."""

    name: str
    time: Instants
    arrival: Instants
    source: NDArray[np.intp]
    source_names: tuple[str, ...]

    @classmethod
    def of(
        cls, name: str, time: ArrayLike, arrival: ArrayLike, source: Sequence[object] | NDArray[np.generic]
    ) -> Recording:
        """Number the sources and check the columns.

        >>> Recording.of("backwards", [1, 2], [5, 4], ["a", "a"])
        Traceback (most recent call last):
            ...
        eventide.errors.InputError: backwards: row 2 arrives before row 1 (4 < 5): sort the recording by arrival
        """
        times = np.asarray(time, dtype=np.int64)
        arrivals = np.asarray(arrival, dtype=np.int64)
        labels, first, inverse = np.unique(np.asarray(source), return_index=True, return_inverse=True)
        if not len(times) == len(arrivals) == len(inverse):
            raise InputError(f"{name}: columns differ in length: {len(times)}, {len(arrivals)}, {len(inverse)}")
        back = np.flatnonzero(arrivals[1:] < arrivals[:-1])
        if len(back):
            at = int(back[0])
            raise InputError(
                f"{name}: row {at + 2} arrives before row {at + 1} ({arrivals[at + 1]} < {arrivals[at]}): "
                "sort the recording by arrival"
            )
        by_sight = np.argsort(first)
        rank = np.empty_like(by_sight)
        rank[by_sight] = np.arange(len(by_sight))
        names = tuple(str(label) for label in labels[by_sight])
        return cls(name, times, arrivals, rank[inverse].astype(np.intp), names)

    @property
    def rows(self) -> int:
        """How many rows were recorded."""
        return len(self.time)
