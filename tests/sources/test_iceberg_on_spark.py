"""Iceberg tables as streams of Spark, and results in an Iceberg table, without a package of Spark's."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from eventide.engine.round.report import Observer
from eventide.engine.spark.engine import SparkEngine
from eventide.errors import InputError
from eventide.language.script import read_script
from eventide.sinks.sink import sink_of
from eventide.storage.iceberg import catalog_of, table_at

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.string()), ("v", pa.int32()), ("unread", pa.date32())])
SECOND = 1_000_000


def script_over(lake: Path, limit: str = "") -> str:
    place = f"OPTIONS (warehouse '{lake}')"
    return f"""
    CREATE STREAM s (ts TIMESTAMP, k STRING, v BIGINT) FROM iceberg 'lake.t' {place} {limit}
        TIMESTAMP BY ts DELAY 0 seconds;
    CREATE QUERY sums AS SELECT k, sum(v) AS total, count(*) AS n FROM s [RANGE 10 seconds] GROUP BY k
        INTO iceberg 'lake.sums' OPTIONS (warehouse '{lake}', mode 'upsert');
    """


def append(lake: Path, *seconds: int) -> None:
    catalog = catalog_of({"warehouse": str(lake)})
    catalog.create_namespace_if_not_exists("lake")
    table = catalog.create_table_if_not_exists("lake.t", SCHEMA)
    columns: list[list[Any]] = [
        [s * SECOND for s in seconds],
        ["a"] * len(seconds),
        list(seconds),
        [None] * len(seconds),
    ]
    table.append(pa.table([pa.array(c, t) for c, t in zip(columns, SCHEMA.types, strict=True)], schema=SCHEMA))


def engine_over(spark: SparkSession, lake: Path, observer: Observer | None = None) -> SparkEngine:
    script = read_script(script_over(lake, "LIMIT 1 FILES PER ROUND"))
    sinks = {one.query: sink_of(one.kind, one.path, dict(one.options)) for one in script.outputs}
    return SparkEngine(spark, script.program, str(lake / "state"), sinks, observer=observer)


def sums_in(lake: Path) -> list[tuple[int, int, int]]:
    table = table_at("lake.sums", {"warehouse": str(lake)})
    rows = [] if table is None else table.scan().to_arrow().to_pylist()
    return sorted((int(row["window_start"].timestamp()), row["total"], row["n"]) for row in rows)


@pytest.mark.slow
@pytest.mark.spark
def test_an_iceberg_table_is_a_stream_of_spark_and_takes_its_results(spark: SparkSession, tmp_path: Path) -> None:
    for seconds in ((1, 2), (12,), (25,)):
        append(tmp_path, *seconds)
    second_round = threading.Event()

    def observer(round: int, step: str) -> None:
        if round >= 1 and step == "commit":
            second_round.set()

    first = engine_over(spark, tmp_path, observer).start()
    assert second_round.wait(120)
    first.stop()
    append(tmp_path, 31, 3)
    rounds = set[int]()
    engine_over(spark, tmp_path, lambda round, step: rounds.add(round)).start(bounded=True).await_end()
    assert sums_in(tmp_path) == [(0, 3, 2), (10, 12, 1), (20, 25, 1), (30, 31, 1)], "the last row is late"
    assert min(rounds) >= 2, "what was committed came again"


@pytest.mark.spark
def test_a_table_that_is_not_there_is_told_before_the_stream_starts(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"stream 's': there is no Iceberg table lake\.t"):
        engine_over(spark, tmp_path)
