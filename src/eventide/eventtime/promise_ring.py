"""Pending promises in a ring: what a heartbeat will be, for a bounded number of positions ahead.

Each target has a position of its own that only moves forward. A promise waits at a position ahead; reaching or
passing it makes the promise due. Of several promises at one position only the largest matters. So memory is slots x
targets, the memory-efficient array of section 5.1 (Srivastava and Widom). `ClockRing` counts positions in units of
the clock.

>>> ring = PromiseRing(targets=2, slots=3)
>>> ring.put(np.array([0, 1, 0]), np.array([2, 1, 3]), np.array([70, 80, 90]))
>>> ring.take(np.array([2, 2])).tolist()
[70, 80]
>>> ring.take(np.array([3, 3]))[0]
np.int64(90)
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.instant import FOREVER, NEVER, Instants

MOST_CELLS = 2**24
"""Slots x targets may not be more than this: 128 MiB."""


class PromiseRing:
    """Promises to `targets` at up to `slots` positions ahead of each."""

    def __init__(self, targets: int, slots: int) -> None:
        if targets * slots > MOST_CELLS:
            raise DeclarationError(
                f"{slots} pending promises for each of {targets} sources are too many (at most {MOST_CELLS} together): "
                "raise clock_unit, declare fewer rows in a row bound, or group the sources"
            )
        self._slots = slots
        self._pending: Instants = np.full(slots * targets, NEVER, dtype=np.int64)
        self._place = np.arange(targets)
        self._position: Instants = np.zeros(targets, dtype=np.int64)

    def put(self, target: NDArray[np.intp], position: Instants, promise: Instants) -> None:
        """Let promises wait at positions ahead: at least one, at most `slots` beyond the target's own."""
        np.maximum.at(self._pending, (position % self._slots) * len(self._place) + target, promise)

    def take(self, upto: Instants) -> Instants:
        """Move every target on to `upto` and give the largest promise met on the way, `NEVER` where there was none."""
        ahead = np.minimum(upto - self._position, self._slots)
        steps = int(ahead.max(initial=0))
        if steps <= 0:
            return np.full(len(self._place), NEVER, dtype=np.int64)
        step = np.arange(1, steps + 1)[:, None]
        cells = (self._position + step) % self._slots * len(self._place) + self._place
        passed = step <= ahead
        met: Instants = np.where(passed, self._pending[cells], NEVER).max(axis=0)
        self._pending[cells[passed]] = NEVER
        self._position = np.maximum(self._position, upto)
        return met

    def snapshot(self) -> Snapshot:
        """Positions, and the cells in which a promise waits."""
        used = np.flatnonzero(self._pending != NEVER)
        return {"position": self._position.tolist(), "cell": used.tolist(), "promise": self._pending[used].tolist()}

    def restore(self, saved: Snapshot) -> None:
        """Take over what `snapshot` saved."""
        self._position = np.array(saved["position"], dtype=np.int64)
        self._pending[np.array(saved["cell"], dtype=np.intp)] = saved["promise"]


class ClockRing:
    """Promises that fall due after some clock time, rounded up to whole units: later, never earlier.

    >>> ring = ClockRing(targets=1, longest_wait=7, unit=5)
    >>> ring.put(100, np.array([0]), np.array([7]), np.array([42]))
    >>> ring.take(109)[0] == NEVER, ring.take(110).tolist()
    (np.True_, [42])
    """

    def __init__(self, targets: int, longest_wait: int, unit: int) -> None:
        self._ring = PromiseRing(targets, _ceil(longest_wait, unit) + 1)
        self._unit = unit
        self._first_clock: int | None = None
        self._due: Instants = np.full(targets, NEVER, dtype=np.int64)

    def put(self, clock: int, target: NDArray[np.intp], wait: Instants, promise: Instants) -> None:
        """From `clock` on, let promises wait; those without a wait are due at once, whatever the unit."""
        elapsed = self._move(clock)
        at_once = wait == 0
        if at_once.any():
            np.maximum.at(self._due, target[at_once], promise[at_once])
            target, wait, promise = target[~at_once], wait[~at_once], promise[~at_once]
        self._ring.put(target, -(-(elapsed + wait) // self._unit), promise)

    def take(self, clock: int) -> Instants:
        """The largest promise of each target that has fallen due by `clock`, `NEVER` where there is none."""
        self._move(clock)
        due, self._due = self._due, np.full_like(self._due, NEVER)
        return due

    def _move(self, clock: int) -> int:
        if self._first_clock is None:
            self._first_clock = clock
        # Positions count from the first clock; a quarter of int64 leaves room for every wait that can be declared.
        elapsed = min(max(clock - self._first_clock, 0), FOREVER // 4)
        met = self._ring.take(np.full(len(self._due), elapsed // self._unit, dtype=np.int64))
        np.maximum(self._due, met, out=self._due)
        return elapsed

    def snapshot(self) -> Snapshot:
        """The ring, the clock it counts from, and what is due."""
        return {"ring": self._ring.snapshot(), "first_clock": self._first_clock, "due": self._due.tolist()}

    def restore(self, saved: Snapshot) -> None:
        """Take over what `snapshot` saved."""
        self._ring.restore(saved["ring"])
        self._first_clock = saved["first_clock"]
        self._due = np.array(saved["due"], dtype=np.int64)


def _ceil(length: int, unit: int) -> int:
    return -(-length // unit)
