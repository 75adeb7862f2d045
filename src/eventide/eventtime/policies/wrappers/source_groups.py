"""Policies for groups of sources: each group closes by itself, or its sources are watched as one.

*PerGroup.* Every group of sources closes on its own heartbeat. Each group runs its own `inner` policy, fed with its own
rows only; its sources have the group's combined heartbeat. So a slow group holds nobody but itself. Operators that keep
the groups apart read the heartbeats by source; the combined heartbeat, for those that mix them, is the least over the
groups.

`group_of` says the group of source 0, 1, 2, ...; the sources past its end are one more group together. A declared group
is waited for from the start, that of the others once one of them has spoken.

Limits: one running policy per declared group, and one for the others: meant for tens of groups. A policy that has a
heartbeat per source already keeps sources apart by itself, as many as there are.

>>> from eventide.eventtime.policies.fixed_delay import FixedDelay
>>> generator = PerGroup(FixedDelay(10), group_of=(0, 0, 1)).start()
>>> generator.observe(Arrivals.of_rows(clock=0, source=[0, 1, 2, 3, 4], time=[50, 90, 30, 70, 40]))
>>> h = generator.heartbeats(0)
>>> h.combined, h.by_source.tolist()
(20, [80, 80, 20, 60, 60])

*MergedSources.* The inner policy sees several sources as one. Rows of all sources of a group reach the inner policy as
rows of one source; each source has the heartbeat of its group. With bounds from `grouping.group` inside, memory and
work follow the groups instead of the sources.

>>> from eventide.eventtime.policies.skew.declared import DeclaredSkew
>>> from eventide.eventtime.policies.skew.grouping import group
>>> from eventide.eventtime.policies.skew.per_source import distributed_sensors
>>> sensors, assignment = distributed_sensors(deviation=[1, 2, 9], latency=[0, 0, 0]), (0, 0, 1)
>>> generator = MergedSources(DeclaredSkew(group(sensors, assignment)), assignment).start()
>>> generator.observe(Arrivals.of_row(clock=0, source=1, time=100))
>>> generator.heartbeats(0).by_source.tolist()
[97, 97, 89]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError, SnapshotError
from eventide.eventtime.arrays import grown
from eventide.eventtime.arrivals import Arrivals, renumbered, selected
from eventide.eventtime.heartbeat import Heartbeats, Policy, Ratchet, SavedGenerator, SavedPolicy, Snapshot, Wrapped
from eventide.eventtime.instant import NEVER
from eventide.eventtime.policies.skew.grouping import members_of
from eventide.eventtime.reason import NOT_HEARD, LeftOut, Reason, left_out_of, reason_of


@dataclass(frozen=True)
class PerGroup(SavedPolicy["PerGroupGenerator"]):
    """Run `inner` once for each group of sources, and once for the sources that are in none.

    >>> from eventide.eventtime.policies.fixed_delay import FixedDelay
    >>> PerGroup(FixedDelay(10), group_of=(0, 2))
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: groups (0, 2) are not numbered 0, 1, 2, ... without a gap: do so
    """

    inner: Policy
    group_of: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if sorted(set(self.group_of)) != list(range(len(set(self.group_of)))):
            raise DeclarationError(f"groups {self.group_of} are not numbered 0, 1, 2, ... without a gap: do so")

    def start(self) -> PerGroupGenerator:
        """A heartbeat generator that has seen nothing."""
        return PerGroupGenerator(self)


class PerGroupGenerator(SavedGenerator):
    """One heartbeat generator per declared group, and a last one for the sources that are in none."""

    KIND = "groupwise"
    SAVED = ("_groups", "_ratchet")

    def __init__(self, policy: PerGroup) -> None:
        declared = np.array(policy.group_of, dtype=np.intp)
        members = np.bincount(declared)
        self._groups = [Wrapped(policy.inner) for _ in range(len(members) + 1)]
        self._group: NDArray[np.intp] = declared
        # Within its group a source is numbered anew, so that the arrays of each group stay short.
        self._rank: NDArray[np.intp] = np.empty_like(declared)
        firsts = np.cumsum(members) - members
        self._rank[np.argsort(declared, kind="stable")] = np.arange(len(declared)) - np.repeat(firsts, members)
        self._declared_sources = len(declared)
        self._ratchet = Ratchet()

    def _meet(self, sources: int) -> None:
        known = len(self._group)
        if sources > known:
            self._group = grown(self._group, sources, len(self._groups) - 1)
            self._rank = np.append(self._rank, np.arange(known, sources) - self._declared_sources)

    def observe(self, arrivals: Arrivals) -> None:
        """Give each group that spoke its share of a round."""
        if arrivals.total == 0:
            return
        self._meet(arrivals.places)
        group = self._group[arrivals.source]
        by_group = np.argsort(group, kind="stable")
        for cells in np.split(by_group, np.flatnonzero(np.diff(group[by_group])) + 1):
            self._groups[group[cells[0]]].observe(selected(arrivals, cells, self._rank[arrivals.source]))

    def heartbeats(self, clock: int) -> Heartbeats:
        """The combined heartbeat of each group for its sources; for all together, the least of them."""
        by_group = np.array([group.heartbeats(clock).combined for group in self._groups], dtype=np.int64)
        others_spoke = len(self._group) > self._declared_sources
        waited_for = by_group if others_spoke else by_group[:-1]
        return self._ratchet.lift(int(waited_for.min()) if len(waited_for) else NEVER, by_group[self._group])

    def why(self, source: int) -> Reason:
        """The reason within its group."""
        if source >= len(self._group):
            return NOT_HEARD
        return reason_of(self._groups[self._group[source]], int(self._rank[source]))

    def left_out(self) -> tuple[LeftOut, ...]:
        """The sources that are not waited for within their group."""
        found = []
        for number, group in enumerate(self._groups):
            members = np.flatnonzero(self._group == number)
            for out in left_out_of(group):
                ranks = out.sources[out.sources < len(members)]
                found.append(LeftOut(out.reason, members[np.argsort(self._rank[members])][ranks]))
        return tuple(found)

    def snapshot(self) -> Snapshot:
        """The snapshots of all groups, the heartbeats shown, and how many sources are known."""
        return {**super().snapshot(), "sources": len(self._group)}

    def restore(self, saved: Snapshot) -> None:
        """Go on from what `snapshot` described."""
        super().restore(saved)
        self._meet(saved["sources"])

    def check(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot of more or fewer groups, too."""
        super().check(snapshot)
        there, here = len(snapshot["groups"]) - 1, len(self._groups) - 1
        if there != here:
            raise SnapshotError(f"this snapshot is of {there} declared groups, not of {here}")


@dataclass(frozen=True)
class MergedSources(SavedPolicy["MergedSourcesGenerator"]):
    """Run `inner` on groups; `assignment` names the group of each source."""

    inner: Policy
    assignment: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the assignment."""
        members_of(self.assignment)

    def start(self) -> MergedSourcesGenerator:
        """A heartbeat generator that has seen nothing."""
        return MergedSourcesGenerator(self)


class MergedSourcesGenerator(SavedGenerator):
    """Renames sources on the way in and heartbeats on the way out; all state is the inner heartbeat generator's."""

    KIND = "grouped"
    SAVED = ("_inner",)

    def __init__(self, policy: MergedSources) -> None:
        # Private: whoever goes through the layers of a policy speaks of sources, which have other names in there.
        self._inner = Wrapped(policy.inner)
        self._group = np.array(policy.assignment, dtype=np.intp)
        self._groups = int(self._group.max()) + 1

    def observe(self, arrivals: Arrivals) -> None:
        """Pass the round on, cell by cell, under the names of the groups."""
        if len(arrivals.source) and arrivals.source[-1] >= len(self._group):
            raise DeclarationError(
                f"a row came from source {arrivals.source[-1]}, but sources 0 to {len(self._group) - 1} have a group: "
                "assign every source to a group"
            )
        self._inner.observe(renumbered(arrivals, self._group[arrivals.source]))

    def heartbeats(self, clock: int) -> Heartbeats:
        """To each source what its group was promised."""
        promised = self._inner.heartbeats(clock)
        return Heartbeats(promised.combined, grown(promised.by_source, self._groups, NEVER)[self._group])

    def why(self, source: int) -> Reason:
        """The reason of its group."""
        return reason_of(self._inner, int(self._group[source]))

    def left_out(self) -> tuple[LeftOut, ...]:
        """The sources of the groups that are not waited for."""
        left = left_out_of(self._inner)
        return tuple(LeftOut(out.reason, np.flatnonzero(np.isin(self._group, out.sources))) for out in left)
