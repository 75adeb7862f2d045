"""Rows that are prods, or that are taken for prods: which queries each asks, and how they are collected.

Laws. A row that its stream marks as a prod (`Stream.prods`) asks every query that reads the stream, however long the
way; a row of a stream that a query names (`Prods.by`) asks that query. It asks for the windows up to its time, in the
groups that its columns name: NULL, like a group that is no plain column of the stream, stands for any. What a round has
of them is told by one statement, one row for each pattern of groups with the latest time: whoever is asked up to that
has been asked for all before. (Prodding thesis, section 3.2, figure 3.2 (b) and (a).)

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

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.plan.bound.query import BoundQuery, time_sql
from eventide.plan.declared.join import Join
from eventide.plan.declared.program import Program, streams_below
from eventide.plan.declared.query import Named, Query
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Stream
from eventide.plan.expressions.columns import WHOLE_NUMBERS, quoted
from eventide.plan.expressions.parse import parsed
from eventide.plan.sql.portable import FRACTION, Kinds
from eventide.plan.sql.reduce import batch_view, marked_by, timed

MOST = 1000
"""So many patterns of a round are told apart; of more, one prod for every group takes the place."""


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
    kinds = Kinds(stream)
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
    """The parts of the plain column that is told under a name, with its alias where it has one."""
    for item in select:
        if item.name.lower() == column.lower():
            tree = parsed(item.sql, f"the column {item.name!r}")
            if isinstance(tree, exp.Column) and not isinstance(tree.this, exp.Star) and len(tree.parts) <= 2:
                return [part.name for part in tree.parts]
            return None
    return None
