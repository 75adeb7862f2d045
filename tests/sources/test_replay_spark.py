"""A replay through Spark: the rows of the local engine, in time, and on after a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.plan.declared.stream import Input, Stream, columns
from eventide.sources.local_input import open_input
from eventide.sources.spark_input import read_stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

DECLARED = "t TIMESTAMP, car STRING, n INT, price DECIMAL(10, 2), tags ARRAY<STRING>, seen TIMESTAMP"


def recorded(tmp_path: Path, max_rows: int | None = None, **options: str) -> Stream:
    rows = 200
    table = {
        "t": pa.array([1_577_836_800_000_000 + n * 10_000 for n in range(rows)], pa.timestamp("us", "UTC")),
        "car": [f"c{n % 3}" for n in range(rows)],
        "n": pa.array(range(rows), pa.int32()),
        "price": pa.array(range(rows), pa.int64()).cast(pa.decimal128(19, 0)).cast(pa.decimal128(10, 2)),
        "tags": [["x"] * (n % 3) for n in range(rows)],
    }
    if not (tmp_path / "r.parquet").exists():
        pq.write_table(pa.table(table), tmp_path / "r.parquet")
    said = {
        "schedules": str(tmp_path / "schedules"),
        "by": "event",
        "delays": json.dumps([{"mean": 300_000, "distribution": "exponential", "share": 0.5}]),
        "silences": json.dumps([{"start": 500_000, "length": 200_000, "sources": ["c1"]}]),
        **options,
    }
    given = Input("replay", str(tmp_path / "r.parquet"), tuple(said.items()), max_rows=max_rows)
    return Stream("cars", columns(DECLARED), time="t", source=("car",), arrival="seen", input=given)


def batches(spark: SparkSession, stream: Stream, checkpoint: Path, **trigger: Any) -> list[list[dict[str, Any]]]:
    """The rows of every batch of a run that ends by itself."""
    found: list[list[dict[str, Any]]] = []
    frame = read_stream(spark, stream)
    writer = frame.writeStream.foreachBatch(lambda batch, _: found.append(batch.toArrow().to_pylist()))
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(**trigger).start()
    query.awaitTermination()
    return found


def test_a_bounded_replay_gives_the_rows_of_the_local_engine(spark: SparkSession, tmp_path: Path) -> None:
    stream = recorded(tmp_path, speed="max")
    found = batches(spark, stream, tmp_path / "checkpoint", availableNow=True)
    local = open_input(stream).take(1000, 0.0)
    assert local is not None
    assert [row for batch in found for row in batch] == local.to_pylist()
    assert [row["n"] for row in local.to_pylist()] != list(range(200)), "delays must have changed the order"


def test_a_round_takes_no_more_rows_than_it_may(spark: SparkSession, tmp_path: Path) -> None:
    stream = recorded(tmp_path, max_rows=64, partitions="3")
    found = batches(spark, stream, tmp_path / "checkpoint", availableNow=True)
    assert [len(batch) for batch in found if batch] == [64, 64, 64, 8]


def test_rows_come_when_they_are_due_and_a_restart_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    """The first run plays so slowly that it cannot come to the end; the second does not wait."""
    found: dict[int, list[int]] = {}

    def numbers() -> list[int]:
        return [number for batch in sorted(found) for number in found[batch]]

    def take(batch: Any, at: int) -> None:
        # Stopped before it could write down that a batch was taken, Spark gives it again under its number.
        found[at] = batch.toArrow()["n"].to_pylist()

    def run(stream: Stream, until: int) -> None:
        writer = read_stream(spark, stream).writeStream.foreachBatch(take)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        while len(numbers()) < until and query.isActive:
            query.awaitTermination(1)
        query.stop()

    run(recorded(tmp_path, speed="0.01"), until=1)
    assert 0 < len(numbers()) < 200
    run(recorded(tmp_path, speed="max"), until=200)
    local = open_input(recorded(tmp_path, speed="max")).take(1000, 0.0)
    assert local is not None
    assert numbers() == local["n"].to_pylist()
