"""Group-wise promises: a policy that sees several sources as one.

Rows of all sources of a group reach the inner policy as rows of one source; each source has the heartbeat of its
group. With bounds from `grouping.group` inside, memory and work follow the groups instead of the sources.

>>> from eventide.eventtime.declared import DeclaredSkew
>>> from eventide.eventtime.grouping import group
>>> from eventide.eventtime.skew_systems import distributed_sensors
>>> sensors, assignment = distributed_sensors(deviation=[1, 2, 9], latency=[0, 0, 0]), (0, 0, 1)
>>> pacemaker = Grouped(DeclaredSkew(group(sensors, assignment)), assignment).start()
>>> pacemaker.observe(Arrivals.of_row(clock=0, source=1, time=100))
>>> pacemaker.heartbeats(0).by_source.tolist()
[97, 97, 89]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.grouping import members_of
from eventide.eventtime.heartbeat import Heartbeats, Pacemaker, Policy, Snapshot, check_snapshot
from eventide.eventtime.instant import NEVER
from eventide.eventtime.per_source import grown
from eventide.eventtime.reason import LeftOut, Reason, left_out_of, reason_of

KIND, VERSION = "grouped", 1


@dataclass(frozen=True)
class Grouped:
    """Run `inner` on groups; `assignment` names the group of each source."""

    inner: Policy
    assignment: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the assignment."""
        members_of(self.assignment)

    def start(self) -> GroupedPacemaker:
        """A pacemaker that has seen nothing."""
        return GroupedPacemaker(self.inner.start(), self.assignment)

    def resume(self, snapshot: Snapshot) -> GroupedPacemaker:
        """A pacemaker that continues from `snapshot`."""
        check_snapshot(snapshot, KIND, VERSION)
        return GroupedPacemaker(self.inner.resume(snapshot["inner"]), self.assignment)


class GroupedPacemaker:
    """Renames sources on the way in and heartbeats on the way out; all state is the inner pacemaker's."""

    def __init__(self, inner: Pacemaker, assignment: tuple[int, ...]) -> None:
        self._inner = inner
        self._group = np.array(assignment, dtype=np.intp)
        self._groups = int(self._group.max()) + 1

    def observe(self, arrivals: Arrivals) -> None:
        """Pass the round on, cell by cell, under the names of the groups."""
        if len(arrivals.source) and arrivals.source[-1] >= len(self._group):
            raise DeclarationError(
                f"a row came from source {arrivals.source[-1]}, but sources 0 to {len(self._group) - 1} have a group: "
                "assign every source to a group"
            )
        source = self._group[arrivals.source]
        order = np.lexsort((arrivals.earliest, source))
        self._inner.observe(
            Arrivals(
                arrivals.clock,
                source[order],
                arrivals.rows[order],
                arrivals.earliest[order],
                arrivals.latest[order],
                arrivals.delay_sum[order],
                arrivals.delay_square_sum[order],
            )
        )

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

    def snapshot(self) -> Snapshot:
        """The inner state."""
        return {"kind": KIND, "version": VERSION, "inner": self._inner.snapshot()}
