"""What Spark runs of a bridge: heartbeats as a data source (`eventide_heartbeats`), and rows seen while they pass.

Laws. *Heartbeats*: an offset is the heartbeat itself, so a batch that Spark runs again hears the same one; it never
goes back. Each batch of the query asks for the next one before it begins, when all batches before are done. In silence
the clock alone may move it, at most once a `tick`. *Rows* of the native query are seen as cells: how many of each
source, from which time to which. They are neither changed nor held up; only their source and time leave the JVM. For
each batch and partition of the query one file of cells appears, whole, and a batch that Spark runs again replaces its
files.

Spark sends this module to its processes as it is, and workers need nothing of Eventide's; the one on the driver finds
Eventide where the driver found it.
"""

from __future__ import annotations

import base64
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.feather
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

FORMAT = "eventide_heartbeats"
MILLISECOND = 1_000
"""Spark's watermark is in whole milliseconds: what is less does not move it."""


class Beat(InputPartition):
    """The partition of a batch: one heartbeat."""

    def __init__(self, heartbeat: int) -> None:
        self.heartbeat = heartbeat


class HeartbeatReader(DataSourceStreamReader):
    """Asks the heartbeat generator how far time has come."""

    def __init__(self, options: dict[str, str], column: str) -> None:
        self._options = options
        self._column = column
        self._opened: Any = None
        self._asked_at = 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Workers only read heartbeats: what finds them stays here."""
        return {**self.__dict__, "_opened": None}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Where Spark's watermark begins."""
        return {"heartbeat": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The heartbeat now, or the last one when there is nothing new to tell."""
        generator = self._generator()
        now = time.monotonic()
        if not generator.news() and now - self._asked_at < float(self._options["tick"]):
            return start
        self._asked_at = now
        found = generator.heartbeat(time.time_ns() // 1000)
        if found is None or found // MILLISECOND <= start["heartbeat"] // MILLISECOND:
            return start
        return {"heartbeat": found}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """One row, if time has moved."""
        return [Beat(end["heartbeat"])] if end["heartbeat"] > start["heartbeat"] else []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Give the heartbeat of a batch as one row."""
        import pyarrow as pa

        assert isinstance(partition, Beat)
        moment = pa.array([partition.heartbeat], pa.timestamp("us", "UTC"))
        yield pa.record_batch([moment], names=[self._column])

    def _generator(self) -> Any:
        if self._opened is None:
            where = self._options["eventide"]
            if where not in sys.path:
                sys.path.insert(0, where)
            from eventide.api.bridge_generator import BridgeGenerator

            policy = pickle.loads(base64.b64decode(self._options["policy"]))
            self._opened = BridgeGenerator(self._options["folder"], policy)
        return self._opened


class HeartbeatSource(DataSource):
    """Made by `eventide.heartbeats`, never by hand."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader of a folder's heartbeats."""
        return HeartbeatReader(dict(self.options), schema.fields[0].name)


CELL = 250_000
"""Microseconds of application time that make one cell."""

MERGED = 64
"""Parts that are kept before they are merged."""


def watching(folder: str) -> Callable[[Iterator[tuple[pa.Array, ...]]], Iterator[pa.Array]]:
    """A function over (source, time) that is true for every row and writes cells to `folder`."""

    def watch(columns: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
        from pyspark import TaskContext

        parts: list[pa.Table] = []
        for source, times in columns:
            parts.append(cells_of(source, times))
            if len(parts) == MERGED:
                parts = [merged(parts)]
            yield pa.array(np.ones(len(times), dtype=bool))
        task = TaskContext.get()
        if task is None or not parts:
            return
        query, batch = (task.getLocalProperty(key) for key in ("sql.streaming.queryId", "streaming.sql.batchId"))
        write(merged(parts), folder, f"{query}_{int(batch or -1):012d}_{task.partitionId():06d}")

    return watch


def cells_of(source: pa.Array, times: pa.Array) -> pa.Table:
    """The cells of some rows; rows without a time are in none.

    >>> times = pa.array([1_000, 2_000, 600_000, None], pa.timestamp("us", "UTC"))
    >>> cells_of(pa.array(["a", "a", "a", "b"]), times).to_pylist()
    [{'source': 'a', 'cell': 0, 'rows': 2, 'low': 1000, 'high': 2000}, \
{'source': 'a', 'cell': 500000, 'rows': 1, 'low': 600000, 'high': 600000}]
    """
    known = times.is_valid()
    instants = times.filter(known).cast(pa.int64())
    numbers = instants.to_numpy(zero_copy_only=False)
    one = pa.array(np.ones(len(numbers), dtype=np.int64))
    cell = pa.array(numbers - numbers % CELL)
    columns = {"source": source.filter(known), "cell": cell, "rows": one, "low": instants, "high": instants}
    return merged([pa.table(columns)])


def merged(parts: list[pa.Table]) -> pa.Table:
    """Cells of several parts, each stretch and source once."""
    together = pa.concat_tables(parts).group_by(["source", "cell"], use_threads=False)
    found = together.aggregate([("rows", "sum"), ("low", "min"), ("high", "max")])
    return found.rename_columns(["source", "cell", "rows", "low", "high"])


def write(cells: pa.Table, folder: str, name: str) -> None:
    """Let a file appear, whole."""
    hidden = os.path.join(folder, f".{name}.{os.getpid()}")
    pyarrow.feather.write_feather(cells, hidden, compression="uncompressed")
    os.replace(hidden, os.path.join(folder, f"{name}.cells"))
