"""The ratchet: whatever a policy computes, the heartbeats it shows only go forward.

Law: a heartbeat never goes back; what is promised for all sources together is promised for each of them; a source that
is discovered later joins at the combined heartbeat, so it can never pull time back.

>>> ratchet = Ratchet()
>>> ratchet.lift(10, np.array([12])).by_source.tolist()
[12]
>>> h = ratchet.lift(7, np.array([11, 3]))
>>> h.combined, h.by_source.tolist()
(10, [12, 10])
"""

from __future__ import annotations

import numpy as np

from eventide.eventtime.heartbeat import Heartbeats, Snapshot
from eventide.eventtime.instant import NEVER, Instants
from eventide.eventtime.per_source import grown


class Ratchet:
    """The highest heartbeats shown so far."""

    def __init__(self) -> None:
        self._shown = Heartbeats(NEVER, np.zeros(0, dtype=np.int64))

    @property
    def shown(self) -> Heartbeats:
        """What was shown last."""
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

    @classmethod
    def restored(cls, saved: Snapshot) -> Ratchet:
        """The ratchet that `snapshot` described.

        >>> Ratchet.restored({"combined": 4, "by_source": [4, 9]}).shown.of(1)
        9
        """
        ratchet = cls()
        ratchet._shown = Heartbeats(saved["combined"], np.array(saved["by_source"], dtype=np.int64))
        return ratchet
