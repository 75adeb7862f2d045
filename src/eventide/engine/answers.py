"""Answers of the merge as results: what a window is called, when it was closed, in which round.

>>> answer = pa.table({"window_start": [0], "window_end": [10], "rows": [2], "n": [2], "__lost": pa.nulls(1, pa.string())})
>>> schema = pa.schema([("n", pa.int64())])
>>> result_table("q", Kind.FINAL, 7, 12, TimeKind.SEQUENCE, schema, answer).to_pylist()
[{'query': 'q', 'kind': 'final', 'window_start': 0, 'window_end': 10, 'round': 7, 'rows': 2, 'heartbeat': 12, 'n': 2}]
"""

from __future__ import annotations

import pyarrow as pa

from eventide.engine.arrow_types import arrow_type
from eventide.plan.bound import Bound
from eventide.plan.stream import TimeKind
from eventide.plan.window import RowWindow
from eventide.results.results import Kind

TIMES = {TimeKind.TIMESTAMP: pa.timestamp("us", "UTC"), TimeKind.DATE: pa.timestamp("us", "UTC")}


def time_type(kind: TimeKind) -> pa.DataType:
    """How times of a kind are shown."""
    return TIMES.get(kind, pa.int64())


def window_kind(query: Bound) -> TimeKind:
    """What the edges of a query's windows are: times, or numbers of rows."""
    return TimeKind.SEQUENCE if isinstance(query.query.window, RowWindow) else query.stream.time_kind


def output_schema(query: Bound) -> pa.Schema:
    """The user's columns of a result."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in query.outputs])


def result_schema(query: Bound) -> pa.Schema:
    """All columns of a result."""
    edge = time_type(window_kind(query))
    fixed = [
        ("query", pa.string()),
        ("kind", pa.string()),
        ("window_start", edge),
        ("window_end", edge),
        ("round", pa.int64()),
        ("rows", pa.int64()),
        ("heartbeat", time_type(query.stream.time_kind)),
    ]
    return pa.schema([*fixed, *output_schema(query)])


def nothing(query: Bound) -> pa.Table:
    """The answer of a query that has nothing to say."""
    fields = [("window_start", pa.int64()), ("window_end", pa.int64()), ("rows", pa.int64())]
    return pa.schema([*fields, *output_schema(query), ("__lost", pa.string())]).empty_table()


def result_table(
    name: str,
    kind: Kind,
    round: int,
    heartbeat: int | None,
    times: TimeKind,
    outputs: pa.Schema,
    answer: pa.Table,
    heartbeats: TimeKind | None = None,
) -> pa.Table:
    """An answer with the columns that every result has; `heartbeat` None says that the stream has ended."""
    count = answer.num_rows
    edge = time_type(times)
    beat = time_type(heartbeats or times)
    columns = {
        "query": pa.repeat(pa.scalar(name, pa.string()), count),
        "kind": pa.repeat(pa.scalar(kind.value, pa.string()), count),
        "window_start": answer.column("window_start").cast(edge),
        "window_end": answer.column("window_end").cast(edge),
        "round": pa.repeat(pa.scalar(round, pa.int64()), count),
        "rows": answer.column("rows").cast(pa.int64()),
        "heartbeat": pa.repeat(pa.scalar(heartbeat, pa.int64()).cast(beat), count),
    }
    for field in outputs:
        columns[field.name] = answer.column(field.name).cast(field.type)
    return pa.table(columns)
