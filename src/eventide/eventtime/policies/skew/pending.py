"""Promises that are not due yet: they wait for the clock, or for rows (Srivastava and Widom, sections 3.1 and 5.1).

*Row bounds.* When may a row bound be trusted, though only arrivals are seen and the network may reorder them? A row of
source i, emitted at some c, arrives in the round of clock a. `RowBound(rows, lag)` of the pair (i, j) excepts the first
`rows` rows that j emits after c. A row of j may be on its way for 0 to L, so arrivals do not show the order of
emission.

**The rule.** Count the rows of j in rounds that begin at or after a + L (a round reaches from the last clock at which
all arrivals were known to its own). When the count reaches `rows`, in the round of clock b, the promise is due at b +
L.

**Why it holds.** A counted row arrived after a + L, so j emitted it after a, hence after c; and at b at the latest. A
row that arrives after b + L was emitted after b, so after all the counted ones. It is none of the excepted rows.

**Why nothing earlier does.** A row that arrived by a + L may have been emitted at a, before a sender's row that took
no time; a row that arrives at b + L may have been emitted at b, before the last counted one.

>>> stage = RowBoundStage(rows=2, latency=np.array([3]), unit=1)
>>> stage.wait_for_rows(10, np.array([0]), np.array([99]))
>>> stage.settle(13, total=np.array([0]))
>>> [stage.count(np.array([total])).tolist()[0] == 99 for total in (1, 2)]
[False, True]

*Pending promises.* They wait in a ring, for a bounded number of positions ahead. Each target has a position of its own
that only moves forward. A promise waits at a position ahead; reaching or passing it makes the promise due. Of several
promises at one position only the largest matters. So memory is slots x targets, the memory-efficient array of section
5.1 (Srivastava and Widom). `ClockRing` counts positions in units of the clock.

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
from eventide.eventtime.heartbeat import SavedState, Snapshot
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
        """Move every target on to `upto` and give the largest promise that fell due, `NEVER` where there was none."""
        ahead = np.minimum(upto - self._position, self._slots)
        steps = int(ahead.max(initial=0))
        if steps <= 0:
            return np.full(len(self._place), NEVER, dtype=np.int64)
        step = np.arange(1, steps + 1)[:, None]
        cells = (self._position + step) % self._slots * len(self._place) + self._place
        passed = step <= ahead
        fallen_due: Instants = np.where(passed, self._pending[cells], NEVER).max(axis=0)
        self._pending[cells[passed]] = NEVER
        self._position = np.maximum(self._position, upto)
        return fallen_due

    def snapshot(self) -> Snapshot:
        """Positions, and the cells in which a promise waits."""
        used = np.flatnonzero(self._pending != NEVER)
        return {"position": self._position.tolist(), "cell": used.tolist(), "promise": self._pending[used].tolist()}

    def restore(self, saved: Snapshot) -> None:
        """Take over what `snapshot` saved."""
        self._position = np.array(saved["position"], dtype=np.int64)
        self._pending[np.array(saved["cell"], dtype=np.intp)] = saved["promise"]


class ClockRing(SavedState):
    """Promises that fall due after some clock time, rounded up to whole units: later, never earlier.

    >>> ring = ClockRing(targets=1, longest_wait=7, unit=5)
    >>> ring.put(100, np.array([0]), np.array([7]), np.array([42]))
    >>> ring.take(109)[0] == NEVER, ring.take(110).tolist()
    (np.True_, [42])
    """

    SAVED = ("_ring", "_first_clock", "_due")

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
        fallen_due = self._ring.take(np.full(len(self._due), elapsed // self._unit, dtype=np.int64))
        np.maximum(self._due, fallen_due, out=self._due)
        return elapsed


def _ceil(length: int, unit: int) -> int:
    return -(-length // unit)


class RowBoundStage(SavedState):
    """Promises of all row bounds with the same `rows`: first until counting may begin, then until it is done."""

    SAVED = ("rows", "_before_counting", "_counting")

    def __init__(self, rows: int, latency: Instants, unit: int) -> None:
        self.rows = rows
        self._latency = latency
        self._before_counting = ClockRing(len(latency), int(latency.max()), unit)
        self._counting = PromiseRing(len(latency), rows)

    def wait_for_rows(self, clock: int, target: NDArray[np.intp], promise: Instants) -> None:
        """Take in the promises of a round."""
        self._before_counting.put(clock, target, self._latency[target], promise)

    def count_from_next(self, clock: int, target: NDArray[np.intp], promise: Instants) -> None:
        """Take in promises for which the rows of the next round count already."""
        self._before_counting.put(clock, target, np.zeros(len(target), dtype=np.int64), promise)

    def settle(self, clock: int, total: Instants) -> None:
        """All that arrived by `clock` is known, `total` rows per source: begin to count for promises that may."""
        begun = self._before_counting.take(clock)
        target = np.flatnonzero(begun != NEVER)
        self._counting.put(target, total[target] + self.rows, begun[target])

    def count(self, total: Instants) -> Instants:
        """Count up to `total` rows per source: the largest promise of each that has had its rows, else `NEVER`."""
        return self._counting.take(total)
