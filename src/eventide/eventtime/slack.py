"""Slack: a fixed buffer that holds back n rows (Aurora's SLACK; Kim et al. section 4, query Q1).

Law: a row is late exactly when more than n rows with larger times came before it. So the heartbeat is the (n+1)-th
largest time seen, less one: rows that tie with it are exactly n places out of order and are still welcome.

Rows of one round arrive together. All rows of a cell are taken to be at its earliest time, so a digested round never
promises more than its rows one by one.

Limits: n says nothing of time: in a slow stream n rows are an age, and in silence the last n rows stay (wrap it in
`Timeout`). A busy source pushes the rows of a slow one out of the buffer.

>>> pacemaker = Slack(rows=2).start()
>>> for time in (10, 30, 20, 40):
...     pacemaker.observe(Arrivals.of_row(clock=0, source=0, time=time))
>>> pacemaker.heartbeats(0).combined
19
"""

from __future__ import annotations

from dataclasses import dataclass

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Snapshot, check_snapshot
from eventide.eventtime.instant import shift
from eventide.eventtime.largest_times import LargestTimes
from eventide.eventtime.ratchet import Ratchet
from eventide.eventtime.reason import LeftOut, Reason

KIND, VERSION = "slack", 1


@dataclass(frozen=True)
class Slack:
    """Hold back `rows` rows.

    >>> Slack(-1)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: slack of -1 rows: give how many rows to hold back, 0 or more
    """

    rows: int

    def __post_init__(self) -> None:
        if self.rows < 0:
            raise DeclarationError(f"slack of {self.rows} rows: give how many rows to hold back, 0 or more")

    def start(self) -> SlackPacemaker:
        """A pacemaker with an empty buffer."""
        return SlackPacemaker(self)

    def resume(self, snapshot: Snapshot) -> SlackPacemaker:
        """A pacemaker that continues from `snapshot`."""
        check_snapshot(snapshot, KIND, VERSION)
        pacemaker = SlackPacemaker(self)
        pacemaker._largest = LargestTimes.restored(self.rows + 1, snapshot["largest"])
        pacemaker._sources = snapshot["sources"]
        pacemaker._ratchet = Ratchet.restored(snapshot["ratchet"])
        return pacemaker


class SlackPacemaker:
    """Remembers the times in the buffer and the one just pushed out."""

    def __init__(self, policy: Slack) -> None:
        self._rows = policy.rows
        self._largest = LargestTimes(keep=policy.rows + 1)
        self._sources = 0
        self._ratchet = Ratchet()

    def observe(self, arrivals: Arrivals) -> None:
        """Put a round into the buffer."""
        if arrivals.total:
            self._largest.add(arrivals.earliest, arrivals.rows)
            self._sources = max(self._sources, int(arrivals.source[-1]) + 1)

    def heartbeats(self, clock: int) -> Heartbeats:
        """Just below the last time pushed out, for every source; the clock plays no part."""
        return self._ratchet.lift_all(shift(self._largest.least, -1), self._sources)

    def why(self, source: int) -> Reason:
        """The rows held back."""
        return Reason("slack", "{rows:count} rows are held back", {"rows": self._rows}, common=True)

    def left_out(self) -> tuple[LeftOut, ...]:
        """None: all sources have one heartbeat, and none is waited for."""
        return ()

    def snapshot(self) -> Snapshot:
        """The buffered times, how many sources there are, and the heartbeats shown."""
        return {
            "kind": KIND,
            "version": VERSION,
            "largest": self._largest.snapshot(),
            "sources": self._sources,
            "ratchet": self._ratchet.snapshot(),
        }
