"""Results on the cluster in parts, for functions that run in Spark's tasks.

Law: the parts hold the rows that `Results.batches` gives, in the same order. A part says where its rows are and how
they become results; it is small, and whoever is given it, in any process, reads the same. Files stand together in a
part while they are small, so that few large parts come out of many small files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from eventide.engine.relations.files import tables_in
from eventide.engine.spark.faults import of_spark
from eventide.results.results import Kind, Made

PART_BYTES = 8 * 2**20
"""Files are put together in a part up to this size."""

Shape = Callable[[pa.Table], pa.Table]
"""Makes results of emitted rows."""


@dataclass(frozen=True)
class FileRows:
    """The rows of a Parquet file: the file system of Arrow and the path there."""

    filesystem: Any
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
        """How large they are."""
        return int(self.table.nbytes)

    def tables(self) -> Iterator[pa.Table]:
        """The rows."""
        yield self.table


@dataclass(frozen=True)
class ResultPiece:
    """Rows of one kind, and how they become results; None where they are results."""

    rows: FileRows | TableRows
    shape: Shape | None = None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The results."""
        for table in self.rows.tables():
            yield from (table if self.shape is None else self.shape(table)).to_batches()


class SparkParts:
    """Gives pieces of results to Spark's tasks: those of the one Spark that a process can have."""

    def __init__(self, pieces: Iterable[ResultPiece], part_bytes: int = PART_BYTES) -> None:
        self._parts = put_together(list(pieces), part_bytes)

    def map(self, function: Callable[[int, Iterator[pa.RecordBatch]], Made]) -> list[Made]:
        """Call a function with the number and the rows of every part, in Spark's tasks."""
        from pyspark.sql import SparkSession

        numbered = list(enumerate(self._parts))
        try:
            tasks = SparkSession.active().sparkContext.parallelize(numbered, max(1, len(numbered)))
            return tasks.map(partial(_called, function)).collect()
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
    columns = []
    for field in schema:
        if field.name in constants:
            kind_of = pa.int64() if field.name == "heartbeat" else field.type
            columns.append(pa.repeat(pa.scalar(constants[field.name], kind_of).cast(field.type), count))
        elif field.name in emitted.column_names:
            columns.append(emitted.column(field.name).cast(field.type))
        else:
            columns.append(pa.nulls(count, field.type))
    return pa.table(columns, schema=schema)


def _called(
    function: Callable[[int, Iterator[pa.RecordBatch]], Made], part: tuple[int, tuple[ResultPiece, ...]]
) -> Made:
    number, pieces = part
    return function(number, (batch for piece in pieces for batch in piece.batches()))
