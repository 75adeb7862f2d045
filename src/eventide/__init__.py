"""Eventide: a data stream management system whose subject is time.

Rows say when something happened; they arrive late, out of order, from sources whose clocks disagree. A *heartbeat* says
how far time has come: after heartbeat h, no row with time <= h is accepted. Today there is the time core, which finds
heartbeats, and the command `eventide profile`, which tries it on a recording. The tour in ten lines:

At clock 100 a round brings three rows of two sources. A policy sees only this summary of them.

>>> from eventide import NEVER, Arrivals, Heartbeats
>>> arrivals = Arrivals.of_rows(clock=100, source=[0, 1, 0], time=[90, 95, 97])
>>> arrivals.sources.tolist(), arrivals.rows_by_source.tolist(), arrivals.latest_by_source.tolist()
([0, 1], [2, 1], [97, 95])

Suppose each source is in order, though a time may repeat: then all before its latest time is over.

>>> own = arrivals.latest_by_source - 1
>>> promised = Heartbeats(combined=int(own.min()), by_source=own)
>>> promised.combined, promised.of(0), promised.of(1)
(94, 96, 94)

The next row of source 0 says 96: at its heartbeat, so it is late. For a source never seen, nothing is promised.

>>> 96 <= promised.of(0), promised.of(7) == NEVER
(True, True)
"""

from eventide.errors import DeclarationError, EventideError, InputError, SnapshotError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Pacemaker, Policy, Snapshot
from eventide.eventtime.instant import FOREVER, NEVER

__all__ = [
    "FOREVER",
    "NEVER",
    "Arrivals",
    "DeclarationError",
    "EventideError",
    "Heartbeats",
    "InputError",
    "Pacemaker",
    "Policy",
    "Snapshot",
    "SnapshotError",
]
