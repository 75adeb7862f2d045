"""When a row bound may be trusted, though only arrivals are seen and the network may reorder them.

A row of source i, emitted at some c, arrives in the round of clock a. `RowBound(rows, lag)` of the pair (i, j)
excepts the first `rows` rows that j emits after c. A row of j may be on its way for 0 to L, so arrivals do not show
the order of emission.

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
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.instant import NEVER, Instants
from eventide.eventtime.promise_ring import ClockRing, PromiseRing


class RowBoundStage:
    """Promises of all row bounds with the same `rows`: first until counting may begin, then until it is done."""

    def __init__(self, rows: int, latency: Instants, unit: int) -> None:
        self.rows = rows
        self._latency = latency
        self._before_counting = ClockRing(len(latency), int(latency.max()), unit)
        self._counting = PromiseRing(len(latency), rows)

    def wait_for_rows(self, clock: int, target: NDArray[np.intp], promise: Instants) -> None:
        """Take in the promises of a round."""
        self._before_counting.put(clock, target, self._latency[target], promise)

    def settle(self, clock: int, total: Instants) -> None:
        """All that arrived by `clock` is known, `total` rows per source: begin to count for promises that may."""
        begun = self._before_counting.take(clock)
        target = np.flatnonzero(begun != NEVER)
        self._counting.put(target, total[target] + self.rows, begun[target])

    def count(self, total: Instants) -> Instants:
        """Count up to `total` rows per source: the largest promise of each that has had its rows, else `NEVER`."""
        return self._counting.take(total)

    def snapshot(self) -> Snapshot:
        """Both waits."""
        return {"before_counting": self._before_counting.snapshot(), "counting": self._counting.snapshot()}

    def restore(self, saved: Snapshot) -> None:
        """Take over what `snapshot` saved."""
        self._before_counting.restore(saved["before_counting"])
        self._counting.restore(saved["counting"])
