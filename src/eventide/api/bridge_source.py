"""Heartbeats as a Spark data source under the format name `eventide_heartbeats`.

Law: an offset is the heartbeat itself, so a batch that Spark runs again hears the same one; it never goes back. Each
batch of the query asks for the next one before it begins, when all batches before are done. In silence the clock alone
may move it, at most once a `tick`.

Spark sends this module to its processes as it is; the one on the driver finds Eventide where the driver found it.
"""

from __future__ import annotations

import base64
import pickle
import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType

FORMAT = "eventide_heartbeats"
MILLISECOND = 1_000
"""Spark's watermark is in whole milliseconds: what is less does not move it."""


class Beat(InputPartition):
    """One heartbeat."""

    def __init__(self, heartbeat: int) -> None:
        self.heartbeat = heartbeat


class HeartbeatReader(DataSourceStreamReader):
    """Asks the heartbeat generator how far time has come."""

    def __init__(self, options: dict[str, str], column: str) -> None:
        self._options = options
        self._column = column
        self._pace: Any = None
        self._asked_at = 0.0

    def __getstate__(self) -> dict[str, Any]:
        """Workers only read heartbeats: what finds them stays here."""
        return {**self.__dict__, "_pace": None}

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """Where Spark's watermark begins."""
        return {"heartbeat": 0}

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The heartbeat now, or the last one when there is nothing new to tell."""
        pace = self._generator()
        now = time.monotonic()
        if not pace.news() and now - self._asked_at < float(self._options["tick"]):
            return start
        self._asked_at = now
        found = pace.heartbeat(time.time_ns() // 1000)
        if found is None or found // MILLISECOND <= start["heartbeat"] // MILLISECOND:
            return start
        return {"heartbeat": found}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """One row, if time has moved."""
        return [Beat(end["heartbeat"])] if end["heartbeat"] > start["heartbeat"] else []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The heartbeat as a row."""
        import pyarrow as pa

        assert isinstance(partition, Beat)
        moment = pa.array([partition.heartbeat], pa.timestamp("us", "UTC"))
        yield pa.record_batch([moment], names=[self._column])

    def _generator(self) -> Any:
        if self._pace is None:
            where = self._options["eventide"]
            if where not in sys.path:
                sys.path.insert(0, where)
            from eventide.api.bridge_pace import Pace

            policy = pickle.loads(base64.b64decode(self._options["policy"]))
            self._pace = Pace(self._options["folder"], policy)
        return self._pace


class HeartbeatSource(DataSource):
    """Made by `eventide.heartbeats`, never by hand."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader of a folder's heartbeats."""
        return HeartbeatReader(dict(self.options), schema.fields[0].name)
