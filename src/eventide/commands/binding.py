"""The queries of a program bound without an engine: types are asked of the local backend, so that no JVM is needed.

Law: every query is bound or has a reason why not. The reason may be that only Spark knows (`only_spark`): a function
that the local backend does not have, or a query below of which that is true.

>>> from eventide.plan.query import Query, named_as
>>> from eventide.plan.stream import Stream, columns
>>> from eventide.plan.window import Window
>>> s = Stream("s", columns("t BIGINT, v INT"), time="t")
>>> queries = (Query("q", "s", Window(10), named_as(n="sum(v)")), Query("r", "s", Window(10), named_as(n="sum(f(v))")))
>>> found = bound_queries(Program((s,), queries))
>>> found["q"].types, found["r"].only_spark
(('BIGINT',), True)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eventide.commands.functions import local_backend
from eventide.engine.local_backend import LocalBackend
from eventide.errors import DeclarationError
from eventide.language.script import Function
from eventide.plan.bound import Bound, bind
from eventide.plan.program import Program
from eventide.plan.query import Query
from eventide.plan.stream import Stream


@dataclass(frozen=True)
class Unbound:
    """Why a query could not be bound."""

    reason: str
    only_spark: bool


def bound_queries(program: Program, functions: Sequence[Function] = ()) -> dict[str, Bound | Unbound]:
    """All of them, by name, each after the one it reads; `functions` are the user's."""
    backend = local_backend(functions, run=False)
    found: dict[str, Bound | Unbound] = {}
    try:
        for stream in program.streams:
            backend.declare(stream)
        for query in program.in_order:
            found[query.name] = _bound(backend, program, query, found)
        return found
    finally:
        backend.close()


def _bound(backend: LocalBackend, program: Program, query: Query, found: dict[str, Bound | Unbound]) -> Bound | Unbound:
    below = program.below(query)
    stream: Stream
    if below is None:
        stream = program.stream(query.stream)
    else:
        read = found[below.name]
        if isinstance(read, Unbound):
            return Unbound(f"it reads query {below.name!r}", True)
        stream = read.results
        backend.declare(stream)
    unknown = False

    def type_of(sql: str) -> str:
        nonlocal unknown
        try:
            return backend.type_of(stream, sql)
        except DeclarationError:
            unknown = True
            raise

    try:
        return bind(query, stream, type_of)
    except DeclarationError as error:
        return Unbound(str(error), unknown)
