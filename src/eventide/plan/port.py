"""The way of rows into an operator: which rows of an input it takes, and what it keeps of each.

Law: a port is a query that keeps its rows (`Bound.keeps_rows`), cut by their times one by one. So rows come into an
operator by the same reduce as into a window: malformed and broken ones are rejected, and late ones told, in the
same way, for a stream and for the results of a query or of another operator.

A chunk of a port has the columns `__pane` and `__t` (both the time), `__k0` (the first instant that the row spans),
`__k1`, ... (the expressions asked for), then the kept columns under their own names.

>>> from eventide.plan.stream import Stream, columns
>>> traffic = Stream("traffic", columns("ts BIGINT, speed INT"), time="ts")
>>> into = port("fast", "left", traffic, traffic.columns, keys=(Key("double", "speed * 2", "INT"),), where="speed > 60")
>>> into.query.name, [key.sql for key in into.keys], [column.name for column in into.kept]
('fast__left', ['CAST(`ts` AS BIGINT)', 'speed * 2'], ['ts', 'speed'])
"""

from __future__ import annotations

from eventide.plan.bound import Bound, Key, instant_sql, time_sql
from eventide.plan.columns import Column
from eventide.plan.derived import WINDOW_START, Derived
from eventide.plan.query import Query, named_as
from eventide.plan.stream import Stream
from eventide.plan.window import RowWindow

SPAN_START = "__k0"
"""The column of a chunk that tells the first instant of a row's span; it is `__t` itself for rows of a stream."""


IDENTITY = (Column("__seq", "BIGINT"), Column("__id", "BIGINT"))
"""The columns that tell a row from all others of its operator, where it has to be told apart."""


def port(
    operator: str,
    side: str,
    stream: Stream,
    kept: tuple[Column, ...],
    keys: tuple[Key, ...] = (),
    where: str | None = None,
    driver_exact: bool = True,
) -> Bound:
    """The port of an operator for one input; `keys` are computed where rows are judged, in the round they come."""
    query = Query(port_name(operator, side), stream.name, RowWindow(1), named_as(n="count(*)"), where=where)
    start = Key("start", _start_sql(stream), "BIGINT")
    # A slice that keeps no column would keep no row.
    kept = kept or stream.columns[:1]
    return Bound(query, stream, (start, *keys), (), kept, (), (), (), driver_exact, operator=operator)


def port_name(operator: str, side: str) -> str:
    """The name of a port among the readers of a stream."""
    return f"{operator}__{side}"


def _start_sql(stream: Stream) -> str:
    if isinstance(stream, Derived):
        return instant_sql(WINDOW_START, stream.column(WINDOW_START).type)
    return time_sql(stream)
