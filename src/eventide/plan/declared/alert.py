"""Alerts that a script declares: what they are about, and the condition under which they are raised.

Law: a rule only looks. It is no part of the plan, keeps no state in a checkpoint, and may come, change and go from one
start to the next. Its condition speaks of what a stream or query shows (`STREAM_MEASURES`, `QUERY_MEASURES`), or of the
columns of a query's results, never of both; lengths of time are seconds in it, shares are parts of 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

LAG = "lag"
STREAM_MEASURES: Mapping[str, str] = {
    LAG: "how far the heartbeat is behind the latest row: seconds, or numbers of a sequence",
    "silence": "seconds since rows came, by the clock of the machine",
    "rows": "rows that came",
    "late_rows": "rows that came too late",
    "late_ratio": "the share of late rows among those that queries used, lately",
    "rejected_rows": "rows that could not be read or computed",
    "sources": "sources that have been heard",
}
QUERY_MEASURES: Mapping[str, str] = {
    LAG: "how far what is closed is behind the latest row of the streams below: seconds, or numbers of a sequence",
    "silence": "seconds since there were results, by the clock of the machine",
    "results": "results since the start",
    "state_rows": "rows of state",
    "state_bytes": "bytes of state",
    "open_slices": "panes that hold something and are not closed",
    "early_error": "the mean error of recent early results",
    "selectivity": "rows out of each row in, since the start",
    "seconds_per_row": "seconds of work for each row in, since the start",
}
KINDS = ("silence", "clock jump", "clock drift", "bound", "queue", "sink")
"""What Eventide looks for by itself: no rule has such a name."""


@dataclass(frozen=True)
class AlertRule:
    """`CREATE ALERT name ON of WHEN words FOR lasting`; `condition` is Spark SQL, `reads` the names it speaks of.

    `of_results`: these are columns of results. `lasting`: so many seconds it holds before the alert is raised.
    """

    name: str
    of: str
    condition: str
    words: str
    reads: tuple[str, ...]
    of_results: bool = False
    lasting: float = 0.0
