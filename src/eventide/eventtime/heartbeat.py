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

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np

from eventide.errors import SnapshotError
from eventide.eventtime.arrays import grown, packed, unpacked
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import NEVER, Instants

Snapshot: TypeAlias = dict[str, Any]
"""Plain data (numbers, strings, lists, dicts), with at least `kind` and `version`: fit for JSON."""


@dataclass(frozen=True)
class Heartbeats:
    """Heartbeats (watermarks) at one moment: one for all sources together, and one per source known so far.

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
    """Computes heartbeats from the rounds (micro-batches) that it observes; Flink's watermark generator.

    Law: `heartbeats` may be asked at any clock between two rounds, and never returns less than before. The clock is an
    argument. Calls come in the order of their clocks; if a clock steps back, the larger one before it counts.
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
    """Declares how heartbeats are computed, frozen and without state; Flink's watermark strategy."""

    def start(self) -> HeartbeatGenerator:
        """A heartbeat generator that has seen nothing."""
        ...

    def resume(self, snapshot: Snapshot) -> HeartbeatGenerator:
        """A heartbeat generator that continues where `snapshot` was taken."""
        ...


def check_snapshot(snapshot: Snapshot, kind: str, version: int) -> None:
    """Refuse a snapshot of another kind or version; the error names both.

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
        """Go on from what `snapshot` described.

        >>> ratchet = Ratchet()
        >>> ratchet.restore({"combined": 4, "by_source": [4, 9]})
        >>> ratchet.shown.of(1)
        9
        """
        self._shown = Heartbeats(saved["combined"], np.array(saved["by_source"], dtype=np.int64))


class SavedState:
    """State that is saved by the names of its attributes, and restored in place.

    Law: a snapshot has each attribute of `SAVED` under its name without the underscore: arrays as lists (`packed` where
    the class is `PACKED`), parts by snapshots of their own, plain data as it is. Restoring it into new state of the
    same declaration changes nothing that follows. What only one of the two has as a part begins anew.
    """

    SAVED: ClassVar[tuple[str, ...]] = ()
    PACKED: ClassVar[bool] = False

    def snapshot(self) -> Snapshot:
        """Everything needed to go on to the same heartbeats."""
        return {name.lstrip("_"): self._saved(getattr(self, name)) for name in self.SAVED}

    def restore(self, saved: Snapshot) -> None:
        """Go on from what `snapshot` described."""
        for name in self.SAVED:
            setattr(self, name, _restored(getattr(self, name), saved[name.lstrip("_")]))

    def _saved(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return packed(value) if self.PACKED else value.tolist()
        if isinstance(value, list | tuple):
            return [self._saved(one) for one in value]
        return value.snapshot() if hasattr(value, "snapshot") else value


@runtime_checkable
class _Part(Protocol):
    """State that saves itself."""

    def snapshot(self) -> Snapshot: ...

    def restore(self, saved: Snapshot) -> None: ...


def _restored(here: Any, saved: Any) -> Any:
    """The value of an attribute, from what was saved of it and what a new one is."""
    if isinstance(here, np.ndarray):
        if not isinstance(saved, list):
            return unpacked(saved)
        return np.array(saved, dtype=here.dtype) if saved else here[:0].copy()
    if isinstance(here, _Part):
        if saved is not None:
            here.restore(saved)
        return here
    if isinstance(here, list | tuple) and here and isinstance(here[0], _Part):
        return type(here)(_restored(part, one) for part, one in zip(here, saved, strict=True))
    return None if here is None and isinstance(saved, dict) else saved


class SavedGenerator(SavedState):
    """The running object of a policy, saved with its kind and version."""

    KIND: ClassVar[str]
    VERSION: ClassVar[int] = 1

    def snapshot(self) -> Snapshot:
        """Everything needed to go on to the same heartbeats."""
        return {"kind": self.KIND, "version": self.VERSION, **super().snapshot()}

    def restore(self, saved: Snapshot) -> None:
        """Go on from what `snapshot` described."""
        self.check(saved)
        super().restore(saved)

    def check(self, snapshot: Snapshot) -> None:
        """Refuse a snapshot from which this policy cannot go on."""
        check_snapshot(snapshot, self.KIND, self.VERSION)


Running = TypeVar("Running", bound=_Part)


def resumed(state: Running, snapshot: Snapshot) -> Running:
    """New state, gone on from `snapshot`.

    >>> from eventide.eventtime.policies.slack import LargestTimes
    >>> resumed(LargestTimes(keep=2), {"times": [9, 4], "rows": [1, 1]}).least
    4
    """
    state.restore(snapshot)
    return state


class SavedPolicy(ABC, Generic[Running]):
    """A policy whose running object is saved by the names of its attributes.

    >>> from eventide.eventtime.policies.fixed_delay import FixedDelay
    >>> FixedDelay(10).resume(FixedDelay(10).start().snapshot()).snapshot() == FixedDelay(10).start().snapshot()
    True
    """

    @abstractmethod
    def start(self) -> Running:
        """A heartbeat generator that has seen nothing."""

    def resume(self, snapshot: Snapshot) -> Running:
        """A heartbeat generator that continues where `snapshot` was taken."""
        return resumed(self.start(), snapshot)


class Wrapped:
    """The heartbeat generator of another policy within one: it may be a user's, so its own policy resumes it."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self.inner = policy.start()

    def observe(self, arrivals: Arrivals) -> None:
        """Pass a round on."""
        self.inner.observe(arrivals)

    def heartbeats(self, clock: int) -> Heartbeats:
        """What it promises at this clock."""
        return self.inner.heartbeats(clock)

    def snapshot(self) -> Snapshot:
        """Its snapshot."""
        return self.inner.snapshot()

    def restore(self, saved: Snapshot) -> None:
        """Have it resumed from its snapshot."""
        self.inner = self._policy.resume(saved)


def layers(whole: object) -> Iterator[object]:
    """A policy or a heartbeat generator and whatever it wraps, from the outermost.

    >>> from eventide.eventtime.policies.fixed_delay import FixedDelay
    >>> from eventide.eventtime.policies.wrappers.timeout import Timeout
    >>> list(layers(Timeout(FixedDelay(9), after=5)))
    [Timeout(inner=FixedDelay(delay=9), after=5), FixedDelay(delay=9)]
    """
    while whole is not None:
        yield whole
        whole = getattr(whole, "inner", None)
