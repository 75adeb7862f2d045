"""What operators emit as results: what a window is called, when it was closed, in which round.

Law: what a result shows does not depend on where its rows are: `result_table` makes it of rows in a table,
`result_text` of rows that stay on the cluster. Columns that only early rows have are NULL in all others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from eventide.engine.operators.operator import Output
from eventide.engine.relations.executor import Executor
from eventide.engine.relations.relation import Layout
from eventide.engine.relations.statement import one_row
from eventide.engine.round.result_parts import FileRows, ResultPiece, SparkParts, TableRows, result_table
from eventide.eventtime.instant import EDGE
from eventide.plan.binding import BoundOperator, BoundProgram
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.stream import WINDOW_END, TimeKind
from eventide.plan.expressions.columns import Column, quoted
from eventide.plan.expressions.parse import SPARK
from eventide.results.results import Kind, Results
from eventide.sources.arrow_types import arrow_type, spark_type_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

TIMES = {TimeKind.TIMESTAMP: pa.timestamp("us", "UTC"), TimeKind.DATE: pa.timestamp("us", "UTC")}


def time_type(kind: TimeKind) -> pa.DataType:
    """How times of a kind are shown."""
    return TIMES.get(kind, pa.int64())


def result_schema(query: BoundQuery) -> pa.Schema:
    """All columns of a result."""
    return _with_fixed(time_type(query.window_kind), time_type(query.stream.time_kind), query.outputs)


def operator_schema(operator: BoundOperator) -> pa.Schema:
    """All columns of an operator's rows, which have a span in the place of a window."""
    edge = arrow_type(operator.results.column(WINDOW_END).type)
    return _with_fixed(edge, edge, operator.outputs)


def schema_of(plan: BoundProgram, name: str) -> pa.Schema:
    """All columns of what a query or operator emits."""
    return result_schema(plan.queries[name]) if name in plan.queries else operator_schema(plan.operators[name])


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


def results_of(
    executor: Executor,
    name: str,
    schema: pa.Schema,
    round: int,
    heartbeat: int,
    output: Output,
    early: Sequence[pa.Table] = (),
) -> Results:
    """What an operator has emitted in a round as results, and early ones after them, which are with the driver."""
    shown = shown_heartbeat(heartbeat)
    both = ((Kind.FINAL, output.final), (Kind.REVISED, output.revised))

    def batches() -> Iterator[pa.RecordBatch]:
        for kind, rows in both:
            for part in rows.parts:
                for table in executor.batches(part):
                    yield from result_table(name, kind, round, shown, schema, table).to_batches()
        for table in early:
            yield from table.to_batches()

    def pieces() -> Iterator[ResultPiece]:
        storage = executor.files.checkpoint.storage
        for kind, rows in both:
            shape = partial(result_table, name, kind, round, shown, schema)
            for part in rows.parts:
                if part.table is not None:
                    yield ResultPiece(TableRows(part.table), shape)
                    continue
                for file in part.files:
                    yield ResultPiece(FileRows(*storage.located(file.name), file.bytes, rows.layout.schema), shape)
        for table in early:
            yield ResultPiece(TableRows(table))

    def frame() -> DataFrame:
        constants = one_row(round=round, heartbeat=shown)
        frames = [
            executor.frame(result_text(name, kind, schema, rows.layout), {"emitted": rows, "constants": constants})
            for kind, rows in both
            if rows.parts
        ]
        frames += [executor.frame(_typed_text(schema), {"early": table}) for table in early]
        return reduce(lambda one, other: one.unionByName(other), frames)

    rows = output.final.rows + output.revised.rows + sum(table.num_rows for table in early)
    if "cluster" not in (output.final.place, output.revised.place):
        return Results(name, round, rows, schema, batches)
    return Results(name, round, rows, schema, batches, frame, SparkParts(pieces()))


def shown_heartbeat(heartbeat: int) -> int | None:
    """A heartbeat as results show it: the ends of time mean nothing to a reader."""
    return None if abs(heartbeat) >= EDGE else heartbeat


def result_text(name: str, kind: Kind, schema: pa.Schema, layout: Layout) -> str:
    """The same as a statement, over rows `emitted` that stay on the cluster; `constants` has round and heartbeat."""
    own = {column.name for column in layout.columns}
    constants = {
        "query": str(exp.Literal.string(name).sql(SPARK)),
        "kind": f"'{kind.value}'",
        "round": "constants.__round",
        "heartbeat": "constants.__heartbeat",
    }
    columns = []
    for field in schema:
        missing = f"CAST(NULL AS {spark_type_of(field.type)})"
        value = quoted(field.name) if field.name in own else constants.get(field.name, missing)
        if field.name in ("window_start", "window_end", "heartbeat") and pa.types.is_timestamp(field.type):
            value = f"timestamp_micros({value})"
        columns.append(f"{value} AS {quoted(field.name)}")
    return f"SELECT {', '.join(columns)} FROM emitted CROSS JOIN constants"


def _typed_text(schema: pa.Schema) -> str:
    """Rows `early` of the driver with the types that they have on the cluster."""
    columns = (f"CAST({quoted(field.name)} AS {spark_type_of(field.type)}) AS {quoted(field.name)}" for field in schema)
    return f"SELECT {', '.join(columns)} FROM early"
