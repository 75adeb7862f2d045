"""A program described as plain data, bound without an engine.

Law: nothing runs. Types are found with the local backend, so that no JVM is needed; a query with a function that only
Spark has is described as far as that goes, and it is said.

>>> from eventide.plan.declared.query import Query, named_as
>>> from eventide.plan.declared.stream import Stream, columns
>>> from eventide.plan.declared.window import Window
>>> s = Stream("s", columns("t BIGINT, v INT"), time="t")
>>> found = described(Program((s,), (Query("q", "s", Window(60, 20), named_as(total="sum(v)")),)))
>>> found["queries"][0]["window"]["panes"], found["queries"][0]["slices"]["keep"]
('each window is 3 panes of 20', 'partials')

*Binding.* Queries and operators are bound without an engine: types are asked of the local backend, without a JVM. Every
query and operator is bound or has a reason why not. The reason may be that only Spark knows (`only_spark`): a function
that the local backend does not have, or a query below of which that is true.

>>> from eventide.plan.declared.query import Query, named_as
>>> from eventide.plan.declared.stream import Stream, columns
>>> from eventide.plan.declared.window import Window
>>> s = Stream("s", columns("t BIGINT, v INT"), time="t")
>>> queries = (Query("q", "s", Window(10), named_as(n="sum(v)")), Query("r", "s", Window(10), named_as(n="sum(f(v))")))
>>> found = bound_steps(Program((s,), queries))
>>> found.queries["q"].types, found.unbound["r"].only_spark
(('BIGINT',), True)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot.errors import SqlglotError

from eventide.engine.local.backend import LocalBackend
from eventide.engine.operators.placement import DRIVER_MEMORY
from eventide.engine.round.reduce import Reducer
from eventide.errors import DeclarationError
from eventide.language.script import Function
from eventide.launch.user_functions import local_backend
from eventide.masking import masked_text
from eventide.plan.binding import BoundOperator, BoundProgram, running
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.program import Operator, Program, reads
from eventide.plan.declared.query import Prods, Query
from eventide.plan.declared.secrets import masked
from eventide.plan.declared.stream import Input, Stream, TimeKind, Timestamps
from eventide.plan.declared.window import GrowingWindow, LifeWindow, RowWindow, SameWindow, SessionWindow
from eventide.plan.expressions.spark_dialect import SPARK
from eventide.plan.sql.merge import merge_text
from eventide.plan.sql.reduce import kept_text
from eventide.plan.sql.sessions import final_text
from eventide.profile.amounts import size_words, spoken
from eventide.report.operators import attributes, described_operator, in_words, is_same_in, of_stream
from eventide.report.prods import in_words as prods_in_words


@dataclass(frozen=True)
class Unbound:
    """Why a query or operator could not be bound."""

    reason: str
    only_spark: bool


@dataclass(frozen=True)
class BoundSteps:
    """What is bound, by name, the ways between them, and what is not bound."""

    plan: BoundProgram
    merges: Mapping[str, BoundOperator]
    """Plain merges that do not run: whoever reads them reads their inputs."""

    unbound: Mapping[str, Unbound] = field(default_factory=dict)

    @property
    def queries(self) -> Mapping[str, BoundQuery]:
        """The queries that are bound."""
        return self.plan.queries

    def operator(self, name: str) -> BoundOperator | None:
        """The operator of that name, if it is bound."""
        return self.plan.operators.get(name) or self.merges.get(name)

    def ways_from(self, name: str) -> list[BoundQuery]:
        """Where the rows of a stream, query or operator go."""
        return [way.bound for way in self.plan.ways_from(name)]


def bound_steps(program: Program, functions: Sequence[Function] = (), with_results: Collection[str] = ()) -> BoundSteps:
    """All of them, each after what it reads; `functions` are the user's, `with_results` are read by somebody."""
    backend = local_backend(functions, run=False)
    unbound: dict[str, Unbound] = {}
    merges: dict[str, BoundOperator] = {}
    try:
        for stream in program.streams:
            backend.declare(stream)
        whole, run = BoundProgram(program), running(program, with_results)
        for step in program.steps:
            if (below := next((read for read in reads(step) if read in unbound), None)) is not None:
                unbound[step.name] = Unbound(f"it reads query {below!r}", True)
                continue
            lookup = _TypeLookup(backend)
            try:
                found = whole.with_step(step, lookup)
            except DeclarationError as error:
                unbound[step.name] = Unbound(str(error), lookup.unknown)
                continue
            if isinstance(step, Query) or step.name in run:
                whole = found
            else:
                merges[step.name] = found.operators[step.name]
        return BoundSteps(whole, merges, unbound)
    finally:
        backend.close()


@dataclass
class _TypeLookup:
    """Asks for types, and knows whether one was not known."""

    backend: LocalBackend
    unknown: bool = False

    def declare(self, stream: Stream) -> None:
        self.backend.declare(stream)

    def type_of(self, stream: Stream, sql: str) -> str:
        try:
            return self.backend.type_of(stream, sql)
        except DeclarationError:
            self.unknown = True
            raise

    def types_of(self, stream: Stream, several: Sequence[str]) -> list[str]:
        return self.backend.types_of(stream, several)


TIMES = {
    Timestamps.INTERNAL: "the clock of the round in which a row arrives",
    Timestamps.LATENT: "none until an operator needs one, which then takes its clock",
}


def described(
    program: Program,
    outputs: Mapping[str, str] | None = None,
    functions: Sequence[Function] = (),
    memory: int | None = DRIVER_MEMORY,
) -> dict[str, Any]:
    """All streams, queries and operators; `outputs` says in words where the results of a query go.

    `memory` is the budget of state that stays with the driver, None where there is no cluster.
    """
    places = dict(outputs or {})
    bound = bound_steps(program, functions, places)
    return {
        "streams": [_stream(stream, _reduced(stream, program, bound)) for stream in program.streams],
        "queries": [
            _query(query, _found(query, bound), bound.ways_from(query.name), places.get(query.name), memory)
            | {"closes": closing_words(query, program), "by_source": query.by_source}
            for query in program.in_order
        ],
        "operators": [_operator(step, bound, places) for step in program.steps if not isinstance(step, Query)],
        "driver_memory": {"bytes": memory, "words": budget_words(memory)},
    }


def budget_words(size: int | None) -> str:
    """What a budget means; None where there is no cluster.

    >>> budget_words(0), budget_words(None)
    ('nothing stays with the driver: the state of every operator is on the cluster', 'all state is with this process')
    >>> budget_words(2**28)
    'up to 256 MiB of state stay with the driver, of all operators together; above, the largest goes to the cluster'
    """
    if size is None:
        return "all state is with this process"
    if size == 0:
        return "nothing stays with the driver: the state of every operator is on the cluster"
    return (
        f"up to {size_words(size)} of state stay with the driver, of all operators together; above, the largest goes "
        "to the cluster"
    )


def _found(query: Query, bound: BoundSteps) -> BoundQuery | Unbound:
    return bound.queries[query.name] if query.name in bound.queries else bound.unbound[query.name]


def _operator(operator: Operator, bound: BoundSteps, places: Mapping[str, str]) -> dict[str, Any]:
    name, found = operator.name, bound.operator(operator.name)
    why = bound.unbound[name].reason if name in bound.unbound else None
    description = described_operator(operator, found, why, name in bound.plan.operators)
    readers = bound.ways_from(name)
    reduce = _pretty(Reducer.of(found.results, readers).text.sql) if readers and found is not None else None
    return description | {"output": places.get(name), "reduce": reduce}


def _reduced(stream: Stream, program: Program, bound: BoundSteps) -> list[BoundQuery]:
    """Whose slices the statement of a stream makes: also those of its twins, which then have none of their own."""
    together = next(group for group in program.reduced_together if stream in group)
    return [way for one in together for way in bound.ways_from(one.name)] if stream == together[0] else []


def _stream(stream: Stream, readers: list[BoundQuery]) -> dict[str, Any]:
    unitless = stream.time_kind is TimeKind.SEQUENCE
    time = TIMES.get(stream.timestamps)
    return {
        "name": stream.name,
        "columns": {column.name: column.type for column in stream.columns},
        **({"computed": dict(stream.computed)} if stream.computed else {}),
        **({"twin_of": stream.twin_of} if stream.twin_of is not None else {}),
        "input": None if stream.input is None else _input(stream.input),
        "time": time or f"column {stream.time} ({stream.time_kind.value})",
        "temporal": of_stream(stream),
        "source": list(stream.source),
        "arrival": stream.arrival,
        "punctuation": stream.punctuation,
        **({"promised": [list(one) for one in stream.promised]} if stream.promised else {}),
        "prods": stream.prods,
        "policy": in_words(stream.policy, unitless) if stream.timestamps is Timestamps.EXTERNAL else "the clock",
        "future": None if stream.future is None else _future(stream, unitless),
        "reduce": _pretty(Reducer.of(stream, readers).text.sql) if readers else None,
    }


def _input(given: Input) -> dict[str, Any]:
    limits = {"max_files": given.max_files, "max_offsets": given.max_offsets, "max_rows": given.max_rows}
    path = None if given.path is None else masked_text(given.path)
    description: dict[str, Any] = {"format": given.format, "path": path, "options": masked(dict(given.options))}
    return description | {name: limit for name, limit in limits.items() if limit is not None}


def _future(stream: Stream, unitless: bool) -> str:
    assert stream.future is not None
    fate = "are rejected" if stream.future.reject else "wait for their window and do not move time"
    return f"rows more than {spoken(stream.future.ahead, unitless)} ahead of the clock {fate}"


def _query(
    query: Query, bound: BoundQuery | Unbound, readers: list[BoundQuery], output: str | None, memory: int | None
) -> dict[str, Any]:
    description: dict[str, Any] = {
        "name": query.name,
        "reads": query.stream,
        "window": _window(query, bound),
        "where": query.where,
        "having": query.having,
        "order": [f"{item.sql} {item.direction}" for item in query.order],
        "limit": query.limit,
        "sample": query.sample,
        "retain": query.retain or None,
        "changes": query.changes,
        "prods": None if query.prods is None else _prods(query.prods, bound),
        "output": output,
    }
    if isinstance(bound, Unbound):
        groups = [{"name": group.name, "sql": group.sql} for group in query.groups]
        values = [{"name": value.name, "sql": value.sql} for value in query.select]
        note = f"only Spark can tell more: {bound.reason}"
        nothing: dict[str, Any] = {"slices": None, "merge": None, "reduce": None, "temporal": []}
        return description | {"groups": groups, "values": values, "note": note} | nothing
    types = {column.name: column.type for column in bound.outputs}
    return description | {
        "groups": [{"name": key.name, "sql": key.sql, "type": key.type} for key in bound.keys],
        "values": [{"name": item.name, "sql": item.sql, "type": types[item.name]} for item in query.select],
        "temporal": _temporal(bound),
        "slices": _slices(bound),
        "merge": _merge(bound, memory),
        "reduce": _pretty(Reducer.of(bound.results, readers).text.sql) if readers else None,
        "note": None,
    }


def closing_words(query: Query, program: Program) -> str:
    """With what the windows of a query close, and what keeps it from closing source by source."""
    if query.by_source:
        return "source by source: each group with the heartbeat of its own source"
    if program.below(query) is not None:
        return f"with what {query.stream} has promised"
    reason = program.not_by_source(query)
    if reason is None:
        return "with the heartbeat of all sources together; it could close source by source (CLOSE BY SOURCE)"
    return f"with the heartbeat of all sources together; it cannot close source by source: {reason}"


def _prods(prods: Prods, bound: BoundQuery | Unbound) -> str:
    unitless = isinstance(bound, BoundQuery) and bound.stream.time_kind is TimeKind.SEQUENCE
    return prods_in_words(prods, lambda amount: spoken(amount, unitless))


def _window(query: Query, bound: BoundQuery | Unbound) -> dict[str, Any]:
    window = query.window
    if isinstance(window, RowWindow):
        words = f"the last {window.range:,} rows in the order of time, every {window.slide:,} rows"
        return {"range": window.range, "slide": window.slide, "unit": "rows", "words": words, "panes": None}
    if isinstance(window, SameWindow):
        return {"words": f"those of {query.stream}, each once more", "panes": None}
    unitless = isinstance(bound, BoundQuery) and bound.window_kind is TimeKind.SEQUENCE
    if isinstance(window, LifeWindow):
        how_long = "for ever" if window.endless else f"until {spoken(window.gap, unitless)} after its last row"
        ttl = None if window.endless else window.gap
        unit = "numbers" if unitless else "microseconds"
        return {"ttl": ttl, "unit": unit, "words": f"none: the state of a group lives {how_long}", "panes": None}
    if isinstance(window, SessionWindow):
        gap = spoken(window.gap, unitless) if window.by is None else f"a gap of their own, {window.by},"
        words = f"sessions: rows of a group with {gap} or less from one to the next"
        unit = "numbers" if unitless else "microseconds"
        return {"gap": window.gap or None, "gap_by": window.by, "unit": unit, "words": words, "panes": None}

    def length(amount: int) -> str:
        return spoken(amount, unitless)

    if isinstance(window, GrowingWindow):
        words = f"one every {length(window.range)}, which grows to that by {length(window.slide)}"
        unit = "numbers" if unitless else "microseconds"
        return {"range": window.range, "step": window.slide, "offset": window.offset, "unit": unit, "words": words} | {
            "panes": f"each window is panes of {length(window.pane)}"
        }
    shape = f"{length(window.range)} long, one every {length(window.slide)}"
    shape = f"{length(window.range)} long, one after the other" if window.slide == window.range else shape
    shape += f", offset {length(window.offset)}" if window.offset else ""
    shape += ", also those without rows" if window.empty else ""
    count = window.range // window.pane
    panes = "each window is one pane" if count == 1 else f"each window is {count:,} panes of {length(window.pane)}"
    return {
        "range": window.range,
        "slide": window.slide,
        "offset": window.offset,
        "pane": window.pane,
        "unit": "numbers" if unitless else "microseconds",
        "words": shape,
        "panes": panes,
    }


def _temporal(bound: BoundQuery) -> list[dict[str, Any]]:
    """The groups that carry time: one that changes inside a window is known from the start of the first open one on."""
    window = bound.query.window
    if isinstance(window, RowWindow | SessionWindow):
        return []
    keys = [(key.name, key.sql) for key in bound.keys]
    exact = attributes(keys, bound.stream)
    if isinstance(window, SameWindow):
        return exact
    back = spoken(window.range, bound.window_kind is TimeKind.SEQUENCE)
    loose = attributes(keys, bound.stream, f"h - {back}")
    both = zip(exact, loose, strict=True)
    return [one if is_same_in(window, one["sql"], bound.stream) else other for one, other in both]


def _slices(bound: BoundQuery) -> dict[str, Any]:
    if bound.keeps_rows:
        row = ", ".join(column.name for column in bound.kept)
        why = "rows of a window are counted" if isinstance(bound.query.window, RowWindow) else "an aggregate needs them"
        return {
            "keep": "rows",
            "words": f"the rows themselves ({row}), since {why}",
            "columns": [column.name for column in bound.kept],
            "reduce": _pretty(kept_text(bound)),
        }
    partials = [{"name": p.name, "type": p.type, "reduce": p.reduce, "merge": p.merge} for p in bound.partials]
    kept = ["the number of rows", *(p.reduce for p in bound.partials)]
    window = bound.query.window
    each = f"stretch of a {window.noun}" if isinstance(window, SessionWindow) else "pane and group"
    words = f"partials, for each {each}: {', '.join(kept)}"
    return {"keep": "partials", "words": words, "partials": partials}


def _merge(bound: BoundQuery, memory: int | None) -> dict[str, Any]:
    on_cluster = "as a Spark job over Parquet where its slices are on the cluster"
    if memory is None:
        place = "this machine, in DuckDB"
    elif memory == 0:
        place = "the cluster, as a Spark job over Parquet"
    elif bound.driver_exact:
        place = f"the driver, in DuckDB; {on_cluster}"
    else:
        place = f"Spark, since DuckDB would give other digits; {on_cluster}"
    by_source = bound.query.by_source
    sql = final_text(bound) if bound.of_sessions else merge_text(bound, "slices", "windows", by_source=by_source)
    return {"place": place, "sql": _pretty(sql)}


def _pretty(sql: str) -> str:
    try:
        return sqlglot.parse_one(sql, read=SPARK).sql(SPARK, pretty=True)
    except SqlglotError:
        return sql
