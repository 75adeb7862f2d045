"""Heartbeats from declared skew bounds: the generator of figure 2 (Srivastava and Widom, sections 3 and 5.1).

**Law.** A row of source i with time T in a round of clock c promises to source j, for each `TimeBound(after, lag)` of
the pair: from c + after + latency[j] on, no row of j with a time <= T - lag arrives. Row bounds follow
`row_bound_stage`. The heartbeat of j is the largest promise that has fallen due; the combined heartbeat is the least
over all sources.

**What it rests on.** The sources keep their bounds; no row is on its way longer than its latency; and
`heartbeats(clock)` is asked when every row that had arrived by `clock` has been observed. A row observed in a later
round than its arrival only makes promises later. Sources are known in advance: a source without a promise holds the
combined heartbeat at `NEVER`.

Each arrival is judged alone, as in the paper. (Rows that betray how long they travelled would allow earlier promises;
see docs/time-core/declared-bounds.md.) In silence heartbeats come to rest: `timeout_needed` says when that stalls
rows.

>>> from eventide.eventtime.skew_bounds import TimeBound
>>> from eventide.eventtime.skew_matrix import SkewMatrix
>>> in_order, trails = [TimeBound(0, 0)], [TimeBound(0, 5)]
>>> pacemaker = DeclaredSkew(SkewMatrix.of([[in_order, trails], [trails, in_order]], latency=[0, 2])).start()
>>> pacemaker.observe(Arrivals.of_row(clock=10, source=0, time=100))
>>> pacemaker.heartbeats(11).of(0), pacemaker.heartbeats(12).combined
(100, 95)
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventide.errors import DeclarationError, SnapshotError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Snapshot, check_snapshot
from eventide.eventtime.instant import NEVER, Instants
from eventide.eventtime.promise_ring import ClockRing
from eventide.eventtime.reason import LeftOut, Reason
from eventide.eventtime.row_bound_stage import RowBoundStage
from eventide.eventtime.skew_bounds import RowBound
from eventide.eventtime.skew_matrix import Skew

KIND, VERSION = "declared_skew", 1
FINEST_PARTS = 256
FINEST_CELLS = 2**22


@dataclass(frozen=True)
class DeclaredSkew:
    """Deduce heartbeats from the bounds of `skew`.

    `clock_unit` is the grain of pending promises: memory is sources x (longest after + longest latency) / clock_unit,
    and a promise may come up to one unit late, never early. Left out, it is the finest that cuts the longest wait
    into 256 parts and keeps four million places in all.

    >>> from eventide.eventtime.skew_systems import distributed_sensors
    >>> DeclaredSkew(distributed_sensors([1], latency=[5]), clock_unit=0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: clock_unit 0 must be a whole number of clock ticks, 1 or more
    """

    skew: Skew
    clock_unit: int | None = None

    def __post_init__(self) -> None:
        """Check the unit."""
        if self.clock_unit is not None and self.clock_unit < 1:
            raise DeclarationError(f"clock_unit {self.clock_unit} must be a whole number of clock ticks, 1 or more")

    @property
    def unit(self) -> int:
        """The clock unit in use.

        >>> from eventide.eventtime.skew_systems import distributed_sensors
        >>> DeclaredSkew(distributed_sensors([1], latency=[1_000_000])).unit
        3907
        """
        if self.clock_unit is not None:
            return self.clock_unit
        parts = max(1, min(FINEST_PARTS, FINEST_CELLS // len(self.skew.latency)))
        return max(1, -(-(self.skew.longest_after + max(self.skew.latency)) // parts))

    def start(self) -> DeclaredSkewPacemaker:
        """A pacemaker that has seen nothing."""
        return DeclaredSkewPacemaker(self)

    def resume(self, snapshot: Snapshot) -> DeclaredSkewPacemaker:
        """A pacemaker that continues from `snapshot`."""
        check_snapshot(snapshot, KIND, VERSION)
        pacemaker = DeclaredSkewPacemaker(self)
        pacemaker.restore(snapshot)
        return pacemaker


class DeclaredSkewPacemaker:
    """Heartbeats reached, and promises that wait for the clock or for rows."""

    def __init__(self, policy: DeclaredSkew) -> None:
        skew = self._skew = policy.skew
        unit = self._unit = policy.unit
        n = len(skew.latency)
        self._latency: Instants = np.array(skew.latency, dtype=np.int64)
        self._clock = NEVER
        self._total: Instants = np.zeros(n, dtype=np.int64)
        self._reached: Instants = np.full(n, NEVER, dtype=np.int64)
        self._pending = ClockRing(n, skew.longest_after + int(self._latency.max()), unit)
        self._stages = [RowBoundStage(rows, self._latency, unit) for rows in skew.row_counts]

    def observe(self, arrivals: Arrivals) -> None:
        """Count the rows of a round for row bounds, then take in what they promise themselves."""
        senders, latest = arrivals.sources, arrivals.latest_by_source
        if len(senders) and senders[-1] >= len(self._latency):
            raise DeclarationError(
                f"a row came from source {senders[-1]}, but bounds were declared for sources 0 to "
                f"{len(self._latency) - 1}: declare bounds for every source"
            )
        self._settle()
        self._clock = max(self._clock, arrivals.clock)
        self._total[senders] += arrivals.rows_by_source
        for stage in self._stages:
            promise = stage.count(self._total)
            target = np.flatnonzero(promise != NEVER)
            self._pending.put(self._clock, target, self._latency[target], promise[target])
        for due in self._skew.time_promises(senders, latest):
            self._pending.put(self._clock, due.target, due.wait + self._latency[due.target], due.promise)
        for stage in self._stages:
            after_rows = self._skew.row_promises(stage.rows, senders, latest)
            stage.wait_for_rows(self._clock, after_rows.target, after_rows.promise)

    def heartbeats(self, clock: int) -> Heartbeats:
        """What has fallen due by `clock`."""
        self._clock = max(self._clock, clock)
        self._settle()
        return Heartbeats(int(self._reached.min()), self._reached)

    def _settle(self) -> None:
        if self._clock == NEVER:
            return
        # A new array each time: heartbeats that were handed out never change afterwards.
        self._reached = np.maximum(self._reached, self._pending.take(self._clock))
        for stage in self._stages:
            stage.settle(self._clock, self._total)

    def why(self, source: int) -> Reason:
        """The tightest bound that speaks of it."""
        senders = range(len(self._latency))
        bounds = [(bound, sender) for sender in senders for bound in self._skew.bounds(sender, source)]
        if not bounds:
            return Reason("bound", "no bound speaks of it")
        bound, sender = min(bounds, key=lambda one: (one[0].lag, getattr(one[0], "after", 0), one[1] == source))
        values = {"lag": bound.lag, "sender": sender}
        text = "bound {lag:length}" if sender == source else "bound {lag:length} behind {sender:source}"
        if isinstance(bound, RowBound):
            text, values["rows"] = text + " after {rows:count} rows", bound.rows
        elif bound.after:
            text, values["after"] = text + " after {after:wait}", bound.after
        if self._latency[source]:
            text, values["latency"] = text + ", {latency:wait} on the way", int(self._latency[source])
        return Reason("bound", text, values)

    def left_out(self) -> tuple[LeftOut, ...]:
        """None: a source goes on by the bounds that speak of it, or not at all."""
        return ()

    def snapshot(self) -> Snapshot:
        """Everything reached and pending, and the unit in which it is kept."""
        return {
            "kind": KIND,
            "version": VERSION,
            "unit": self._unit,
            "clock": self._clock,
            "total": self._total.tolist(),
            "reached": self._reached.tolist(),
            "pending": self._pending.snapshot(),
            "stages": [{"rows": stage.rows, **stage.snapshot()} for stage in self._stages],
        }

    def restore(self, saved: Snapshot) -> None:
        """Take over what `snapshot` saved."""
        here = (self._unit, len(self._reached), [stage.rows for stage in self._stages])
        there = (saved["unit"], len(saved["reached"]), [stage["rows"] for stage in saved["stages"]])
        if here != there:
            raise SnapshotError(
                f"the snapshot has (clock unit, sources, row bounds) = {there}, this policy {here}: "
                "resume with the policy that saved it"
            )
        self._clock = saved["clock"]
        self._total = np.array(saved["total"], dtype=np.int64)
        self._reached = np.array(saved["reached"], dtype=np.int64)
        self._pending.restore(saved["pending"])
        for stage, kept in zip(self._stages, saved["stages"], strict=True):
            stage.restore(kept)
