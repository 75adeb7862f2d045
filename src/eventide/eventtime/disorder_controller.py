"""The disorder controller of Kim et al.: the steps that figures 3 and 4 share.

Law: every round goes into `VSeq`. When that is full, a measure estimates how many rows the buffer must hold and the
heartbeat that follows from it, and `VSeq` takes the estimated size; otherwise, and while the clock has not moved at
all from the oldest row to the newest (there is no interval to reckon with), the last heartbeat stands. With a slack,
a buffer whose estimated size exceeds the slack is fixed to it: then the heartbeat is that of `Slack`, and the drop
ratio has no effect until the estimate is small enough again (section 4).

A round is digested whole and estimated once; with rounds of one row this is figure 3 to the letter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Snapshot, check_snapshot
from eventide.eventtime.instant import NEVER
from eventide.eventtime.ratchet import Ratchet
from eventide.eventtime.reason import LeftOut, Reason
from eventide.eventtime.slack import Slack
from eventide.eventtime.vseq import LEAST_SIZE, VSeq

VERSION = 1


@dataclass(frozen=True)
class Estimate:
    """What a measure concludes: the size of the buffer in rows and the heartbeat."""

    size: int
    heartbeat: int


Measure: TypeAlias = Callable[[VSeq, int], Estimate]
"""Concludes from a full `VSeq` and the clock of its newest row."""


class DisorderController:
    """Feeds a measure from `VSeq`; one heartbeat for all sources."""

    def __init__(self, kind: str, measure: Measure, slack: int | None) -> None:
        self._kind = kind
        self._measure = measure
        self._vseq = VSeq()
        self._fixed = Slack(slack).start() if slack else None
        self._estimate = Estimate(LEAST_SIZE, NEVER)
        self._slack = slack
        self._clock = NEVER
        self._sources = 0
        self._ratchet = Ratchet()

    def observe(self, arrivals: Arrivals) -> None:
        """Take in a round; estimate anew if enough rows are known."""
        self._clock = max(self._clock, arrivals.clock)
        if arrivals.total == 0:
            return
        self._sources = max(self._sources, int(arrivals.source[-1]) + 1)
        if self._fixed is not None:
            self._fixed.observe(arrivals)
        self._vseq.add(self._clock, arrivals)
        if self._vseq.ready and self._vseq.interval > 0:
            self._estimate = self._measure(self._vseq, self._clock)
            self._vseq.resize(self._estimate.size)
        self._ratchet.lift_all(self._promise(), self._sources)

    def _promise(self) -> int:
        if self._fixed is not None and self._estimate.size > self.buffer_size:
            return self._fixed.heartbeats(self._clock).combined
        return self._estimate.heartbeat

    def heartbeats(self, clock: int) -> Heartbeats:
        """The heartbeat of the last estimate, for every source; it stands still between rows."""
        return self._ratchet.shown

    @property
    def buffer_size(self) -> int:
        """The rows that the buffer is meant to hold at present: the estimate, or the slack where that is less."""
        return min(self._estimate.size, self._slack) if self._slack else self._estimate.size

    def why(self, source: int) -> Reason:
        """The rows held back, as estimated."""
        text = "about {rows:count} rows are held back, as the disorder of the latest rows demands"
        return Reason("estimated slack", text, {"rows": self.buffer_size}, common=True)

    def left_out(self) -> tuple[LeftOut, ...]:
        """None: all sources have one heartbeat, and none is waited for."""
        return ()

    def snapshot(self) -> Snapshot:
        """`VSeq`, the last estimate, the fixed buffer and the heartbeats shown."""
        return {
            "kind": self._kind,
            "version": VERSION,
            "vseq": self._vseq.snapshot(),
            "fixed": None if self._fixed is None else self._fixed.snapshot(),
            "size": self._estimate.size,
            "heartbeat": self._estimate.heartbeat,
            "clock": self._clock,
            "sources": self._sources,
            "ratchet": self._ratchet.snapshot(),
        }

    @classmethod
    def resumed(cls, kind: str, measure: Measure, slack: int | None, snapshot: Snapshot) -> DisorderController:
        """The controller that continues from `snapshot`."""
        check_snapshot(snapshot, kind, VERSION)
        controller = cls(kind, measure, slack)
        controller._vseq = VSeq.restored(snapshot["vseq"])
        if slack and snapshot["fixed"] is not None:
            controller._fixed = Slack(slack).resume(snapshot["fixed"])
        controller._estimate = Estimate(snapshot["size"], snapshot["heartbeat"])
        controller._clock = snapshot["clock"]
        controller._sources = snapshot["sources"]
        controller._ratchet = Ratchet.restored(snapshot["ratchet"])
        return controller
