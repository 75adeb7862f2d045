"""What operators emit as results: what a window is called, when it was closed, in which round.

Laws. What a result shows does not depend on where its rows are: `result_table` makes it of rows in a table,
`result_text` of rows that stay on the cluster. Columns that only early rows have are NULL in all others.

*Parts*: results that are on the cluster can be taken in parts, by functions that run in Spark's tasks. The parts hold
the rows that `Results.batches` gives, in the same order. A part says where its rows are and how they become results; it
is small, and whoever is given it, in any process, reads the same. Files stand together in a part while they are small,
so that few large parts come out of many small files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import TYPE_CHECKING

import pyarrow as pa

from eventide.engine.operators.operator import Output
from eventide.engine.relations.executor import Executor, one_row
from eventide.engine.relations.files import tables_in
from eventide.engine.relations.relation import Layout
from eventide.eventtime.instant import EDGE
from eventide.plan.binding import BoundOperator, BoundProgram
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.stream import WINDOW_END, TimeKind
from eventide.plan.expressions.columns import Column, literal, quoted
from eventide.results.results import ROW_SPAN, Kind, Made, Results
from eventide.sources.arrow_types import arrow_type, spark_type_of
from eventide.sources.spark_errors import of_spark

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem
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
    schema = _with_fixed(edge, edge, operator.outputs)
    at = schema.get_field_index("window_end")
    return schema.set(at, schema.field(at).with_metadata(ROW_SPAN))


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
    key: tuple[str, ...] = (),
) -> Results:
    """What an operator has emitted in a round as results, and early ones after them, which are with the driver."""
    shown = shown_heartbeat(heartbeat)

    def batches() -> Iterator[pa.RecordBatch]:
        for kind, rows in output.by_kind:
            for part in rows.parts:
                for table in executor.batches(part):
                    yield from result_table(name, kind, round, shown, schema, table).to_batches()
        for table in early:
            yield from table.to_batches()

    def pieces() -> Iterator[ResultPiece]:
        storage = executor.files.checkpoint.storage
        for kind, rows in output.by_kind:
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
            for kind, rows in output.by_kind
            if rows.parts
        ]
        frames += [executor.frame(_typed_text(schema), {"early": table}) for table in early]
        return reduce(lambda one, other: one.unionByName(other), frames)

    rows = sum(one.rows for _, one in output.by_kind) + sum(table.num_rows for table in early)
    if "cluster" not in (one.place for _, one in output.by_kind):
        return Results(name, round, rows, schema, batches, key=key)
    return Results(name, round, rows, schema, batches, frame, SparkParts(pieces()), key)


def shown_heartbeat(heartbeat: int) -> int | None:
    """A heartbeat as results show it: the ends of time mean nothing to a reader."""
    return None if abs(heartbeat) >= EDGE else heartbeat


def result_text(name: str, kind: Kind, schema: pa.Schema, layout: Layout) -> str:
    """SQL that makes results of rows `emitted` on the cluster; `constants` has round and heartbeat."""
    own = {column.name for column in layout.columns}
    constants = {
        "query": literal(name),
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


PART_BYTES = 8 * 2**20
"""Files are put together in a part up to this size."""

Shape = Callable[[pa.Table], pa.Table]
"""Makes results of emitted rows."""


@dataclass(frozen=True)
class FileRows:
    """The rows of a Parquet file: the file system of Arrow and the path there."""

    filesystem: FileSystem
    path: str
    bytes: int
    columns: pa.Schema

    def tables(self) -> Iterator[pa.Table]:
        """The rows, some at a time."""
        with self.filesystem.open_input_file(self.path) as file:
            yield from tables_in(file, self.columns)


@dataclass(frozen=True)
class TableRows:
    """Rows that are with the driver; they go to the task with its orders."""

    table: pa.Table

    @property
    def bytes(self) -> int:
        """The size of the rows in bytes."""
        return int(self.table.nbytes)

    def tables(self) -> Iterator[pa.Table]:
        """The rows, as tables."""
        yield self.table


@dataclass(frozen=True)
class ResultPiece:
    """Rows of one kind, and how they become results; None where they are results."""

    rows: FileRows | TableRows
    shape: Shape | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows of this piece as results."""
        for table in self.rows.tables():
            yield from (table if self.shape is None else self.shape(table)).to_batches()


class SparkParts:
    """Gives pieces of results to Spark's tasks: those of the one Spark that a process can have."""

    def __init__(self, pieces: Iterable[ResultPiece], part_bytes: int = PART_BYTES) -> None:
        self._parts = put_together(list(pieces), part_bytes)

    def map(self, function: Callable[[int, Iterator[pa.RecordBatch]], Made]) -> list[Made]:
        """Call a function with the number and the rows of every part, in Spark's tasks."""
        return _in_tasks(partial(_called, function), list(enumerate(self._parts)))

    def share(self, count: int, function: Callable[[int, Callable[[], Iterator[pa.RecordBatch]]], Made]) -> list[Made]:
        """Call a function so many times with all rows, in Spark's tasks."""
        pieces = tuple(piece for part in self._parts for piece in part)
        return _in_tasks(partial(_shared, function), [(number, pieces) for number in range(count)])


Task = tuple[int, tuple[ResultPiece, ...]]
"""A number, and the pieces that the task of this number reads."""


def _in_tasks(function: Callable[[Task], Made], given: Sequence[Task]) -> list[Made]:
    """What the function made of each, in a task for each."""
    from pyspark.sql import SparkSession

    try:
        tasks = SparkSession.active().sparkContext.parallelize(given, max(1, len(given)))
        return tasks.map(function).collect()
    except Exception as error:
        raise of_spark(error, "results cannot be taken from the cluster") from error


def put_together(pieces: Sequence[ResultPiece], most: int = PART_BYTES) -> list[tuple[ResultPiece, ...]]:
    """Neighbours in one part, while they are small together.

    >>> sizes = [pa.table({"a": pa.array(range(n), pa.int8())}) for n in (3, 4, 9, 1)]
    >>> parts = put_together([ResultPiece(TableRows(table)) for table in sizes], most=8)
    >>> [[piece.rows.bytes for piece in part] for part in parts]
    [[3, 4], [9], [1]]
    """
    parts: list[list[ResultPiece]] = []
    size = 0
    for piece in pieces:
        if not parts or size + piece.rows.bytes > most:
            parts.append([])
            size = 0
        parts[-1].append(piece)
        size += piece.rows.bytes
    return [tuple(part) for part in parts]


def result_table(
    name: str, kind: Kind, round: int, heartbeat: int | None, schema: pa.Schema, emitted: pa.Table
) -> pa.Table:
    """Emitted rows with the columns of results; a `heartbeat` of their own counts, and what they lack is NULL.

    >>> emitted = pa.table({"window_end": [10], "rows": [2], "n": [2]})
    >>> numbers = [(name, pa.int64()) for name in ("window_end", "heartbeat", "n")]
    >>> schema = pa.schema([("kind", pa.string()), *numbers])
    >>> result_table("q", Kind.FINAL, 7, 12, schema, emitted).to_pylist()
    [{'kind': 'final', 'window_end': 10, 'heartbeat': 12, 'n': 2}]
    """
    count = emitted.num_rows
    constants = {"query": name, "kind": kind.value, "round": round, "heartbeat": heartbeat}
    if "heartbeat" in emitted.column_names:
        # Each result was closed by the heartbeat of its own source.
        del constants["heartbeat"]
    columns: list[pa.Array | pa.ChunkedArray] = []
    for field in schema:
        if field.name in constants:
            kind_of = pa.int64() if field.name == "heartbeat" else field.type
            columns.append(pa.repeat(pa.scalar(constants[field.name], kind_of).cast(field.type), count))
        elif field.name in emitted.column_names:
            columns.append(emitted.column(field.name).cast(field.type))
        else:
            columns.append(pa.nulls(count, field.type))
    return pa.table(columns, schema=schema)


def _batches(pieces: Iterable[ResultPiece]) -> Iterator[pa.RecordBatch]:
    return (batch for piece in pieces for batch in piece.batches())


def _shared(function: Callable[[int, Callable[[], Iterator[pa.RecordBatch]]], Made], given: Task) -> Made:
    number, pieces = given
    return function(number, partial(_batches, pieces))


def _called(
    function: Callable[[int, Iterator[pa.RecordBatch]], Made], part: tuple[int, tuple[ResultPiece, ...]]
) -> Made:
    number, pieces = part
    return function(number, _batches(pieces))
