"""Heartbeats, the interfaces of policies, how generators are saved, and the ratchet that never goes back.

**The heartbeat law.** A heartbeat h of a source is the promise that no row with time <= h comes from that source any
more. Windows close by it, and rows go on in the order of time. A row that comes all the same breaks the promise: it is
late for every window that was answered by it, and counts in those that are still open. A heartbeat never goes back. The
*combined* heartbeat holds for all sources together; it is never above what the policy would stake on every one of them.

Configuration, running logic and saved state are three types: a `Policy` is a frozen declaration; it starts a
`HeartbeatGenerator`, the running object; a `Snapshot` is plain data, and arrays (`Packed`), from which the same policy
resumes an equal one.

**The ratchet.** Whatever a policy computes, the heartbeats it shows only go forward; what is promised for all sources
together is promised for each of them; a source that is discovered later joins at the combined heartbeat, so it can
never pull time back.

>>> ratchet = Ratchet()
>>> ratchet.lift(10, np.array([12])).by_source.tolist()
[12]
>>> h = ratchet.lift(7, np.array([11, 3]))
>>> h.combined, h.by_source.tolist()
(10, [12, 10])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from eventide.errors import SnapshotError
from eventide.eventtime.arrays import grown
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
class HeartbeatGenerator(Protocol):
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

    def start(self) -> HeartbeatGenerator:
        """A heartbeat generator that has seen nothing."""
        ...

    def resume(self, snapshot: Snapshot) -> HeartbeatGenerator:
        """A heartbeat generator that continues where `snapshot` was taken."""
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


class Ratchet:
    """The highest heartbeats shown so far."""

    def __init__(self) -> None:
        self._shown = Heartbeats(NEVER, np.zeros(0, dtype=np.int64))

    @property
    def shown(self) -> Heartbeats:
        """The heartbeats that were shown last."""
        return self._shown

    def lift(self, combined: int, by_source: Instants) -> Heartbeats:
        """Show these heartbeats, or what was shown before where that is higher."""
        combined = max(combined, self._shown.combined)
        size = max(len(by_source), len(self._shown.by_source))
        lifted = np.maximum(grown(self._shown.by_source, size, NEVER), grown(by_source, size, NEVER))
        # A new array each time: heartbeats that were handed out never change afterwards.
        self._shown = Heartbeats(combined, np.maximum(lifted, combined))
        return self._shown

    def lift_all(self, heartbeat: int, sources: int) -> Heartbeats:
        """Show one heartbeat for every one of `sources` sources.

        >>> Ratchet().lift_all(5, sources=2).by_source.tolist()
        [5, 5]
        """
        if heartbeat <= self._shown.combined and sources <= len(self._shown.by_source):
            return self._shown
        return self.lift(heartbeat, np.full(sources, heartbeat, dtype=np.int64))

    def snapshot(self) -> Snapshot:
        """The heartbeats as plain data."""
        return {"combined": self._shown.combined, "by_source": self._shown.by_source.tolist()}

    def restore(self, saved: Snapshot) -> None:
        """Go on from what `snapshot` described."""
        self._shown = Heartbeats(saved["combined"], np.array(saved["by_source"], dtype=np.int64))

    @classmethod
    def restored(cls, saved: Snapshot) -> Ratchet:
        """The ratchet that `snapshot` described.

        >>> Ratchet.restored({"combined": 4, "by_source": [4, 9]}).shown.of(1)
        9
        """
        ratchet = cls()
        ratchet.restore(saved)
        return ratchet


class SavedGenerator:
    """Saves a heartbeat generator by the names of its attributes, and restores it.

    Law: a snapshot has the kind and the version of the generator, and each attribute of `SAVED` under its name without
    the underscore: arrays as lists, parts with a `snapshot` of their own by that, plain data as it is. Restoring it
    into a new generator of the same policy changes no later heartbeat.
    """

    KIND: ClassVar[str]
    VERSION: ClassVar[int]
    SAVED: ClassVar[tuple[str, ...]]
    inner: HeartbeatGenerator
    """Of those that wrap another."""

    def snapshot(self) -> Snapshot:
        """Everything needed to go on to the same heartbeats."""
        parts = {name.lstrip("_"): _plain(getattr(self, name)) for name in self.SAVED}
        return {"kind": self.KIND, "version": self.VERSION, **parts}

    def restore(self, snapshot: Snapshot) -> None:
        """Go on from what `snapshot` described, but for `inner`, which is its policy's to resume."""
        check_snapshot(snapshot, self.KIND, self.VERSION)
        for name in self.SAVED:
            saved, here = snapshot[name.lstrip("_")], getattr(self, name)
            if isinstance(here, np.ndarray):
                setattr(self, name, np.array(saved, dtype=here.dtype).reshape(-1, *here.shape[1:]))
            elif name != "inner" and isinstance(here, _Restorable):
                here.restore(saved)
            elif name != "inner":
                setattr(self, name, saved)


@runtime_checkable
class _Restorable(Protocol):
    """A part of a generator that saves itself."""

    def snapshot(self) -> Snapshot: ...

    def restore(self, saved: Snapshot) -> None: ...


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    return value.snapshot() if hasattr(value, "snapshot") else value


Running = TypeVar("Running", bound=SavedGenerator)


def resumed(generator: Running, snapshot: Snapshot, inner: Policy | None = None) -> Running:
    """A new generator, gone on from `snapshot`; one that wraps another has that resumed by its policy.

    >>> from eventide.eventtime.policies.fixed_delay import FixedDelay
    >>> FixedDelay(10).resume(FixedDelay(10).start().snapshot()).snapshot() == FixedDelay(10).start().snapshot()
    True
    """
    generator.restore(snapshot)
    if inner is not None:
        generator.inner = inner.resume(snapshot["inner"])
    return generator
