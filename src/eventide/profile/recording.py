"""Recorded streams, and the rounds in which a dry run goes through them.

A recorded stream: rows in arrival order, with what they say of time and when they came.

>>> r = Recording.of("two clocks", time=[10, 12, 11], arrival=[20, 21, 22], source=["a", "b", "a"])
>>> r.rows, r.source.tolist(), r.source_names
(3, [0, 1, 0], ('a', 'b'))

How a dry run goes through a recording: row at a time, or in rounds of some length.

>>> from eventide.profile.recording import Recording
>>> small = Recording.of("small", [1, 2], [1, 2], ["a", "a"])
>>> usual_round(small, unitless=False) is None, chosen("250ms")(small, False), chosen("row")(small, False)
(True, 250000, None)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eventide.errors import DeclarationError, InputError
from eventide.eventtime.instant import Instants
from eventide.profile.amounts import duration


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


MOST_STEPS = 3_000
"""Recordings of more rows go in rounds, and in no more rounds than this: a policy takes about a millisecond a round."""

_MILLISECONDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000)
_MINUTES = (1, 2, 5, 10, 20, 30, 60, 120, 180, 360, 720, 1_440)
LENGTHS = (*(1_000 * length for length in _MILLISECONDS), *(60_000_000 * length for length in _MINUTES))
"""Rounds to choose from, in microseconds: from 1 ms to a day."""

RoundChoice: TypeAlias = Callable[[Recording, bool], int | None]
"""Finds the round length for a recording (and whether its times are plain); None is row at a time."""


def usual_round(recording: Recording, unitless: bool) -> int | None:
    """Row at a time for small recordings; beyond, the shortest rounds that are not too many."""
    if recording.rows <= MOST_STEPS:
        return None
    if unitless:
        # Plain numbers know no second: their range is cut evenly.
        return max(1, int(recording.arrival[-1] - recording.arrival[0]) // MOST_STEPS)
    for length in LENGTHS:
        if np.count_nonzero(np.diff(recording.arrival // length)) < MOST_STEPS:
            return length
    return LENGTHS[-1]


def chosen(text: str | None) -> RoundChoice:
    """What the user asked for: `row`, a length such as `1s`, a whole number for plain numbers, or nothing.

    >>> chosen("5")(Recording.of("in seconds", [1], [1], ["a"]), False)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a round of 5 has no unit: write 5s, 5ms, ..., or row
    """
    if text is None:
        return usual_round
    if text.strip().lower() == "row":
        return lambda recording, unitless: None
    bare = text.strip().isdecimal()
    length = int(text) if bare else duration(text)
    if length < 1:
        raise DeclarationError(f"a round of {text} has no length: write 1s, 250ms, ..., or row")

    def fixed(recording: Recording, unitless: bool) -> int:
        if bare and not unitless:
            raise DeclarationError(f"a round of {text} has no unit: write {text}s, {text}ms, ..., or row")
        if unitless and not bare:
            raise DeclarationError(f"a round of {text} for plain numbers: write a whole number, or row")
        return length

    return fixed
