"""Heartbeats from declared skew bounds (Srivastava and Widom, sections 3 and 5.1, figure 2).

**Law.** A row of source i with time T in a round of clock c promises to source j, for each `TimeBound(after, lag)` of
the pair: from c + after + latency[j] on, no row of j with a time <= T - lag arrives. Row bounds follow the rule below.
The heartbeat of j is the largest promise that has fallen due; the combined heartbeat is the least over all sources.

**What it rests on.** The sources keep their bounds; no row is on its way longer than its latency; and
`heartbeats(clock)` is asked when every row that had arrived by `clock` has been observed. A row observed in a later
round than its arrival only makes promises later. Sources are known in advance: a source without a promise holds the
combined heartbeat at `NEVER`.

Each arrival is judged alone, as in the paper. (Rows that betray how long they travelled would allow earlier promises;
see docs/time-core/declared-bounds.md.) In silence heartbeats come to rest: `timeout_needed` says when that stalls
rows.

>>> from eventide.eventtime.policies.skew.bounds import TimeBound
>>> from eventide.eventtime.policies.skew.matrix import SkewMatrix
>>> in_order, trails = [TimeBound(0, 0)], [TimeBound(0, 5)]
>>> generator = DeclaredSkew(SkewMatrix.of([[in_order, trails], [trails, in_order]], latency=[0, 2])).start()
>>> generator.observe(Arrivals.of_row(clock=10, source=0, time=100))
>>> generator.heartbeats(11).of(0), generator.heartbeats(12).combined
(100, 95)

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

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError, SnapshotError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, SavedGenerator, SavedPolicy, SavedState, Snapshot, layers
from eventide.eventtime.instant import FOREVER, NEVER, Instants
from eventide.eventtime.policies.skew.bounds import RowBound
from eventide.eventtime.policies.skew.confidence import is_broken, loss_at_most
from eventide.eventtime.policies.skew.matrix import Skew
from eventide.eventtime.reason import LeftOut, Reason

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

    def settle(self, clock: int, total: Instants) -> None:
        """All that arrived by `clock` is known, `total` rows per source: begin to count for promises that may."""
        begun = self._before_counting.take(clock)
        target = np.flatnonzero(begun != NEVER)
        self._counting.put(target, total[target] + self.rows, begun[target])

    def count(self, total: Instants) -> Instants:
        """Count up to `total` rows per source: the largest promise of each that has had its rows, else `NEVER`."""
        return self._counting.take(total)


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
            self._pending.put(self._clock, target, self._latency[target], promise[target])
        for due in self._skew.time_promises(senders, latest):
            self._pending.put(self._clock, due.target, due.wait + self._latency[due.target], due.promise)
        for stage in self._stages:
            after_rows = self._skew.row_promises(stage.rows, senders, latest)
            stage.wait_for_rows(self._clock, after_rows.target, after_rows.promise)

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
