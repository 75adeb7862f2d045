"""The rows of a native Spark query, seen while they pass: how many of each source, from which time to which.

Law: the rows are neither changed nor held up; only their source and time leave the JVM. For each batch and partition of
the query one file of cells appears, whole, and a batch that Spark runs again replaces its files.

Spark's workers get this module as it is: it imports nothing of Eventide's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.feather

CELL = 250_000
"""Microseconds of application time that are told as one cell."""

MERGED = 64
"""Parts that are kept before they are merged."""


def watching(folder: str) -> Callable[[Iterator[tuple[pa.Array, ...]]], Iterator[pa.Array]]:
    """A function over (source, time) that is true for every row and writes cells to `folder`."""

    def watch(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        from pyspark import TaskContext

        parts: list[pa.Table] = []
        for source, time in columns:
            parts.append(cells_of(source, time))
            if len(parts) == MERGED:
                parts = [merged(parts)]
            yield pa.array(np.ones(len(time), dtype=bool))
        task = TaskContext.get()
        if task is None or not parts:
            return
        query, batch = (task.getLocalProperty(key) for key in ("sql.streaming.queryId", "streaming.sql.batchId"))
        write(merged(parts), folder, f"{query}_{int(batch or -1):012d}_{task.partitionId():06d}")

    return watch


def cells_of(source: pa.Array, time: pa.Array) -> pa.Table:
    """The cells of some rows; rows without a time are in none.

    >>> times = pa.array([1_000, 2_000, 600_000, None], pa.timestamp("us", "UTC"))
    >>> cells_of(pa.array(["a", "a", "a", "b"]), times).to_pylist()
    [{'source': 'a', 'cell': 0, 'rows': 2, 'low': 1000, 'high': 2000}, \
{'source': 'a', 'cell': 500000, 'rows': 1, 'low': 600000, 'high': 600000}]
    """
    known = time.is_valid()
    instants = time.filter(known).cast(pa.int64())
    numbers = instants.to_numpy(zero_copy_only=False)
    one = pa.array(np.ones(len(numbers), dtype=np.int64))
    cell = pa.array(numbers - numbers % CELL)
    columns = {"source": source.filter(known), "cell": cell, "rows": one, "low": instants, "high": instants}
    return merged([pa.table(columns)])


def merged(parts: list[pa.Table]) -> pa.Table:
    """The same cells, each once."""
    together = pa.concat_tables(parts).group_by(["source", "cell"], use_threads=False)
    found = together.aggregate([("rows", "sum"), ("low", "min"), ("high", "max")])
    return found.rename_columns(["source", "cell", "rows", "low", "high"])


def write(cells: pa.Table, folder: str, name: str) -> None:
    """Let a file appear, whole."""
    hidden = os.path.join(folder, f".{name}.{os.getpid()}")
    pyarrow.feather.write_feather(cells, hidden, compression="uncompressed")
    os.replace(hidden, os.path.join(folder, f"{name}.cells"))
