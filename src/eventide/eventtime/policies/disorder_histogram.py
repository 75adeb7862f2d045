"""A histogram of disorder per source: how adaptive watermarks are done in practice.

Law: for each source, count how far its rows come behind the largest time it had reached before (0 for a row in order),
in buckets that double in width. Once a source has shown `warm_up` rows, its heartbeat is its largest time - 1 - the
upper edge of the bucket that holds the quantile. The combined heartbeat is the least over the sources seen.

With the defaults this is the outline that is public of Confluent Cloud's default watermark: per partition, a fixed 95 %
of a histogram, after 250 rows. Its clamps, which are amounts of seconds and days, are left to `Cap`.

Limits: the quantile is fixed, so 5 % of disordered rows may be lost whatever the user can tolerate; and disorder
*between* sources does not enter the histogram at all, only the least over the sources protects from it.

>>> generator = DisorderHistogram(quantile=0.95, warm_up=3).start()
>>> for time in (10, 40, 35, 50):
...     generator.observe(Arrivals.of_row(clock=0, source=0, time=time))    # behind by 0, 0, 5, 0
>>> generator.heartbeats(0).combined    # 5 lies in the bucket from 4 to 7
42
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.arrays import grown
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Ratchet, SavedGenerator, SavedPolicy
from eventide.eventtime.instant import NEVER, Instants, shift_all
from eventide.eventtime.reason import LeftOut, Reason, not_expected
from eventide.eventtime.sources import slowest

UPPER_EDGES: Instants = np.array([2**bits - 1 for bits in range(64)], dtype=np.int64)


@dataclass(frozen=True)
class DisorderHistogram(SavedPolicy["DisorderHistogramGenerator"]):
    """Trail each source's largest time by the `quantile` of its own disorder, after `warm_up` rows."""

    quantile: float = 0.95
    warm_up: int = 250

    def __post_init__(self) -> None:
        if not 0 < self.quantile < 1:
            raise DeclarationError(
                f"quantile {self.quantile} is not between 0 and 1: write 0.95 to wait for 95 % of the rows"
            )
        if self.warm_up < 1:
            raise DeclarationError(f"a warm-up of {self.warm_up} rows shows no disorder: give 1 or more")

    def start(self) -> DisorderHistogramGenerator:
        """A heartbeat generator that has seen nothing."""
        return DisorderHistogramGenerator(self)


class DisorderHistogramGenerator(SavedGenerator):
    """Remembers the largest time and the histogram of every source."""

    KIND = "disorder_histogram"
    SAVED = ("_largest", "_counts", "_ratchet")

    def __init__(self, policy: DisorderHistogram) -> None:
        self._policy = policy
        self._largest: Instants = np.zeros(0, dtype=np.int64)
        self._counts: NDArray[np.int64] = np.zeros((0, len(UPPER_EDGES)), dtype=np.int64)
        self._ratchet = Ratchet()

    def observe(self, arrivals: Arrivals) -> None:
        """Count how far the rows of a round are behind what their sources had reached before it."""
        if arrivals.total == 0:
            return
        self._largest = grown(self._largest, arrivals.places, NEVER)
        self._counts = grown(self._counts, arrivals.places, 0)
        # A source that has reached nothing (NEVER) has nothing to be behind of: NEVER does not move and is below 0.
        behind = shift_all(self._largest[arrivals.source], -arrivals.earliest)
        bucket = np.searchsorted(UPPER_EDGES, np.maximum(behind, 0))
        np.add.at(self._counts, (arrivals.source, bucket), arrivals.rows)
        spoke = arrivals.sources
        self._largest[spoke] = np.maximum(self._largest[spoke], arrivals.latest_by_source)

    def heartbeats(self, clock: int) -> Heartbeats:
        """The largest time of each source less its disorder, and the least of them; the clock plays no part."""
        up_to = np.cumsum(self._counts, axis=1)
        rows = up_to[:, -1]
        bucket = (up_to < np.ceil(self._policy.quantile * rows)[:, None]).sum(axis=1)
        own = shift_all(shift_all(self._largest, -UPPER_EDGES[np.minimum(bucket, len(UPPER_EDGES) - 1)]), -1)
        own = np.where(rows >= self._policy.warm_up, own, NEVER)
        seen = rows > 0
        return self._ratchet.lift(slowest(own, seen), own)

    def why(self, source: int) -> Reason:
        """Its own disorder, or that too little of it is known."""
        rows = int(self._counts[source].sum()) if source < len(self._counts) else 0
        if rows < self._policy.warm_up:
            text = "{rows:count} of the {needed:count} rows have come that are needed to judge its disorder"
            return Reason("disorder", text, {"rows": rows, "needed": self._policy.warm_up})
        return Reason(
            "disorder",
            "behind its largest time by what {share:share} of its rows needed",
            {"share": self._policy.quantile},
        )

    def left_out(self) -> tuple[LeftOut, ...]:
        """Only who has not spoken and is not expected."""
        return not_expected(self._largest > NEVER)
