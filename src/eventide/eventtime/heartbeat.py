"""The heartbeat: how far time has come, and the two small interfaces of everything that decides it.

**The heartbeat law.** After a heartbeat h of a source, no row with time <= h is accepted from that source. A heartbeat
never goes back. The *combined* heartbeat holds for all sources together; it is never above what the policy would
stake on every one of them.

Configuration, running logic and saved state are three types: a `Policy` is a frozen declaration; it starts a
`Pacemaker`, the running object; a `Snapshot` is plain data from which the same policy resumes an equal pacemaker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, runtime_checkable

from eventide.errors import SnapshotError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import NEVER, Instants

Snapshot: TypeAlias = dict[str, Any]
"""Plain data (numbers, strings, lists, dicts), with at least `kind` and `version`: fit for JSON."""


@dataclass(frozen=True)
class Heartbeats:
    """The promises of one moment: one for all sources together, and one per source known so far.

    >>> import numpy as np
    >>> h = Heartbeats(10, np.array([10, 25]))
    >>> h.of(1), h.of(7) == NEVER
    (25, True)
    """

    combined: int
    by_source: Instants

    def of(self, source: int) -> int:
        """The heartbeat of one source; `NEVER` for one that has not been seen."""
        return int(self.by_source[source]) if source < len(self.by_source) else NEVER


@runtime_checkable
class Pacemaker(Protocol):
    """Running logic: observes rounds, answers with heartbeats.

    The clock is an argument. Calls come in the order of their clocks; a clock that steps back is taken as standing
    still. `heartbeats` may be asked at any clock between two rounds and never answers with less than before.
    """

    def observe(self, arrivals: Arrivals) -> None:
        """Learn from a round that has arrived."""
        ...

    def heartbeats(self, clock: int) -> Heartbeats:
        """What is promised at this clock, from all rounds observed so far."""
        ...

    def snapshot(self) -> Snapshot:
        """Everything needed to go on to the same heartbeats."""
        ...


@runtime_checkable
class Policy(Protocol):
    """A declaration of how heartbeats are to be found: frozen, comparable, without state."""

    def start(self) -> Pacemaker:
        """A pacemaker that has seen nothing."""
        ...

    def resume(self, snapshot: Snapshot) -> Pacemaker:
        """A pacemaker that continues where `snapshot` was taken."""
        ...


def check_snapshot(snapshot: Snapshot, kind: str, version: int) -> None:
    """Refuse a snapshot of another kind or version, saying both.

    >>> check_snapshot({"kind": "timeout", "version": 1}, "slack", 1)
    Traceback (most recent call last):
        ...
    eventide.errors.SnapshotError: this is a snapshot of 'timeout' version 1, not of 'slack' version 1
    """
    found = (snapshot.get("kind"), snapshot.get("version"))
    if found != (kind, version):
        raise SnapshotError(f"this is a snapshot of {found[0]!r} version {found[1]}, not of {kind!r} version {version}")
