"""Heartbeats from declared skew bounds (Srivastava and Widom, sections 3 and 5.1, figure 2).

**Law.** A row of source i with time T in a round of clock c promises to source j, for each `TimeBound(after, lag)` of
the pair: from c + after + latency[j] on, no row of j with a time <= T - lag arrives. Row bounds follow `pending`.
The heartbeat of j is the largest promise that has fallen due; the combined heartbeat is the least over all sources.

**What it rests on.** The sources keep their bounds; no row is on its way longer than its latency; and
`heartbeats(clock)` is asked when every row that had arrived by `clock` has been observed. A row observed in a later
round than its arrival only makes promises later. Sources are known in advance: a source without a promise holds the
combined heartbeat at `NEVER`.

Each arrival is judged alone, as in the paper. (Rows that betray how long they travelled would allow earlier promises;
see docs/time-core/declared-bounds.md.) In silence heartbeats come to rest: `timeout_needed` says when that stalls
rows.

>>> from eventide.eventtime.policies.skew.bounds import TimeBound
>>> from eventide.eventtime.policies.skew.matrix import InOrder, SkewMatrix
>>> in_order, trails = [TimeBound(0, 0)], [TimeBound(0, 5)]
>>> generator = DeclaredSkew(SkewMatrix.of([[in_order, trails], [trails, in_order]], latency=[0, 2])).start()
>>> generator.observe(Arrivals.of_row(clock=10, source=0, time=100))
>>> generator.heartbeats(11).of(0), generator.heartbeats(12).combined
(100, 95)

*In order on the way.* The rows of a source in `in_order` arrive in the order in which it emitted them. Then whatever
arrives after a row was emitted after it. So what a row promises of its own source with `after` 0 is due at once; its
own row bounds count from the next round on; and once the rows of any row bound have been counted, the promise is due
at once. Other bounds gain nothing: that a row of j arrives late does not say that it was emitted late.

>>> bounds = SkewMatrix.of([[[TimeBound(0, 1)]]], latency=[9])
>>> for skew in (bounds, InOrder(bounds, (0,))):
...     generator = DeclaredSkew(skew).start()
...     generator.observe(Arrivals.of_row(clock=10, source=0, time=100))
...     print(generator.heartbeats(10).combined == 99, generator.heartbeats(19).combined)
False 99
True 99
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventide.errors import DeclarationError, SnapshotError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, SavedGenerator, SavedPolicy, Snapshot, layers
from eventide.eventtime.instant import NEVER, Instants, shift_all
from eventide.eventtime.policies.skew.bounds import RowBound, TimeBound
from eventide.eventtime.policies.skew.confidence import is_broken, loss_at_most
from eventide.eventtime.policies.skew.matrix import Skew
from eventide.eventtime.policies.skew.pending import ClockRing, RowBoundStage
from eventide.eventtime.reason import LeftOut, Reason

FINEST_PARTS = 256
FINEST_CELLS = 2**22


@dataclass(frozen=True)
class DeclaredSkew(SavedPolicy["DeclaredSkewGenerator"]):
    """Deduce heartbeats from the bounds of `skew`.

    `sources` are the names of its sources in the order of their numbers. A stream needs them: nothing else says which
    of its sources is number 0.

    `clock_unit` is the grain of pending promises: memory is sources x (longest after + longest latency) / clock_unit,
    and a promise may come up to one unit late, never early. Left out, it is the finest that cuts the longest wait
    into 256 parts and keeps four million places in all.

    >>> from eventide.eventtime.policies.skew.per_source import distributed_sensors
    >>> DeclaredSkew(distributed_sensors([1], latency=[5]), clock_unit=0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: clock_unit 0 must be a whole number of clock ticks, 1 or more
    """

    skew: Skew
    clock_unit: int | None = None
    sources: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check the unit and the names."""
        if self.sources and not len(set(self.sources)) == len(self.sources) == len(self.skew.latency):
            raise DeclarationError(
                f"bounds are between {len(self.skew.latency)} sources, and {len(set(self.sources))} are named: name "
                "each once, in the order of their numbers"
            )
        if self.clock_unit is not None and self.clock_unit < 1:
            raise DeclarationError(f"clock_unit {self.clock_unit} must be a whole number of clock ticks, 1 or more")

    @property
    def unit(self) -> int:
        """The unit of the clock that is in use.

        >>> from eventide.eventtime.policies.skew.per_source import distributed_sensors
        >>> DeclaredSkew(distributed_sensors([1], latency=[1_000_000])).unit
        3907
        """
        if self.clock_unit is not None:
            return self.clock_unit
        parts = max(1, min(FINEST_PARTS, FINEST_CELLS // len(self.skew.latency)))
        return max(1, -(-(self.skew.longest_after + max(self.skew.latency)) // parts))

    def start(self) -> DeclaredSkewGenerator:
        """A heartbeat generator that has seen nothing."""
        return DeclaredSkewGenerator(self)


def declared_loss(whole: object) -> float | None:
    """The largest share of the rows of any source that may be late by declared bounds; None where there are none.

    >>> from eventide.eventtime.policies.fixed_delay import FixedDelay
    >>> from eventide.eventtime.policies.skew.per_source import distributed_sensors
    >>> declared_loss(DeclaredSkew(distributed_sensors([1], latency=[5]))), declared_loss(FixedDelay(1))
    (0.0, None)
    """
    return next((max(loss_at_most(layer.skew)) for layer in layers(whole) if isinstance(layer, DeclaredSkew)), None)


def names_of_bounds(whole: object) -> tuple[str, ...] | None:
    """The names of the sources between which bounds are declared, empty where they have none; None without bounds.

    >>> from eventide.eventtime.policies.fixed_delay import FixedDelay
    >>> from eventide.eventtime.policies.skew.per_source import distributed_sensors
    >>> bounds = DeclaredSkew(distributed_sensors([1], latency=[5]), sources=("a",))
    >>> names_of_bounds(bounds), names_of_bounds(FixedDelay(1))
    (('a',), None)
    """
    return next((layer.sources for layer in layers(whole) if isinstance(layer, DeclaredSkew)), None)


@dataclass(frozen=True)
class _OwnBounds:
    """What a source that arrives in order promises of itself: by how much it trails, at once and after so many rows."""

    source: int
    lag: int | None
    after_rows: dict[int, int]

    @classmethod
    def of(cls, skew: Skew, source: int) -> _OwnBounds:
        bounds = skew.bounds(source, source)
        lags = [bound.lag for bound in bounds if isinstance(bound, TimeBound) and bound.after == 0]
        after_rows: dict[int, int] = {}
        for bound in bounds:
            if isinstance(bound, RowBound):
                after_rows[bound.rows] = min(bound.lag, after_rows.get(bound.rows, bound.lag))
        return cls(source, min(lags, default=None), after_rows)


class DeclaredSkewGenerator(SavedGenerator):
    """Heartbeats reached, and promises that wait for the clock or for rows."""

    KIND = "declared_skew"
    SAVED = ("_unit", "_clock", "_total", "_late", "_reached", "_pending", "_stages")

    def __init__(self, policy: DeclaredSkew) -> None:
        skew = self._skew = policy.skew
        unit = self._unit = policy.unit
        n = len(skew.latency)
        self._latency: Instants = np.array(skew.latency, dtype=np.int64)
        self._clock = NEVER
        self._total: Instants = np.zeros(n, dtype=np.int64)
        self._late: Instants = np.zeros(n, dtype=np.int64)
        self._may_be_late = loss_at_most(skew)
        self._reached: Instants = np.full(n, NEVER, dtype=np.int64)
        self._pending = ClockRing(n, skew.longest_after + int(self._latency.max()), unit)
        self._stages = [RowBoundStage(rows, self._latency, unit) for rows in skew.row_counts]
        self._own = [_OwnBounds.of(skew, source) for source in skew.in_order]
        self._overtaken = self._latency.copy()
        """How long rows may still come that were emitted before one that has come."""
        self._overtaken[list(skew.in_order)] = 0

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
        self._count_late(arrivals)
        for stage in self._stages:
            promise = stage.count(self._total)
            target = np.flatnonzero(promise != NEVER)
            self._pending.put(self._clock, target, self._overtaken[target], promise[target])
        for due in self._skew.time_promises(senders, latest):
            self._pending.put(self._clock, due.target, due.wait + self._latency[due.target], due.promise)
        for stage in self._stages:
            after_rows = self._skew.row_promises(stage.rows, senders, latest)
            stage.wait_for_rows(self._clock, after_rows.target, after_rows.promise)
        spoke = dict(zip(senders.tolist(), latest.tolist(), strict=True)) if self._own else {}
        for own in self._own:
            if own.source in spoke:
                self._promise_in_order(own, spoke[own.source])

    def _promise_in_order(self, own: _OwnBounds, latest: int) -> None:
        """What a row promises of those of its own source that arrive after it."""
        target = np.array([own.source])
        if own.lag is not None:
            promise = shift_all(np.array([latest]), -own.lag)
            self._pending.put(self._clock, target, np.zeros(1, dtype=np.int64), promise)
        for stage in self._stages:
            if stage.rows in own.after_rows:
                promise = shift_all(np.array([latest]), -own.after_rows[stage.rows])
                stage.count_from_next(self._clock, target, promise)

    def _count_late(self, arrivals: Arrivals) -> None:
        """Count the rows that are surely at or below the heartbeat: of a cell that reaches beyond it, the earliest."""
        reached = self._reached[arrivals.source]
        late = np.where(arrivals.latest <= reached, arrivals.rows, arrivals.earliest <= reached)
        if late.any():
            np.add.at(self._late, arrivals.source, late)

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
        values: dict[str, float | str] = {"lag": bound.lag, "sender": sender}
        text = "bound {lag:length}" if sender == source else "bound {lag:length} behind {sender:source}"
        if isinstance(bound, RowBound):
            text, values["rows"] = text + " after {rows:count} rows", bound.rows
        elif bound.after:
            text, values["after"] = text + " after {after:wait}", bound.after
        if self._latency[source] and source in self._skew.in_order:
            text += ", its rows arrive in order"
        if self._latency[source]:
            text, values["latency"] = text + ", {latency:wait} on the way", int(self._latency[source])
        if self._may_be_late[source]:
            text, values["exceeded"] = text + ", for all but {exceeded:share} of its rows", self._may_be_late[source]
        late, rows = int(self._late[source]), int(self._total[source])
        if is_broken(late, rows, self._may_be_late[source]):
            text += "; its bounds do not hold: {late:count} of {heard:count} rows came at or below its heartbeat"
            values |= {"late": late, "heard": rows}
        return Reason("bound", text, values)

    def left_out(self) -> tuple[LeftOut, ...]:
        """None: a source goes on by the bounds that speak of it, or not at all."""
        return ()

    def snapshot(self) -> Snapshot:
        """Everything needed to go on to the same heartbeats; late rows only where there were some."""
        saved = super().snapshot()
        return saved if self._late.any() else {name: saved[name] for name in saved if name != "late"}

    def restore(self, saved: Snapshot) -> None:
        """Go on from what `snapshot` described."""
        super().restore({"late": [0] * len(self._late), **saved})

    def check(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot of other bounds, too."""
        super().check(snapshot)
        here = (self._unit, len(self._reached), [stage.rows for stage in self._stages])
        there = (snapshot["unit"], len(snapshot["reached"]), [stage["rows"] for stage in snapshot["stages"]])
        if here != there:
            raise SnapshotError(
                f"the snapshot has (clock unit, sources, row bounds) = {there}, this policy {here}: "
                "resume with the policy that saved it"
            )
