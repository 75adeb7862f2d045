"""The rows of a stream in one round as SQL: those with a time, promises, prods, and rejects.

Laws. A row whose time cannot be used is rejected with the reason, once. Bounds between named sources say nothing of any
other source: its rows could never be waited for, so they are rejected too, and the stream goes on.

A row that its stream marks as a prod (`Stream.prods`) asks every query that reads the stream, however long the way; a
row of a stream that a query names (`Prods.by`) asks that query. It asks for the windows up to its time, in the groups
that its columns name: NULL, like a group that is no plain column of the stream, stands for any. What a round has of
them comes from one statement, one row for each pattern of groups with the latest time: whoever is asked up to that has
been asked for all before. (Prodding thesis, section 3.2, figure 3.2 (b) and (a).)

>>> from eventide.plan.expressions.columns import columns
>>> from eventide.plan.declared.query import Query, named_as
>>> from eventide.plan.declared.window import Window
>>> s = Stream("s", columns("t INT, k STRING, v INT, ask BOOLEAN"), time="t", prods="ask")
>>> sums = Query("sums", "s", Window(10), named_as(total="sum(v)"), named_as("k", odd="v % 2"))
>>> most = Query("most", "sums", Window(20), named_as(most="max(total)"), named_as(key="k"))
>>> program = Program((s,), (sums, most))
>>> [(asked.query, asked.columns) for asked in asked_by(program, s, marked=True)]
[('sums', {'k': 'k'}), ('most', {'key': 'k'})]
>>> prods_text(s, ("k",), marked=True)
'SELECT `k` AS __g0, max(CAST(`t` AS BIGINT)) AS __hi, CAST(count(*) AS BIGINT) AS __n \
FROM eventide_batch_s WHERE COALESCE(`ask` AND `t` IS NOT NULL \
AND _malformed IS NULL, FALSE) GROUP BY `k` LIMIT 1001'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.instant import EDGE
from eventide.eventtime.policies.skew.between_streams import between_streams
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.plan.bound.query import BoundQuery, instant_sql, time_sql
from eventide.plan.declared.join import Join
from eventide.plan.declared.program import Program, streams_below
from eventide.plan.declared.query import Named, Query
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Stream
from eventide.plan.expressions.columns import WHOLE_NUMBERS, literal, quoted
from eventide.plan.expressions.parse import parsed
from eventide.plan.sql.portable import FRACTION, ValueKinds

MALFORMED = "_malformed"


def batch_view(stream: Stream) -> str:
    """The name under which a round's rows of a stream are known to SQL."""
    return f"eventide_batch_{stream.rows_of}"


def timed(stream: Stream, up_to: int | None = None) -> str:
    """A common table `timed`: the rows with `__t`, their time, NULL where they have none that can be used.

    Rows that are promises or prods are not among them, unless they have no usable time and say nothing by it.
    """
    time = time_sql(stream)
    only = [] if up_to is None else [f"({time} <= {up_to} OR {time} IS NULL OR {MALFORMED} IS NOT NULL)"]
    only += [f"NOT {marked_by(stream, mark)}" for mark in (stream.punctuation, stream.prods) if mark is not None]
    where = f" WHERE {' AND '.join(only)}" if only else ""
    return (
        f"WITH timed AS (SELECT *, CASE WHEN {_usable(stream)} THEN {time} END AS __t FROM {batch_view(stream)}{where})"
    )


def _usable(stream: Stream) -> str:
    """The condition under which the time of a row can be used; unknown, or met, where it has none."""
    usable = f"{MALFORMED} IS NULL"
    if stream.time is not None and stream.column(stream.time).type not in ("TINYINT", "SMALLINT", "INT", "DATE"):
        usable += f" AND {time_sql(stream)} BETWEEN -{EDGE} AND {EDGE}"
    if (bounded := bounded_sources(stream)) is not None:
        usable += f" AND {bounded}"
    return usable


def marked_by(stream: Stream, mark: str) -> str:
    """Whether a row is marked by a column, as a promise or prod, and has a time; never unknown."""
    assert stream.time is not None
    selected = f"{quoted(mark)} AND {quoted(stream.time)} IS NOT NULL"
    return f"COALESCE({selected} AND {_usable(stream)}, FALSE)"


def promises_text(stream: Stream) -> str:
    """The promises of a round: for each source (`__s0`, ...) the latest (`__hi`), how many there were (`__n`).

    Where they know when they arrived, also the largest arrival time (`__at`). Promises that begin somewhere are apart
    (`__from`), and so are those for ranges of a column of the source (`__low0`, `__high0`).
    """
    assert stream.punctuation is not None
    apart = {f"__s{j}": quoted(name) for j, name in enumerate(stream.source)}
    for name, low, high in stream.promised:
        if stream.time is not None and name.lower() == stream.time.lower():
            apart["__from"] = instant_sql(low, stream.column(low).type)
        else:
            place = [source.lower() for source in stream.source].index(name.lower())
            apart |= {f"__low{place}": quoted(low), f"__high{place}": quoted(high)}
    named = [f"{sql} AS {name}" for name, sql in apart.items()]
    by = f" GROUP BY {', '.join(apart.values())}" if apart else ""
    selected = [*named, f"max({time_sql(stream)}) AS __hi", "CAST(count(*) AS BIGINT) AS __n"]
    if stream.arrival is not None:
        selected.append(f"max({instant_sql(stream.arrival, stream.column(stream.arrival).type)}) AS __at")
    where = marked_by(stream, stream.punctuation)
    return f"SELECT {', '.join(selected)} FROM {batch_view(stream)} WHERE {where}{by} HAVING count(*) > 0"


def rejects_text(stream: Stream, beyond: int | None = None) -> str:
    """The rows that no query can take, each with the reason; with `beyond`, also those of later times.

    Malformed rows are rejected once, by the stream itself and not by its twins.
    """
    columns = ", ".join(quoted(column.name) for column in stream.columns)
    time = "TRUE" if stream.time is None else f"{quoted(stream.time)} IS NOT NULL"
    future = "" if beyond is None else f" OR __t > {beyond}"
    bounded = bounded_sources(stream)
    source = "" if bounded is None else f"WHEN NOT COALESCE({bounded}, FALSE) THEN '{NO_BOUNDS}' "
    reason = (
        f"CASE WHEN {MALFORMED} IS NOT NULL THEN 'malformed row' WHEN NOT ({time}) THEN 'no time' {source}"
        "WHEN __t IS NULL THEN 'time out of range' ELSE 'too far in the future' END"
    )
    whole = "" if stream.twin_of is None else f"{MALFORMED} IS NULL AND "
    unusable = f"{whole}(__t IS NULL{future})"
    return f"{timed(stream)} SELECT {columns}, {MALFORMED}, {reason} AS _reason FROM timed WHERE {unusable}"


NO_BOUNDS = "no bounds for its source"


def bounded_sources(stream: Stream) -> str | None:
    """The condition under which a row is of a source with bounds, unknown where it has none; None where all have.

    >>> from eventide.eventtime.policies.skew.per_source import distributed_sensors
    >>> from eventide.plan.expressions.columns import columns
    >>> policy = DeclaredSkew(distributed_sensors([1, 1], latency=[5, 5]))
    >>> declared = columns("ts TIMESTAMP, device STRING")
    >>> bounded_sources(Stream("s", declared, time="ts", source=("device",), policy=policy, known=("a", "it's")))
    "`device` IN ('a', 'it\\\\'s')"
    >>> bounded_sources(Stream("s", declared, time="ts", source=("device",), known=("a", "b"))) is None
    True
    """
    if not stream.known or len(stream.source) != 1 or not _has_bounds(stream.policy):
        return None
    between = between_streams(stream.policy)
    if between is not None and between.others is not None:
        return None
    column = stream.column(stream.source[0])
    if column.type != "STRING" and column.type not in WHOLE_NUMBERS:
        return None
    name = quoted(column.name) if column.type == "STRING" else f"CAST({quoted(column.name)} AS STRING)"
    return f"{name} IN ({_listed(stream.known)})"


@cache
def _listed(names: tuple[str, ...]) -> str:
    """Names as SQL writes them: hundreds would take milliseconds of every round."""
    return ", ".join(map(literal, names))


def _has_bounds(policy: Policy) -> bool:
    """Whether bounds are at the bottom of what wraps them."""
    inner = getattr(policy, "inner", None)
    return isinstance(policy, DeclaredSkew) or (inner is not None and _has_bounds(inner))


MOST = 1000
"""So many patterns of a round are kept apart; of more, one prod for every group takes the place."""


@dataclass(frozen=True)
class ProdTarget:
    """A query that rows of a stream ask, and which column of these names each of its groups."""

    query: str
    columns: Mapping[str, str]


def asked_by(program: Program, stream: Stream, marked: bool) -> tuple[ProdTarget, ...]:
    """Whom the rows of a stream ask: those `marked` as prods, or the others, for queries that take them for prods."""
    if marked:
        reading = [query for query in program.in_order if stream.name in streams_below(program, query.name)]
        return tuple(ProdTarget(query.name, _traced(program, query, stream)) for query in reading)
    own = {column.name.lower(): column.name for column in stream.columns}
    taking = [query for query in program.in_order if query.prods is not None and query.prods.by == stream.name]
    return tuple(
        ProdTarget(query.name, {g.name: own[g.name.lower()] for g in query.groups if g.name.lower() in own})
        for query in taking
    )


def check_patterns(program: Program, bound: BoundQuery) -> None:
    """Refuse a stream of prods that names a group by a column of another type: nothing would ever be equal to it."""
    by = None if bound.query.prods is None else bound.query.prods.by
    if by is None:
        return
    stream = program.stream(by)
    [asked] = [one for one in asked_by(program, stream, marked=False) if one.query == bound.query.name]
    for key in bound.keys:
        if (column := asked.columns.get(key.name)) is not None:
            kind = stream.column(column).type
            if kind != key.type and not {kind, key.type} <= set(WHOLE_NUMBERS):
                raise DeclarationError(
                    f"query {bound.query.name!r} is prodded by {by!r}, whose {column!r} is {kind}, and its group "
                    f"{key.name!r} is {key.type}: make them the same, or give one another name"
                )


def prods_text(stream: Stream, columns: tuple[str, ...], marked: bool) -> str:
    """The prods of a round: `__g0`, ... are these columns, `__hi` is the latest time, `__n` how many there are.

    One row more than `MOST` at most: who gets that many asks again, without columns.
    """
    named = [f"{quoted(name)} AS __g{j}" for j, name in enumerate(columns)]
    by = f" GROUP BY {', '.join(map(quoted, columns))} LIMIT {MOST + 1}" if columns else " HAVING count(*) > 0"
    if marked:
        assert stream.prods is not None
        selected = ", ".join([*named, f"max({time_sql(stream)}) AS __hi", "CAST(count(*) AS BIGINT) AS __n"])
        return f"SELECT {selected} FROM {batch_view(stream)} WHERE {marked_by(stream, stream.prods)}{by}"
    selected = ", ".join([*named, "max(__t) AS __hi", "CAST(count(*) AS BIGINT) AS __n"])
    return f"{timed(stream)} SELECT {selected} FROM timed WHERE __t IS NOT NULL{by}"


def patterns_portable(stream: Stream, columns: tuple[str, ...]) -> bool:
    """Whether any engine tells these patterns alike (see `plan.plain`)."""
    kinds = ValueKinds(stream)
    return all(kinds.of(exp.column(name)) not in (None, FRACTION) for name in columns)


def _traced(program: Program, query: Query, stream: Stream) -> dict[str, str]:
    found = {group.name: _origin(program, query.name, group.name, stream) for group in query.groups}
    return {name: column for name, column in found.items() if column is not None}


def _origin(program: Program, name: str, column: str, stream: Stream) -> str | None:
    """The column of a stream that is this column of what a query, operator or stream tells; None where none is."""
    if name == stream.name:
        return next((one.name for one in stream.columns if one.name.lower() == column.lower()), None)
    step = next((step for step in program.steps if step.name == name), None)
    if isinstance(step, Query):
        below = _named(step.groups, column)
        return None if below is None else _origin(program, step.stream, below[-1], stream)
    if isinstance(step, Rows):
        parts = _named(step.select, column) if step.select else [column]
        ways = [] if parts is None else [(one, parts[-1]) for one in step.inputs]
    elif step is not None:
        sides = (step.left, step.right) if isinstance(step, Join) else (step.rows, step.versions)
        parts = _named(step.select, column)
        alias = parts[0].lower() if parts is not None and len(parts) == 2 else None
        ways = [(side.input, parts[-1]) for side in sides if parts is not None and side.alias.lower() == alias]
    else:
        ways = []
    return next((found for way in ways if (found := _origin(program, *way, stream)) is not None), None)


def _named(select: tuple[Named, ...], column: str) -> list[str] | None:
    """The parts of the plain column that is selected under a name, with its alias where it has one."""
    for item in select:
        if item.name.lower() == column.lower():
            tree = parsed(item.sql, f"the column {item.name!r}")
            if isinstance(tree, exp.Column) and not isinstance(tree.this, exp.Star) and len(tree.parts) <= 2:
                return [part.name for part in tree.parts]
            return None
    return None
