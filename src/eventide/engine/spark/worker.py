"""What a task of Spark does in its Python worker with DuckDB: reads Parquet files, writes rows, tells small answers.

Laws. A file is read here only if it has the expected columns in the expected types. Rows are written batch by batch,
under a name that a second try of the task writes again, and are there whole or not at all.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import TypeVar
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.relations.backend import Target
from eventide.engine.relations.relation import Summary, numbered
from eventide.errors import first_line
from eventide.plan.expressions.columns import Column
from eventide.sources.arrow_types import arrow_type

log = logging.getLogger(__name__)

T = TypeVar("T")

BATCH_ROWS = 2**17
"""Rows that are held at once while they are written."""

ROWS_A_TASK = 2**33
"""Rows of one task are numbered from so many times its own number on, as Spark does it."""

MEMORY = "1GB"
"""What DuckDB may hold in a process before it spills; several workers share a machine."""


MOST_FAILURES = 3
"""After so many jobs in a row that failed, none of their kind is tried again."""


class Attempts:
    """Jobs of one kind that Spark SQL can do as well, if less quickly."""

    def __init__(self) -> None:
        self._failures = 0

    @property
    def are_over(self) -> bool:
        """Whether so many in a row failed that it is no accident."""
        return self._failures >= MOST_FAILURES

    def answer(self, job: Callable[[], T], what: str) -> T | None:
        """The answer of a job; None where it failed, and Spark SQL has to be asked: what is no accident, it tells."""
        try:
            found = job()
        except Exception as failure:
            self._failures += 1
            log.warning("%s left to Spark SQL: %s", what, first_line(failure), extra={"event": "worker failed"})
            return None
        self._failures = 0
        return found


@cache
def worker_executor() -> DuckDBExecutor:
    """One DuckDB for each worker process, which Spark uses again and again; a task has one core."""
    return DuckDBExecutor(MEMORY, threads=1)


def parquet(paths: Sequence[str]) -> str:
    """Files as a table of DuckDB.

    >>> parquet(["/in/it's.parquet"])
    "read_parquet(['/in/it''s.parquet'], hive_partitioning = false)"
    """
    files = ", ".join("'" + path.replace("'", "''") + "'" for path in paths)
    return f"read_parquet([{files}], hive_partitioning = false)"


def written(target: Target, batches: pa.RecordBatchReader, number: int = 0) -> Summary:
    """Write the rows of a task, of this number among those of its job."""
    layout, name = target.layout, f"part-{number:05d}.parquet"
    temporary = os.path.join(target.folder, f".{name}.{os.getpid()}.tmp")
    found, first = [Summary.of(layout, layout.empty())], number * ROWS_A_TASK
    writer = None
    try:
        for batch in batches:
            if not batch.num_rows:
                continue
            rows = pa.Table.from_batches([batch])
            if target.sequence is not None:
                rows = numbered(rows, target.sequence, first)
            rows = rows.select(layout.schema.names).cast(layout.schema)
            if writer is None:
                os.makedirs(target.folder, exist_ok=True)
                writer = pq.ParquetWriter(temporary, layout.schema, compression="zstd", coerce_timestamps="us")
            writer.write_table(rows)
            found.append(Summary.of(layout, rows))
            first += rows.num_rows
    finally:
        if writer is not None:
            writer.close()
    if writer is not None:
        os.replace(temporary, os.path.join(target.folder, name))
    return Summary.of_all(found)


def as_bytes(table: pa.Table) -> bytes:
    """A small answer on its way to the driver: Spark sends up to a megabyte with the task's end, more by a detour."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def from_bytes(answer: bytes) -> pa.Table:
    """A small answer that has come to the driver."""
    return pa.ipc.open_stream(answer).read_all()


def emptied(target: Target) -> Target | None:
    """The target as a path on this machine's disks, without what an earlier try of the round left there; or None."""
    found = local_paths([target.folder])
    if found is None:
        return None
    shutil.rmtree(found[0], ignore_errors=True)
    return replace(target, folder=found[0])


def unlike(path: str, columns: Sequence[Column]) -> str | None:
    """Why a file cannot be read as if it had exactly these columns, or None.

    Spark also reads files that lack a column or have it in another type, and takes columns from the names of folders.
    """
    schema = pq.read_schema(path)
    written = schema.metadata or {}
    if b"org.apache.spark.legacyDateTime" in written or written.get(b"org.apache.spark.version", b"4") < b"3":
        return f"{path} has times of the old calendar"
    folders = {unquote(part.partition("=")[0]).lower() for part in path.split(os.sep)[:-1] if "=" in part}
    for column in columns:
        places = schema.get_all_field_indices(column.name)
        if len(places) != 1 or column.name.lower() in folders:
            return f"{path} has no column {column.name!r} of its own"
        kind, wanted = schema.field(places[0]).type, arrow_type(column.type)
        if not (kind == wanted or _same_values(kind, wanted)):
            return f"{path} has {column.name!r} as {kind}, not as {wanted}"
    return None


def _same_values(kind: pa.DataType, wanted: pa.DataType) -> bool:
    """Types that Arrow tells apart and a file does not."""
    if pa.types.is_timestamp(kind) and pa.types.is_timestamp(wanted):
        return kind.unit in ("ms", "us") and bool(kind.tz) == bool(wanted.tz)
    return bool(pa.types.is_large_string(kind) and pa.types.is_string(wanted))


def local_paths(uris: Sequence[str]) -> tuple[str, ...] | None:
    """The paths of files on this machine's disks, or None where one is elsewhere or would be taken for a pattern.

    >>> local_paths(["file:///in/a%20b.parquet"]), local_paths(["s3a://bucket/a.parquet"]), local_paths(["file:/a[1]"])
    (('/in/a b.parquet',), None, None)
    """
    found = []
    for uri in uris:
        parts = urlsplit(uri)
        path = unquote(parts.path)
        if parts.scheme != "file" or parts.netloc or any(sign in path for sign in "*?[\\"):
            return None
        found.append(path)
    return tuple(found)
