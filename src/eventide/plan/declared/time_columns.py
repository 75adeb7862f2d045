"""Which columns of a stream, of a query's results or of an operator's rows carry time, and what a time says of them.

Law: a column is carried when a row whose time is t has no smaller value in it than `least(t)`, and `least` never falls
as t grows. The time column of a stream carries time itself; `window_end` of a result is one after its time, and
`window_start` is the start of the first window that ends then; a group such as `time div 60` is at least what it is at
the start of its window (Gigascope paper, section 2: temporal attributes go from operator to operator).

>>> from eventide.plan.declared.stream import Stream, columns
>>> traffic = Stream("traffic", columns("ts BIGINT, speed INT"), time="ts")
>>> least_of("ts div 60", traffic)(179), least_of("speed", traffic), least_of("-ts", traffic)
(2, None, None)
"""

from __future__ import annotations

from eventide.plan.declared.stream import Derived, Least, Stream, TimeKind, kind_of
from eventide.plan.declared.temporal import Temporal, temporal
from eventide.plan.expressions.parse import columns_in, parsed


def time_columns(stream: Stream) -> dict[str, Least | None]:
    """The columns that carry time, each with its least value for a time, where that is known before it runs.

    >>> from eventide.plan.expressions.columns import columns
    >>> from eventide.plan.declared.window import Window
    >>> sums = Derived.of("sums", columns("total BIGINT"), TimeKind.SEQUENCE, Window(60, 20))
    >>> {name: least(79) for name, least in time_columns(sums).items()}
    {'window_end': 80}
    """
    if isinstance(stream, Derived):
        return {"window_end": lambda t: t + 1, **dict(stream.carries)}
    return {} if stream.time is None else {stream.time: lambda t: t}


def over_time_column(sql: str, stream: Stream) -> tuple[str, Temporal] | None:
    """The column with time that an expression is made of, and the expression as a function of it.

    None where it is made of no such column or of several, or does not carry time on. The function may be decreasing.

    >>> from eventide.plan.expressions.columns import columns
    >>> name, doubled = over_time_column("2 * TS", Stream("s", columns("ts BIGINT"), time="ts"))
    >>> name, doubled.value(7) == 14
    ('ts', True)
    """
    expression = parsed(sql, "an expression")
    known = {name.lower(): name for name in time_columns(stream)}
    spoken = columns_in(expression)
    if len(spoken) != 1 or spoken[0].lower() not in known:
        return None
    name = known[spoken[0].lower()]
    found = temporal(expression, name, kind_of(stream.column(name)) or TimeKind.SEQUENCE)
    return None if found is None else (name, found)


def least_of(sql: str, stream: Stream) -> Least | None:
    """The least value of an expression for a time; None where it does not carry time upwards."""
    found = over_time_column(sql, stream)
    if found is None:
        return None
    name, carried = found
    below = time_columns(stream)[name]
    if below is None or not carries_on(carried):
        return None
    return lambda t: carried.value(below(t))  # type: ignore[arg-type]


def carries_on(carried: Temporal) -> bool:
    """Whether a column that is computed so has a least value too.

    A fraction is rounded when it is computed, so that its least value is not exactly known.
    """
    return carried.increasing and carried.whole
