"""Rules that take a whole program: who is prodded by which rows, and what may close source by source.

Queries that are asked by the rows of their own streams.

Law: a query that reads a stream with prods among its rows, directly or through other queries and operators, is asked by
them; it is a query that declares prods, whatever else it declares, and its results have the columns of early answers.

>>> from eventide.plan.expressions.columns import columns
>>> from eventide.plan.declared.program import Program
>>> from eventide.plan.declared.query import named_as
>>> from eventide.plan.declared.stream import Stream
>>> from eventide.plan.declared.window import Window
>>> s = Stream("s", columns("t BIGINT, v INT, ask BOOLEAN"), time="t", prods="ask")
>>> sums, most = (Query(name, reads, Window(10), named_as(n="count(*)")) for name, reads in (("q", "s"), ("up", "q")))
>>> [query.prods.in_stream for query in Program((s,), (sums, most)).queries]
[True, True]

Which queries may close group by group, each group on the heartbeat of its own source.

Law: a query can be closed by source when each of its groups belongs to one source and its results of one window need
not be told together. So it reads a stream, has windows of time, and groups by every column that names a source; it
tells its windows once, in no order of its own (punctuation `[time <= t, sensor = 7]` closes the groups of sensor 7;
prodding thesis, section 6, after Tucker).

>>> from eventide.plan.declared.query import Query, named_as
>>> from eventide.plan.declared.stream import Stream, columns
>>> from eventide.plan.declared.window import Window
>>> s = Stream("s", columns("t BIGINT, who STRING, v INT"), time="t", source=("who",))
>>> why_not(Query("q", "s", Window(10), named_as(n="count(*)"), named_as("who")), s) is None
True
>>> why_not(Query("q", "s", Window(10), named_as(n="count(*)")), s)
'its groups do not tell the source: group by who, as a plain column'
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from eventide.errors import DeclarationError
from eventide.plan.declared.early import Prods
from eventide.plan.declared.query import Query
from eventide.plan.declared.stream import Stream, TimeKind, Timestamps
from eventide.plan.declared.window import Window
from eventide.plan.expressions.columns import WHOLE_NUMBERS, literal, nearest_of, quoted

if TYPE_CHECKING:
    from eventide.plan.declared.program import Operator, Program


def streams_below(program: Program, name: str) -> frozenset[str]:
    """The names of the streams that a query or operator reads in the end."""
    return _below(name, {step.name: step for step in (*program.queries, *program.operators)})


def _below(name: str, known: Mapping[str, Query | Operator]) -> frozenset[str]:
    seen, waiting = set[str](), [name]
    while waiting:
        seen.add(one := waiting.pop())
        step = known.get(one)
        reads = () if step is None else (step.stream,) if isinstance(step, Query) else step.inputs
        waiting += [read for read in reads if read not in seen]
    return frozenset(seen - known.keys())


def with_prods_of_streams(program: Program) -> tuple[Query, ...]:
    """The queries of a program, each asked by the prods among the rows that it reads."""
    prodded = {stream.name for stream in program.streams if stream.prods is not None}
    found = []
    known = {step.name: step for step in (*program.queries, *program.operators)}
    for query in program.queries:
        below = _below(query.name, known)
        in_stream = bool(below & prodded)
        if query.prods is None:
            found.append(replace(query, prods=Prods(in_stream=True)) if in_stream else query)
            continue
        if query.prods.by is not None:
            _check_by(program, query.name, query.prods.by, below)
        if query.prods.in_stream and not in_stream:
            raise DeclarationError(
                f"query {query.name!r} has early answers without a prod: say when (EVERY, AT, WITHIN), or by which rows"
            )
        found.append(query if query.prods.in_stream == in_stream else _asked_by_rows(query, query.prods))
    return tuple(found)


def _asked_by_rows(query: Query, prods: Prods) -> Query:
    return replace(query, prods=replace(prods, in_stream=True))


def _check_by(program: Program, name: str, by: str, below: frozenset[str]) -> None:
    """Refuse a stream of prods that is not there, or whose times are no times of the query."""
    streams = {stream.name: stream for stream in program.streams}
    if by not in streams:
        raise DeclarationError(f"query {name!r} is prodded by {by!r}, which is no stream: {nearest_of(by, streams)}")
    kinds = {streams[one].time_kind is TimeKind.SEQUENCE for one in below if one in streams}
    if kinds and (streams[by].time_kind is TimeKind.SEQUENCE) not in kinds:
        numbers = "numbers" if streams[by].time_kind is TimeKind.SEQUENCE else "times of a clock"
        others = "times of a clock" if numbers == "numbers" else "numbers"
        raise DeclarationError(
            f"query {name!r} cannot be prodded by {by!r}: its times are {numbers}, those of the query {others}"
        )


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

    >>> from eventide.plan.expressions.columns import Column
    >>> s = Stream("s", (Column("t", "BIGINT"), Column("who", "STRING")), time="t", source=("who",))
    >>> among(s, [["a", "b", None]])
    "(`who` IN ('a', 'b') OR `who` IS NULL)"
    """
    conditions = [
        _is_one_of(name, stream.column(name).type, of) for name, of in zip(stream.source, values, strict=True)
    ]
    return " AND ".join(condition for condition in conditions if condition is not None) or None


def _is_one_of(name: str, kind: str, values: Sequence[object]) -> str | None:
    if len(values) > MOST_NAMED or kind not in ("STRING", *WHOLE_NUMBERS):
        return None
    literals = [literal(value) if isinstance(value, str) else str(value) for value in values if value is not None]
    parts = [f"{quoted(name)} IN ({', '.join(literals)})"] if literals else []
    parts += [f"{quoted(name)} IS NULL"] if None in values else []
    return f"({' OR '.join(parts)})"
