"""Answers of the merge as results: what a window is called, when it was closed, in which round.

>>> answer = pa.table({"window_end": [10], "rows": [2], "n": [2]})
>>> numbers = [(name, pa.int64()) for name in ("window_end", "heartbeat", "n")]
>>> schema = pa.schema([("kind", pa.string()), *numbers])
>>> result_table("q", Kind.FINAL, 7, 12, schema, answer).to_pylist()
[{'kind': 'final', 'window_end': 10, 'heartbeat': 12, 'n': 2}]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from eventide.engine.arrow_types import arrow_type
from eventide.engine.operator_run import BoundOperator
from eventide.engine.taken import Answers
from eventide.plan.bound import Bound
from eventide.plan.columns import Column
from eventide.plan.derived import WINDOW_END
from eventide.plan.stream import TimeKind
from eventide.results.results import Kind, Results

TIMES = {TimeKind.TIMESTAMP: pa.timestamp("us", "UTC"), TimeKind.DATE: pa.timestamp("us", "UTC")}


def time_type(kind: TimeKind) -> pa.DataType:
    """How times of a kind are shown."""
    return TIMES.get(kind, pa.int64())


def output_schema(query: Bound) -> pa.Schema:
    """The user's columns of a result."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in query.outputs])


def result_schema(query: Bound) -> pa.Schema:
    """All columns of a result."""
    return _with_fixed(time_type(query.window_kind), time_type(query.stream.time_kind), query.outputs)


def operator_schema(operator: BoundOperator) -> pa.Schema:
    """All columns of an operator's rows, which have a span in the place of a window."""
    edge = arrow_type(operator.results.column(WINDOW_END).type)
    return _with_fixed(edge, edge, operator.outputs)


def _with_fixed(edge: pa.DataType, heartbeat: pa.DataType, outputs: Iterable[Column]) -> pa.Schema:
    fixed = [
        ("query", pa.string()),
        ("kind", pa.string()),
        ("window_start", edge),
        ("window_end", edge),
        ("round", pa.int64()),
        ("rows", pa.int64()),
        ("heartbeat", heartbeat),
    ]
    return pa.schema([*fixed, *((column.name, arrow_type(column.type)) for column in outputs)])


def nothing(query: Bound) -> pa.Table:
    """The answer of a query that has nothing to say."""
    fields = [("window_start", pa.int64()), ("window_end", pa.int64()), ("rows", pa.int64())]
    return pa.schema([*fields, *output_schema(query), ("__lost", pa.string())]).empty_table()


def results_of(name: str, schema: pa.Schema, round: int, heartbeat: int | None, answers: Answers) -> Results:
    """The answers of a round as results; `heartbeat` None says that what it reads has ended."""
    both = ((Kind.FINAL, answers.final), (Kind.REVISED, answers.revised))

    def batches() -> Iterator[pa.RecordBatch]:
        for kind, answer in both:
            for part in answer.parts() if answer.rows else ():
                yield from result_table(name, kind, round, heartbeat, schema, part).to_batches()

    return Results(name, round, answers.final.rows + answers.revised.rows, schema, batches)


def result_table(
    name: str, kind: Kind, round: int, heartbeat: int | None, schema: pa.Schema, answer: pa.Table
) -> pa.Table:
    """Part of an answer with the columns that every result has."""
    count = answer.num_rows
    told = {"query": name, "kind": kind.value, "round": round, "heartbeat": heartbeat}
    if "heartbeat" in answer.column_names:
        # Each result was closed by the heartbeat of its own source.
        del told["heartbeat"]
    columns = []
    for field in schema:
        if field.name in told:
            plain = pa.int64() if field.name == "heartbeat" else field.type
            columns.append(pa.repeat(pa.scalar(told[field.name], plain).cast(field.type), count))
        else:
            columns.append(answer.column(field.name).cast(field.type))
    return pa.table(columns, schema=schema)
