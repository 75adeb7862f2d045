"""Queries that are asked by the rows of their own streams.

Law: a query that reads a stream with prods among its rows, directly or through other queries and operators, is asked by
them; it is a query that declares prods, whatever else it declares, and its results have the columns of early answers.

>>> from eventide.plan.columns import columns
>>> from eventide.plan.program import Program
>>> from eventide.plan.query import named_as
>>> from eventide.plan.stream import Stream
>>> from eventide.plan.window import Window
>>> s = Stream("s", columns("t BIGINT, v INT, ask BOOLEAN"), time="t", prods="ask")
>>> sums, most = (Query(name, reads, Window(10), named_as(n="count(*)")) for name, reads in (("q", "s"), ("up", "q")))
>>> [query.prods.in_stream for query in Program((s,), (sums, most)).queries]
[True, True]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from eventide.errors import DeclarationError
from eventide.plan.columns import nearest_of
from eventide.plan.prods import Prods
from eventide.plan.query import Query
from eventide.plan.stream import TimeKind

if TYPE_CHECKING:
    from eventide.plan.program import Operator, Program


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
