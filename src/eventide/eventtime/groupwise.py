"""Group-wise progress: every group of sources closes on its own heartbeat.

Law: each group runs its own `inner` policy, fed with its own rows only; its sources have the group's combined
heartbeat. So a slow group holds nobody but itself. Operators that keep the groups apart read the heartbeats by
source; the combined heartbeat, for those that mix them, is the least over the *declared* groups. It promises nothing
(`NEVER`) when none is declared: nobody knows which groups are still to come.

`group_of` says the group of source 0, 1, 2, ...; a source past its end is a group of its own.

Limits: one running policy per group. For policies that have a heartbeat per source already, nothing is gained beyond
tens of groups.

>>> from eventide.eventtime.fixed_delay import FixedDelay
>>> pacemaker = Groupwise(FixedDelay(10), group_of=(0, 0, 1)).start()
>>> pacemaker.observe(Arrivals.of_rows(clock=0, source=[0, 1, 2, 3], time=[50, 90, 30, 70]))
>>> h = pacemaker.heartbeats(0)
>>> h.combined, h.by_source.tolist()
(20, [80, 80, 20, 60])
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError, SnapshotError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Pacemaker, Policy, Snapshot, check_snapshot
from eventide.eventtime.instant import NEVER
from eventide.eventtime.ratchet import Ratchet
from eventide.eventtime.selected import selected

KIND, VERSION = "groupwise", 1


@dataclass(frozen=True)
class Groupwise:
    """Run `inner` once for each group of sources.

    >>> from eventide.eventtime.fixed_delay import FixedDelay
    >>> Groupwise(FixedDelay(10), group_of=(0, 2))
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: groups (0, 2) are not numbered 0, 1, 2, ... without a gap: do so
    """

    inner: Policy
    group_of: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if sorted(set(self.group_of)) != list(range(len(set(self.group_of)))):
            raise DeclarationError(f"groups {self.group_of} are not numbered 0, 1, 2, ... without a gap: do so")

    def start(self) -> GroupwisePacemaker:
        """A pacemaker that has seen nothing."""
        return GroupwisePacemaker(self)

    def resume(self, snapshot: Snapshot) -> GroupwisePacemaker:
        """A pacemaker that continues from `snapshot`."""
        check_snapshot(snapshot, KIND, VERSION)
        pacemaker = GroupwisePacemaker(self)
        undeclared = len(snapshot["groups"]) - pacemaker._declared
        if undeclared < 0:
            raise SnapshotError(f"this snapshot is of {len(snapshot['groups'])} groups, not of {pacemaker._declared}")
        pacemaker._meet(len(self.group_of) + undeclared)
        pacemaker._groups = [self.inner.resume(saved) for saved in snapshot["groups"]]
        pacemaker._ratchet = Ratchet.restored(snapshot["ratchet"])
        return pacemaker


class GroupwisePacemaker:
    """One pacemaker per group; declared groups first, then the others as they appear."""

    def __init__(self, policy: Groupwise) -> None:
        self._policy = policy
        self._declared = len(set(policy.group_of))
        self._groups: list[Pacemaker] = [policy.inner.start() for _ in range(self._declared)]
        self._group: NDArray[np.intp] = np.array(policy.group_of, dtype=np.intp)
        # Within its group a source is numbered anew, so that the arrays of each group stay short.
        ranks = [policy.group_of[:source].count(group) for source, group in enumerate(policy.group_of)]
        self._rank: NDArray[np.intp] = np.array(ranks, dtype=np.intp)
        self._ratchet = Ratchet()

    def _meet(self, sources: int) -> None:
        for _ in range(len(self._group), sources):
            self._group = np.append(self._group, len(self._groups))
            self._rank = np.append(self._rank, 0)
            self._groups.append(self._policy.inner.start())

    def observe(self, arrivals: Arrivals) -> None:
        """Give each group that spoke its share of a round."""
        if arrivals.total == 0:
            return
        self._meet(int(arrivals.sources[-1]) + 1)
        group = self._group[arrivals.source]
        by_group = np.argsort(group, kind="stable")
        for cells in np.split(by_group, np.flatnonzero(np.diff(group[by_group])) + 1):
            self._groups[group[cells[0]]].observe(selected(arrivals, cells, self._rank[arrivals.source]))

    def heartbeats(self, clock: int) -> Heartbeats:
        """The combined heartbeat of each group for its sources; for all together, the least of the declared groups."""
        by_group = np.array([group.heartbeats(clock).combined for group in self._groups], dtype=np.int64)
        combined = int(by_group[: self._declared].min()) if self._declared else NEVER
        return self._ratchet.lift(combined, by_group[self._group])

    def snapshot(self) -> Snapshot:
        """The snapshots of all groups, and the heartbeats shown."""
        return {
            "kind": KIND,
            "version": VERSION,
            "groups": [group.snapshot() for group in self._groups],
            "ratchet": self._ratchet.snapshot(),
        }
