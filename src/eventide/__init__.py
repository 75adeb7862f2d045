"""Eventide: a data stream management system whose subject is time.

Rows say when something happened; they arrive late, out of order, from sources whose clocks disagree. A *heartbeat* says
how far time has come: after heartbeat h, no row with time <= h is expected, and windows that end by then close. Queries
begin with `stream`, over a streaming DataFrame of Spark's or over Arrow data; `sql` reads a script; `heartbeats` hands
our heartbeats to a query that stays plain Spark.

>>> import pyarrow as pa
>>> import eventide
>>> traffic = eventide.stream(pa.table({"t": [1, 12, 5], "speed": [50, 60, 70]}), time="t").drop_ratio(0.01)
>>> traffic.window(10).agg(mean="avg(speed)").run().column("mean").to_pylist()
[60.0, 60.0]

Below them is the time core, which finds heartbeats. A policy says what is tolerated. Here: at most 1 % of the rows may
come too late. It starts a heartbeat generator.

>>> from eventide import NEVER, Arrivals, DropRatio
>>> generator = DropRatio(0.01).start()

Every second a round brings one row of each of two sources; source 1 is always three seconds behind. The generator
is given the clock and a summary of the rows, never asks for more, and learns.

>>> for clock in range(100, 160):
...     generator.observe(Arrivals.of_rows(clock, source=[0, 1], time=[clock, clock - 3]))

Asked, it answers with heartbeats: one for all together, one per source. A source never seen has none of its own.

>>> promised = generator.heartbeats(clock=159)
>>> promised.combined, promised.of(0), promised.of(1)
(156, 159, 156)
>>> promised.of(7) == NEVER
True

What it knows is plain data, fit for JSON, from which an equal generator goes on.

>>> DropRatio(0.01).resume(generator.snapshot()).heartbeats(clock=159).combined
156
"""

from typing import TYPE_CHECKING

from eventide.lazy_import import lazy_import

if TYPE_CHECKING:
    from eventide.api.bridge import heartbeats
    from eventide.api.sql import sql
    from eventide.api.start import start
    from eventide.api.stream import stream
    from eventide.api.table import table
    from eventide.errors import DeclarationError, EventideError, InputError, LostRowsWarning, SnapshotError
    from eventide.eventtime.arrivals import Arrivals
    from eventide.eventtime.heartbeat import HeartbeatGenerator, Heartbeats, Policy, Snapshot
    from eventide.eventtime.instant import FOREVER, NEVER
    from eventide.eventtime.policies.drop_ratio.policy import DropRatio
    from eventide.eventtime.policies.own_progress import OwnProgress
    from eventide.eventtime.policies.wrappers.future_guard import FutureGuard
    from eventide.eventtime.policies.wrappers.timeout import Timeout

__all__ = [
    "FOREVER",
    "NEVER",
    "Arrivals",
    "DeclarationError",
    "DropRatio",
    "EventideError",
    "FutureGuard",
    "HeartbeatGenerator",
    "Heartbeats",
    "InputError",
    "LostRowsWarning",
    "OwnProgress",
    "Policy",
    "Snapshot",
    "SnapshotError",
    "Timeout",
    "heartbeats",
    "sql",
    "start",
    "stream",
    "table",
]

# Nothing is loaded before it is asked for: commands pass through this door, too.
__getattr__ = lazy_import(
    __name__,
    {
        "FOREVER": "eventide.eventtime.instant",
        "NEVER": "eventide.eventtime.instant",
        "Arrivals": "eventide.eventtime.arrivals",
        "DeclarationError": "eventide.errors",
        "DropRatio": "eventide.eventtime.policies.drop_ratio.policy",
        "EventideError": "eventide.errors",
        "FutureGuard": "eventide.eventtime.policies.wrappers.future_guard",
        "HeartbeatGenerator": "eventide.eventtime.heartbeat",
        "Heartbeats": "eventide.eventtime.heartbeat",
        "InputError": "eventide.errors",
        "LostRowsWarning": "eventide.errors",
        "OwnProgress": "eventide.eventtime.policies.own_progress",
        "Policy": "eventide.eventtime.heartbeat",
        "Snapshot": "eventide.eventtime.heartbeat",
        "SnapshotError": "eventide.errors",
        "Timeout": "eventide.eventtime.policies.wrappers.timeout",
        "heartbeats": "eventide.api.bridge",
        "sql": "eventide.api.sql",
        "start": "eventide.api.start",
        "stream": "eventide.api.stream",
        "table": "eventide.api.table",
    },
)
