"""Which queries may close group by group, each group on the heartbeat of its own source.

Law: a query can be closed by source when each of its groups belongs to one source and its results of one window need
not be told together. So it reads a stream, has windows of time, and groups by every column that names a source; it
tells its windows once, in no order of its own (punctuation `[time <= t, sensor = 7]` closes the groups of sensor 7;
prodding thesis, section 6, after Tucker).

>>> from eventide.plan.query import Query, named_as
>>> from eventide.plan.stream import Stream, columns
>>> from eventide.plan.window import Window
>>> s = Stream("s", columns("t BIGINT, who STRING, v INT"), time="t", source=("who",))
>>> why_not(Query("q", "s", Window(10), named_as(n="count(*)"), named_as("who")), s) is None
True
>>> why_not(Query("q", "s", Window(10), named_as(n="count(*)")), s)
'its groups do not tell the source: group by who, as a plain column'
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from eventide.plan.columns import WHOLE_NUMBERS, quoted
from eventide.plan.query import Query
from eventide.plan.spark_grammar import SPARK
from eventide.plan.stream import Stream, Timestamps
from eventide.plan.window import Window

MOST_NAMED = 1000
"""So many values are written into a statement at most."""


def why_not(query: Query, stream: Stream | None) -> str | None:
    """What keeps a query from closing by source, and the way out; None where nothing does. `stream`: what it reads."""
    if stream is None:
        return f"it reads the query {query.stream!r}, and results have no source: let it read a stream"
    if stream.timestamps is not Timestamps.EXTERNAL:
        return f"rows of stream {stream.name!r} are stamped by the clock, so no source is ahead of another"
    if not stream.source:
        return f"stream {stream.name!r} is one source: name the columns that tell its sources (SOURCE BY)"
    if not isinstance(query.window, Window):
        return "rows of all sources are counted together: give it windows of time"
    if query.window.empty:
        return "a window without rows belongs to no source: do not ask for empty windows"
    if query.retain:
        return "windows that are told source by source cannot be revised: drop RETAIN"
    if query.order or query.limit is not None:
        return "ORDER BY and LIMIT need all results of a window together: drop them"
    if missing := [name for name in stream.source if place_of(name, query) is None]:
        return f"its groups do not tell the source: group by {', '.join(missing)}, as a plain column"
    return None


def place_of(column: str, query: Query) -> int | None:
    """Which group is this column itself, counted from 0; None where none is."""
    same = (column.lower(), quoted(column).lower())
    return next((place for place, group in enumerate(query.groups) if group.sql.strip().lower() in same), None)


def among(stream: Stream, values: Sequence[Sequence[object]]) -> str | None:
    """A condition that holds for the rows of some sources, and perhaps of others; None where it is not worth saying.

    `values` are those sources have in each column that names one.

    >>> from eventide.plan.columns import Column
    >>> s = Stream("s", (Column("t", "BIGINT"), Column("who", "STRING")), time="t", source=("who",))
    >>> among(s, [["a", "b", None]])
    "(`who` IN ('a', 'b') OR `who` IS NULL)"
    """
    told = [_is_one_of(name, stream.column(name).type, of) for name, of in zip(stream.source, values, strict=True)]
    return " AND ".join(condition for condition in told if condition is not None) or None


def _is_one_of(name: str, kind: str, values: Sequence[object]) -> str | None:
    if len(values) > MOST_NAMED or kind not in ("STRING", *WHOLE_NUMBERS):
        return None
    literals = [
        exp.Literal.string(value).sql(SPARK) if isinstance(value, str) else str(value)
        for value in values
        if value is not None
    ]
    parts = [f"{quoted(name)} IN ({', '.join(literals)})"] if literals else []
    parts += [f"{quoted(name)} IS NULL"] if None in values else []
    return f"({' OR '.join(parts)})"
