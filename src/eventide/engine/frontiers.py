"""How far a stream, a query or an operator has come, for whoever reads it.

Laws. After heartbeat h a later row of a stream has a time after h, so its time column is at least h + 1. A later result
of a query is of a window that is still open: its end and its start are at least those of the first such window, and a
group that carries time has at least its value at that start. What holds for several inputs is the least of theirs.

>>> from eventide.plan.columns import columns
>>> of_stream(Stream("s", columns("t BIGINT, v INT"), time="t"), 9)
Frontier(time=9, least={'t': 10}, holes=())
>>> least_time([Frontier(9), Frontier(4)])
4
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from eventide.engine.operator_run import Frontier
from eventide.engine.query_run import QueryRun
from eventide.engine.row_run import RowRun
from eventide.engine.windows import first_ending_after
from eventide.engine.work import Run
from eventide.eventtime.instant import EDGE, FOREVER, NEVER
from eventide.eventtime.span import merged
from eventide.plan.derived import WINDOW_END, WINDOW_START
from eventide.plan.stream import Stream


def of_stream(stream: Stream, heartbeat: int) -> Frontier:
    """The frontier of a stream after a heartbeat."""
    if heartbeat <= -EDGE:
        return Frontier()
    if heartbeat >= EDGE:
        return Frontier(FOREVER)
    return Frontier(heartbeat, {} if stream.time is None else {stream.time: heartbeat + 1})


def of_query(run: Run, heartbeat: int = NEVER) -> Frontier:
    """The frontier of a query's results; `heartbeat`: once that has been given to it."""
    promised = run.promised(heartbeat)
    if promised in (NEVER, FOREVER):
        return Frontier(promised)
    query = run.query
    start = first_ending_after(query.panes, promised + 1)
    end = start + query.panes.range
    least: dict[str, int | Fraction] = {WINDOW_END: end, WINDOW_START: end - query.windows.range}
    if not isinstance(run, RowRun):
        # The numbers of rows, by which the other windows go, say nothing of their times.
        least |= {name: value(start) for name, value in query.carried.items()}
    return Frontier(promised, least)


def least_time(frontiers: Iterable[Frontier]) -> int:
    """The time up to which all of them have come."""
    return min((frontier.time for frontier in frontiers), default=FOREVER)


def before_holes(run: Run, inputs: Iterable[Frontier]) -> Run:
    """A query that knows what is set aside in its inputs; only one over windows of time has such inputs."""
    if not isinstance(run, QueryRun):
        return run
    return run.before(merged(hole for frontier in inputs for hole in frontier.holes))
