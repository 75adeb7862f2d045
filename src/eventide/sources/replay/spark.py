"""A replay as a Spark data source under the format name `replay`.

Law: an offset is the number of rows delivered and the moment at which the replay began, so a restart goes on as if it
had never stopped. A batch is what is due, at most `maxRows` of it; in a bounded run (`availableNow`) the whole
recording is there from the start, in batches of at most `maxRows`. Tasks read slices of the schedule as Arrow batches.

Apart from the schedule this module imports nothing of Eventide's: Spark sends both to its workers as they are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from eventide.sources.replay import schedule as replay_schedule
from eventide.sources.replay.schedule import Schedule

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

SLICE = 131_072
"""Rows of one task, unless the option `partitions` asks for more tasks."""


class Slice(InputPartition):
    """Rows from `start` up to, not including, `stop`."""

    def __init__(self, start: int, stop: int) -> None:
        self.start = start
        self.stop = stop


class ReplayReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Rows of a schedule as they fall due by the wall clock."""

    def __init__(self, schedule: Schedule, max_rows: int | None, partitions: int) -> None:
        self._schedule = schedule
        self._max_rows = max_rows
        self._partitions = partitions
        self._all = False

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """The offset at the start: no row, and now."""
        return {"rows": 0, "start": time.time_ns() // 1000}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """At most so many rows in a batch."""
        return ReadAllAvailable() if self._max_rows is None else ReadMaxRows(self._max_rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Deliver the whole recording: in a bounded run all of it is due."""
        self._all = True

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The offset up to which rows are due."""
        elapsed = time.time_ns() // 1000 - start["start"]
        due = self._schedule.rows if self._all else self._schedule.due_by(elapsed)
        if isinstance(limit, ReadMaxRows):
            due = min(due, start["rows"] + limit.max_rows)
        return {"rows": max(start["rows"], due), "start": start["start"]}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """Slices of about the same size, in order."""
        rows = end["rows"] - start["rows"]
        if rows <= 0:
            return []
        number = min(rows, max(self._partitions, -(-rows // SLICE)))
        cuts = [start["rows"] + rows * place // number for place in range(number + 1)]
        return [Slice(cuts[place], cuts[place + 1]) for place in range(number)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a slice as Arrow batches."""
        assert isinstance(partition, Slice)
        return self._schedule.read(partition.start, partition.stop)


class ReplaySource(DataSource):
    """`spark.readStream.format("replay")`, with the path of a schedule in the option `schedule`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "replay"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader of a schedule."""
        limit = self.options.get("maxrows")
        schedule = Schedule(self.options["schedule"])
        return ReplayReader(schedule, None if limit is None else int(limit), int(self.options.get("partitions", "1")))


def register(spark: SparkSession) -> None:
    """Make the format `replay` known to a session."""
    import sys

    from pyspark import cloudpickle

    # By value: workers need Arrow, but not Eventide.
    for module in (replay_schedule, sys.modules[__name__]):
        cloudpickle.register_pickle_by_value(module)  # type: ignore[no-untyped-call]
    spark.dataSource.register(ReplaySource)
