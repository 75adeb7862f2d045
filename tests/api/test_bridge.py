"""Heartbeats as the watermark of a native Spark query, tried with real ones."""

from __future__ import annotations

import datetime as dt
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eventide
from eventide.errors import DeclarationError
from eventide.eventtime.heartbeat import Policy
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.wrappers.idleness import Idle

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

pytestmark = pytest.mark.spark

SECOND = 1_000_000
PATIENCE = 300.0
START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
SCHEMA = pa.schema([("device", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.int64())])


class Story:
    """Files that appear one after the other, and a native query over their heartbeats."""

    def __init__(self, spark: SparkSession, folder: Path, policy: Policy) -> None:
        self.spark = spark
        self.policy = policy
        self.folder = folder
        (folder / "in").mkdir()
        self.answers: dict[tuple[int, str], int] = {}
        self.files = 0
        self.dropped: dict[int, int] = {}

    def rows(self) -> DataFrame:
        return self.spark.readStream.schema("device string, ts timestamp, v bigint").parquet(str(self.folder / "in"))

    def put(self, *rows: tuple[int, str]) -> None:
        """Rows (second, device), as one file."""
        self.files += 1
        values = {
            "device": [device for _, device in rows],
            "ts": [START + dt.timedelta(seconds=second) for second, _ in rows],
            "v": [1] * len(rows),
        }
        hidden = self.folder / "in" / f".{self.files}"
        pq.write_table(pa.table(values, schema=SCHEMA), hidden)
        os.utime(hidden, (1_700_000_000 + self.files,) * 2)
        hidden.rename(self.folder / "in" / f"{self.files:05}.parquet")

    def start(self) -> StreamingQuery:
        """Counts in windows of ten seconds; a condition that no heartbeat fulfils stands before."""
        from pyspark.sql import functions as f

        frame = eventide.heartbeats(self.rows(), "ts", "device", self.policy, folder=self.folder / "learned")
        assert frame.schema.simpleString() == self.rows().schema.simpleString()
        counts = frame.where("v > 0").groupBy(f.window("ts", "10 seconds"), "device").count()
        writer = counts.writeStream.outputMode("append").foreachBatch(self._keep)
        return writer.option("checkpointLocation", str(self.folder / "state")).start()

    def _keep(self, batch: DataFrame, number: int) -> None:
        for row in batch.toArrow().to_pylist():
            second = int((row["window"]["start"] - START).total_seconds())
            assert (second, row["device"]) not in self.answers, "a window is told once"
            self.answers[second, row["device"]] = row["count"]

    def until(self, query: StreamingQuery, holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not holds():
            assert query.isActive, query.exception()
            assert time.monotonic() < deadline, self.answers
            for progress in query.recentProgress:
                states: list[dict[str, Any]] = progress["stateOperators"]
                self.dropped[progress["batchId"]] = sum(state["numRowsDroppedByWatermark"] for state in states)
            time.sleep(0.1)


@pytest.mark.slow
def test_a_source_that_trails_loses_nothing_and_one_that_falls_silent_holds_nothing_back(
    spark: SparkSession, tmp_path: Path
) -> None:
    # The silence is long enough for a slow machine to tell it from the pauses between files.
    story = Story(spark, tmp_path, Idle(OwnProgress(), after=20 * SECOND))
    story.put((1, "a"), (2, "a"), (901, "b"))
    query = story.start()
    try:
        story.until(query, lambda: (tmp_path / "learned" / "learned.json").exists())
        story.put((11, "a"), (902, "b"), (1200, "b"))
        story.until(query, lambda: (0, "a") in story.answers)
        story.put((21, "a"), (1201, "b"))
        story.until(query, lambda: (10, "a") in story.answers)
        assert story.answers == {(0, "a"): 2, (10, "a"): 1}, "b is twenty minutes ahead: a decides, and loses nothing"
        assert sum(story.dropped.values()) == 0
        # Now a says no more, and b goes on alone.
        story.until(query, lambda: b_goes_on(story) or (900, "b") in story.answers)
        assert story.answers[900, "b"] == 2
        assert story.answers[20, "a"] == 1
        story.put((22, "a"))
        story.until(query, lambda: sum(story.dropped.values()) == 1)
    finally:
        query.stop()
    # What was learned is there for a restart: time does not begin anew.
    story.put((1203, "b"), (23, "a"))
    query = story.start()
    try:
        story.until(query, lambda: sum(story.dropped.values()) == 2)
    finally:
        query.stop()


def b_goes_on(story: Story) -> bool:
    story.put((1202, "b"))
    time.sleep(1)
    return False


@pytest.mark.slow
def test_rows_of_the_batch_that_makes_the_promise_are_never_lost_to_it(spark: SparkSession, tmp_path: Path) -> None:
    """Each file holds a later row first and earlier rows after it: in one batch they arrive together."""
    story = Story(spark, tmp_path, OwnProgress())
    story.put(*((second, "a") for second in range(30, -1, -1)))
    query = story.start()
    try:
        for number in range(1, 6):
            story.put(*((second, "a") for second in range(30 * number + 30, 30 * number, -1)))
        story.until(query, lambda: (160, "a") in story.answers)
        assert sum(story.dropped.values()) == 0
        assert {second: count for (second, _), count in story.answers.items()} == dict.fromkeys(range(0, 170, 10), 10)
    finally:
        query.stop()


def test_what_cannot_have_heartbeats_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    story = Story(spark, tmp_path, OwnProgress())
    with pytest.raises(DeclarationError, match=r"make it with spark.readStream"):
        eventide.heartbeats(spark.sql("SELECT current_timestamp() AS ts"), "ts")
    with pytest.raises(DeclarationError, match="give a streaming DataFrame"):
        eventide.heartbeats(SCHEMA.empty_table(), "ts")  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match="did you mean 'ts'"):
        eventide.heartbeats(story.rows(), "tss")
    with pytest.raises(DeclarationError, match="needs a TIMESTAMP, and 'v' is BIGINT"):
        eventide.heartbeats(story.rows(), "v")
    with pytest.raises(DeclarationError, match="is no policy"):
        eventide.heartbeats(story.rows(), "ts", policy="1%")  # type: ignore[arg-type]


@pytest.mark.slow
def test_two_queries_over_one_frame_are_told_apart(spark: SparkSession, tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    story = Story(spark, tmp_path, OwnProgress())
    story.put((1, "a"))
    frame = eventide.heartbeats(story.rows(), "ts", "device", OwnProgress())
    queries = [frame.writeStream.format("noop").start() for _ in range(2)]

    def both_done() -> None:
        for number in range(100):
            story.put((number, "a"))
            for query in queries:
                query.processAllAvailable()

    try:
        with pytest.raises(StreamingQueryException, match=r"each needs its own"):
            both_done()
    finally:
        for query in queries:
            query.stop()
