"""A program described as plain data: what `explain` shows, as a tree or as JSON.

Law: nothing runs. Types are found with the local backend, so that no JVM is needed; a query with a function that only
Spark has is described as far as that goes, and it is said.

>>> from eventide.plan.query import Query, named_as
>>> from eventide.plan.stream import Stream, columns
>>> from eventide.plan.window import Window
>>> s = Stream("s", columns("t BIGINT, v INT"), time="t")
>>> found = described(Program((s,), (Query("q", "s", Window(60, 20), named_as(total="sum(v)")),)))
>>> found["queries"][0]["window"]["panes"], found["queries"][0]["slices"]["keep"]
('each window is 3 panes of 20', 'partials')
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlglot
from sqlglot.errors import SqlglotError

from eventide.commands.policy_words import in_words
from eventide.engine.local_backend import LocalBackend
from eventide.engine.placement import DRIVER_BYTES
from eventide.engine.reduction import Reducer
from eventide.errors import DeclarationError
from eventide.plan.bound import HAVING, Bound, bind
from eventide.plan.merge_text import merge_text
from eventide.plan.program import Program
from eventide.plan.query import Query
from eventide.plan.reduce_text import kept_text
from eventide.plan.spark_grammar import SPARK
from eventide.plan.stream import Input, Stream, TimeKind, Timestamps
from eventide.plan.window import RowWindow
from eventide.profile.amounts import spoken

TIMES = {
    Timestamps.INTERNAL: "the clock of the round in which a row arrives",
    Timestamps.LATENT: "none until an operator needs one, which then takes its clock",
}


def described(program: Program, outputs: Mapping[str, str] | None = None) -> dict[str, Any]:
    """All streams and queries; `outputs` says in words where the results of a query go."""
    backend = LocalBackend()
    try:
        for stream in program.streams:
            backend.declare(stream)
        bound: dict[str, Bound | str] = {}
        for query in program.queries:
            bound[query.name] = _bound(backend, program, query)
        return {
            "streams": [_stream(stream, program, bound) for stream in program.streams],
            "queries": [
                _query(query, program.stream(query.stream), bound[query.name], (outputs or {}).get(query.name))
                for query in program.queries
            ],
        }
    finally:
        backend.close()


def _bound(backend: LocalBackend, program: Program, query: Query) -> Bound | str:
    stream = program.stream(query.stream)
    try:
        return bind(query, stream, lambda sql: backend.type_of(stream, sql))
    except DeclarationError as error:
        return str(error)


def _stream(stream: Stream, program: Program, bound: Mapping[str, Bound | str]) -> dict[str, Any]:
    plain = stream.time_kind is TimeKind.SEQUENCE
    known = [found for q in program.of_stream(stream.name) if isinstance(found := bound[q.name], Bound)]
    time = TIMES.get(stream.timestamps)
    return {
        "name": stream.name,
        "columns": {column.name: column.type for column in stream.columns},
        "input": None if stream.input is None else _input(stream.input),
        "time": time or f"column {stream.time} ({stream.time_kind.value})",
        "source": list(stream.source),
        "arrival": stream.arrival,
        "policy": in_words(stream.policy, plain) if stream.timestamps is Timestamps.EXTERNAL else "the clock",
        "future": None if stream.future is None else _future(stream, plain),
        "reduce": _pretty(Reducer.of(stream, known).text.sql) if known else None,
    }


def _input(given: Input) -> dict[str, Any]:
    limits = {"max_files": given.max_files, "max_offsets": given.max_offsets, "max_rows": given.max_rows}
    told = {"format": given.format, "path": given.path, "options": dict(given.options)}
    return told | {name: limit for name, limit in limits.items() if limit is not None}


def _future(stream: Stream, plain: bool) -> str:
    assert stream.future is not None
    fate = "are rejected" if stream.future.reject else "wait for their window and do not move time"
    return f"rows more than {spoken(stream.future.ahead, plain)} ahead of the clock {fate}"


def _query(query: Query, stream: Stream, bound: Bound | str, output: str | None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "name": query.name,
        "stream": query.stream,
        "window": _window(query, stream),
        "where": query.where,
        "having": query.having,
        "retain": query.retain or None,
        "output": output,
    }
    if isinstance(bound, str):
        groups = [{"name": group.name, "sql": group.sql} for group in query.groups]
        values = [{"name": value.name, "sql": value.sql} for value in query.select]
        only = f"only Spark can tell more: {bound}"
        return told | {"groups": groups, "values": values, "slices": None, "merge": None, "note": only}
    return told | {
        "groups": [{"name": key.name, "sql": key.sql, "type": key.type} for key in bound.keys],
        "values": [
            {"name": value.name, "sql": _selected(query, value.name), "type": kind}
            for value, kind in zip(bound.values, bound.types, strict=True)
            if value.name != HAVING
        ],
        "slices": _slices(bound),
        "merge": _merge(bound),
        "note": None,
    }


def _selected(query: Query, name: str) -> str:
    return next(item.sql for item in query.select if item.name == name)


def _window(query: Query, stream: Stream) -> dict[str, Any]:
    window = query.window
    if isinstance(window, RowWindow):
        words = f"the last {window.range:,} rows in the order of time, every {window.slide:,} rows"
        return {"range": window.range, "slide": window.slide, "unit": "rows", "words": words, "panes": None}
    plain = stream.time_kind is TimeKind.SEQUENCE

    def length(amount: int) -> str:
        return spoken(amount, plain)

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
        "unit": "numbers" if plain else "microseconds",
        "words": shape,
        "panes": panes,
    }


def _slices(bound: Bound) -> dict[str, Any]:
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
    words = f"partials, for each pane and group: {', '.join(kept)}"
    return {"keep": "partials", "words": words, "partials": partials}


def _merge(bound: Bound) -> dict[str, Any]:
    limit = f"{DRIVER_BYTES // 2**20} MiB"
    if isinstance(bound.query.window, RowWindow):
        place = "the driver, in DuckDB"
    elif bound.driver_exact:
        place = f"the driver, in DuckDB; as a Spark job over Parquet once the slices are above {limit}"
    else:
        place = f"Spark, since DuckDB would give other digits; over Parquet once the slices are above {limit}"
    return {"place": place, "sql": _pretty(merge_text(bound, "slices", "windows"))}


def _pretty(sql: str) -> str:
    try:
        return sqlglot.parse_one(sql, read=SPARK).sql(SPARK, pretty=True)
    except SqlglotError:
        return sql
