"""Queries made of a user's own streaming DataFrame, on Spark: the same plans, the same answers as from Arrow data."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import eventide
from eventide.api.query import ContinuousQuery
from eventide.errors import DeclarationError
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Named, Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import Window

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

SECOND = 1_000_000
TIMES = [1, 12, 5, 25, 31, 48]
TABLE = pa.table(
    {
        "ts": pa.array([dt.datetime(2026, 1, 1, 0, 0, second) for second in TIMES], pa.timestamp("us", "UTC")),
        "detector": ["a", "b", "a", "b", "a", "b"],
        "speed": pa.array([50, 60, -1, 80, 90, 30], pa.int32()),
    }
)


@pytest.fixture
def frame(spark: SparkSession, tmp_path: Path) -> DataFrame:
    (tmp_path / "in").mkdir()
    pq.write_table(TABLE, tmp_path / "in" / "rows.parquet")
    return spark.readStream.schema("ts timestamp, detector string, speed int").parquet(str(tmp_path / "in"))


def by_columns(rows: Any) -> ContinuousQuery:
    from pyspark.sql import functions as f

    return (
        eventide.stream(rows, time="ts", source="detector", name="traffic")
        .delay("10 seconds")
        .where(f.col("speed") > 0)
        .window("20 seconds", "10 seconds")
        .groupBy("detector", (f.col("speed") % 20).alias("rest"))
        .having(f.count("*") > 0)
        .agg(f.avg("speed").alias("mean"), f.max("speed") - f.min("speed"), n="count(*)")
        .named("speeds")
    )


def test_a_dataframe_gives_the_plan_by_hand_and_the_answers_of_the_local_engine(frame: DataFrame) -> None:
    query = by_columns(frame)
    assert query.plan == Program(
        (
            Stream(
                "traffic",
                columns("ts TIMESTAMP, detector STRING, speed INT"),
                "ts",
                ("detector",),
                policy=FixedDelay(10 * SECOND),
            ),
        ),
        (
            Query(
                "speeds",
                "traffic",
                Window(20 * SECOND, 10 * SECOND),
                (
                    Named("mean", "avg(speed)"),
                    Named("max(speed) - min(speed)", "max(speed) - min(speed)"),
                    Named("n", "count(*)"),
                ),
                named_as("detector", rest="speed % 20"),
                where="speed > 0",
                having="count(*) > 0",
            ),
        ),
    )
    assert by_columns(TABLE).plan == query.plan
    with query.start(bounded=True) as running:
        running.awaitTermination(300)
        found = running.results()
        counted = running.toDF().selectExpr("sum(n) AS n").toArrow().to_pylist()
    local = by_columns(TABLE).run()
    assert found.sort_by([("window_end", "ascending"), ("detector", "ascending"), ("rest", "ascending")]).equals(
        local.sort_by([("window_end", "ascending"), ("detector", "ascending"), ("rest", "ascending")])
    )
    assert counted == [{"n": 10}], "five rows, each in two windows"


def test_a_running_query_is_stopped_and_continued(frame: DataFrame, tmp_path: Path) -> None:
    def started() -> Any:
        asked = eventide.stream(frame, time="ts").delay("0 seconds").window("10 seconds").agg(n="count(*)")
        return asked.start(tmp_path / "out", tmp_path / "state", name="counts")

    with started() as running:
        assert running.isActive
        assert not running.awaitTermination(0)
        while running.status().round < 0 and running.isActive:
            running.awaitTermination(0.1)
    assert running.exception() is None
    late = TABLE.slice(0, 1)
    pq.write_table(late, tmp_path / "in" / "more.parquet")
    with started() as running:
        while running.status().streams[0].rows < len(TIMES) + 1 and running.isActive:
            running.awaitTermination(0.1)
        assert running.status().streams[0].late == 1
    assert running.results().column("n").to_pylist() == [2, 1, 1, 1]


def test_a_script_in_sql_reads_a_dataframe(frame: DataFrame) -> None:
    traffic = eventide.stream(frame, time="ts", source="detector").delay("10 seconds")
    script = eventide.sql("SELECT max(speed) AS top FROM traffic [RANGE 20 seconds]", traffic=traffic)
    assert script.run()["query_1"].column("top").to_pylist() == [60, 90, 30]


def test_a_script_in_sql_brings_its_functions_and_its_settings_to_spark(frame: DataFrame, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("def half(n: int) -> int: return n // 2", encoding="utf-8")
    traffic = eventide.stream(frame, time="ts", source="detector").delay("10 seconds")
    text = f"""CREATE FUNCTION half FROM '{tmp_path / "mine.py"}';
        SET driver.memory = 0;
        SELECT max(half(speed)) AS top FROM traffic [RANGE 20 seconds];"""
    with eventide.sql(text, traffic=traffic).start() as running:
        while running.status().round < 0 and running.isActive:
            running.awaitTermination(0.1)
        assert running.status().queries[0].placement == "cluster"
        assert running["query_1"].results().column("top").to_pylist() == [30]


def test_how_much_state_stays_with_the_driver_is_said_at_the_start(frame: DataFrame) -> None:
    traffic = eventide.stream(frame, time="ts", source="detector").delay("10 seconds")
    query = traffic.window("20 seconds").agg(n="count(*)")
    with pytest.raises(DeclarationError, match="'much' is no size"):
        query.start(driver_memory="much")
    with query.start(driver_memory="0 MB") as running:
        while running.status().round < 0 and running.isActive:
            running.awaitTermination(0.1)
        assert running.status().queries[0].placement == "cluster"


def test_what_is_no_stream_or_does_not_fit_together_is_refused(spark: SparkSession, frame: DataFrame) -> None:
    with pytest.raises(DeclarationError, match=r"not a stream: make it with spark.readStream.*df.toArrow\(\)"):
        eventide.stream(spark.range(3).selectExpr("id"), time="id")
    arrow = eventide.stream(TABLE, time="ts", name="arrow").window("1 minute").agg(n="count(*)")
    on_spark = eventide.stream(frame, time="ts", name="spark").window("1 minute").agg(n="count(*)")
    with pytest.raises(DeclarationError, match="start them apart"):
        eventide.start(first=arrow, second=on_spark)
