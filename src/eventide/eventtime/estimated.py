"""Heartbeats from skew that is estimated while the stream runs (Srivastava and Widom, section 6).

Nothing is declared. What counts is the skew at arrival (the matrix B'), in which clocks and network are one. For a
target j, a reference and each t in 0, 1, ..., `units_ahead`, the estimate lag[t] says: a row of j comes with a time
greater than what the reference had reached t units of the clock ago, less lag[t]. So

    heartbeat of j = the largest, over references and t, of (reference t units ago) - lag[t]

and a row of j that arrives shows that lag[t] should have been at least (reference t units ago) - its time + 1. How
estimates follow is told in `skew_estimates`. They change after a promise was made, so what stands at the moment is
promised, never less than before.

**References.** With `pairwise=True` every source is a reference for every other: the full B', n x n x t cells, for a
few dozen sources. Otherwise a target has two: its own largest time, and the largest of all sources (all senders as
one group, section 5.2): 2 x n x t cells, for any number. While anyone speaks, even silent sources advance, trailing
by what they last showed.

**Limits.** Nothing is guaranteed: a row is late whenever it trails by more than was seen lately. A discovered source
has no estimate before its first row; declare it `known` and all wait for that row. In silence heartbeats come to rest
after `units_ahead` units, by default at once: wrap in a timeout.

>>> pacemaker = EstimatedSkew().start()
>>> for clock, source, time in [(0, 0, 100), (1, 1, 70), (2, 0, 110), (3, 1, 85)]:
...     pacemaker.observe(Arrivals.of_row(clock, source, time))
>>> pacemaker.heartbeats(3).by_source.tolist()
[110, 85]
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from eventide.errors import DeclarationError, SnapshotError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Snapshot, check_snapshot
from eventide.eventtime.instant import FOREVER, NEVER, Instants, shift_all
from eventide.eventtime.per_source import grown
from eventide.eventtime.ratchet import Ratchet
from eventide.eventtime.reason import NOT_EXPECTED, NOT_HEARD, LeftOut, Reason, those
from eventide.eventtime.skew_estimates import Adaptivity, SkewEstimates
from eventide.eventtime.waiting import check_known, slowest

KIND, VERSION = "estimated_skew", 1


@dataclass(frozen=True)
class EstimatedSkew:
    """Estimate the skew between sources and promise by it; works without any argument.

    The defaults: estimates fall by half after 100 calm rows, and 1 % of rows may exceed them before that gets slower
    (`Adaptivity`); only t = 0, so promises change with rows alone and whatever the clock counts will do, row numbers
    too; two references per source; sources are discovered. With `units_ahead`, also say what a unit of the clock is.

    >>> EstimatedSkew(Adaptivity(window=None), clock_unit=500_000, units_ahead=4, pairwise=True, known=3).known
    3
    """

    adaptivity: Adaptivity = field(default_factory=Adaptivity)
    clock_unit: int = 1
    units_ahead: int = 0
    pairwise: bool = False
    known: int = 0

    def __post_init__(self) -> None:
        if self.clock_unit < 1:
            raise DeclarationError(f"clock_unit {self.clock_unit} must be a whole number of clock ticks, 1 or more")
        if self.units_ahead < 0:
            raise DeclarationError(
                f"units_ahead {self.units_ahead} is negative: give 0 to promise only when rows arrive"
            )
        check_known(self.known)

    def start(self) -> EstimatedSkewPacemaker:
        """A pacemaker that has seen nothing."""
        return EstimatedSkewPacemaker(self)

    def resume(self, snapshot: Snapshot) -> EstimatedSkewPacemaker:
        """A pacemaker that continues from `snapshot`."""
        check_snapshot(snapshot, KIND, VERSION)
        pacemaker = EstimatedSkewPacemaker(self)
        pacemaker.restore(snapshot)
        return pacemaker


class EstimatedSkewPacemaker:
    """The largest time of every source, now and at each unit ago, and the estimates."""

    def __init__(self, policy: EstimatedSkew) -> None:
        self._policy = policy
        self._slot: int | None = None
        units = policy.units_ahead + 1
        self._reached: Instants = np.full((0, units), NEVER, dtype=np.int64)
        self._estimates = SkewEstimates(policy.adaptivity, 0 if policy.pairwise else 2, units)
        self._ratchet = Ratchet()
        self._up_to_date = False
        self._grow(policy.known)

    def observe(self, arrivals: Arrivals) -> None:
        """Compare the rows of a round with what was reached before it, then let them count themselves."""
        self._move(arrivals.clock)
        if not arrivals.total:
            return
        spoke = arrivals.sources
        self._grow(int(spoke[-1]) + 1)
        reference = self._references()
        reference = reference if len(reference) == 1 else reference[spoke]
        distance = 1 - np.maximum(arrivals.earliest_by_source, 1 - FOREVER)
        shown = np.maximum(shift_all(reference, distance[:, None, None]), 0)
        self._estimates.learn(spoke, shown, reference > NEVER, arrivals.rows_by_source)
        self._reached[spoke, 0] = np.maximum(self._reached[spoke, 0], arrivals.latest_by_source)
        self._up_to_date = False

    def heartbeats(self, clock: int) -> Heartbeats:
        """What the estimates promise at this clock; a source that has not spoken is promised nothing of its own."""
        self._move(clock)
        if self._up_to_date:
            return self._ratchet.shown
        self._up_to_date = True
        heard = self._reached[:, 0] > NEVER
        promised = shift_all(self._references(), -self._estimates.lag).max(axis=(1, 2), initial=NEVER)
        own = np.where(heard, promised, NEVER)
        return self._ratchet.lift(slowest(own, heard, self._policy.known), own)

    def _references(self) -> Instants:
        # (target, reference, t); a first axis of one where all targets share the references.
        if self._policy.pairwise:
            return self._reached[None]
        sources, units = self._reached.shape
        references = np.empty((sources, 2, units), dtype=np.int64)
        references[:, 0] = self._reached
        references[:, 1] = self._reached.max(axis=0, initial=NEVER)
        return references

    def _move(self, clock: int) -> None:
        slot = clock // self._policy.clock_unit
        passed = 0 if self._slot is None else slot - self._slot
        if passed > 0 and self._policy.units_ahead:
            units = np.arange(self._policy.units_ahead + 1)
            self._reached = self._reached[:, np.maximum(units - passed, 0)]
            self._up_to_date = False
        if self._slot is None or passed > 0:
            self._slot = slot

    def _grow(self, sources: int) -> None:
        if sources > len(self._reached):
            self._reached = grown(self._reached, sources, NEVER)
            self._estimates.grow(sources, sources if self._policy.pairwise else 2)

    def why(self, source: int) -> Reason:
        """The estimated bound that promises most."""
        if source >= len(self._reached) or self._reached[source, 0] == NEVER:
            return NOT_HEARD
        reference = self._references()
        promised = shift_all(reference[source if len(reference) > 1 else 0], -self._estimates.lag[source])
        lag = int(self._estimates.lag[source].flat[int(promised.argmax())])
        return Reason("estimated bound", "its rows trailed by {lag:length} lately", {"lag": lag})

    def left_out(self) -> tuple[LeftOut, ...]:
        """Only who has not spoken and is not expected."""
        return those(
            NOT_EXPECTED, (self._reached[:, 0] == NEVER) & (np.arange(len(self._reached)) >= self._policy.known)
        )

    def snapshot(self) -> Snapshot:
        """Times reached, estimates, and the heartbeats shown."""
        return {
            "kind": KIND,
            "version": VERSION,
            "pairwise": self._policy.pairwise,
            "units": self._policy.units_ahead + 1,
            "slot": self._slot,
            "reached": self._reached.tolist(),
            "estimates": self._estimates.snapshot(),
            "ratchet": self._ratchet.snapshot(),
        }

    def restore(self, saved: Snapshot) -> None:
        """Take over what `snapshot` saved."""
        here, there = (self._policy.pairwise, self._policy.units_ahead + 1), (saved["pairwise"], saved["units"])
        if here != there:
            raise SnapshotError(
                f"the snapshot has (pairwise, units) = {there}, this policy {here}: "
                "resume with the policy that saved it"
            )
        self._slot = saved["slot"]
        self._reached = np.array(saved["reached"], dtype=np.int64).reshape(-1, saved["units"])
        self._estimates.restore(saved["estimates"])
        self._ratchet = Ratchet.restored(saved["ratchet"])
