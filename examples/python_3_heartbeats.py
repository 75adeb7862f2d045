"""Eventide's heartbeats as the watermark of a query that stays plain Spark.

    python -m examples.python_3_heartbeats out/python-3

The query is Spark's own, twice: with `withWatermark`, and with `eventide.heartbeats` in its place. Some of the devices
trail the others by minutes. A watermark that follows the largest time of all loses them; one that follows the progress
of each device does not, and waits for them instead.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import eventide
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.launch.spark_session import local_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "device STRING, ts TIMESTAMP, value DOUBLE"
SECOND = 1_000_000
START = 1_767_225_600 * SECOND
FILES, ROWS = 12, 600


def write_files(folder: Path) -> None:
    """Twelve minutes of six devices, a file a minute; devices 4 and 5 trail by three and five minutes."""
    folder.mkdir(parents=True)
    chance = np.random.default_rng(7)
    trails = np.array([0, 0, 0, 0, 180, 300]) * SECOND
    for minute in range(FILES):
        device = chance.integers(0, len(trails), ROWS)
        times = START + minute * 60 * SECOND + np.sort(chance.integers(0, 60 * SECOND, ROWS)) - trails[device]
        rows = {
            "device": pa.array([f"device-{number}" for number in device]),
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "value": chance.normal(20, 5, ROWS),
        }
        pq.write_table(pa.table(rows), folder / f"{minute:02}.parquet")


def closed(readings: DataFrame) -> tuple[str, int]:
    """The watermark in the end, and how many rows the closed windows of a minute held."""
    from pyspark.sql import functions as f

    held: list[int] = []

    def keep(batch: DataFrame, number: int) -> None:
        held.extend(batch.select("count").toArrow().column("count").to_pylist())

    minutes = readings.groupBy(f.window("ts", "1 minute"), "device").count()
    query = minutes.writeStream.foreachBatch(keep).start()
    query.processAllAvailable()
    watermark = str(query.recentProgress[-1]["eventTime"]["watermark"])
    query.stop()
    return watermark, sum(held)


def belong(folder: Path, watermark: str) -> int:
    """How many of all rows lie in windows that end at or before the watermark."""
    times = pq.read_table(folder).column("ts").to_numpy().astype("datetime64[us]").astype(np.int64)
    ends = times - times % (60 * SECOND) + 60 * SECOND
    return int((ends <= np.datetime64(watermark.removesuffix("Z"), "us").astype(np.int64)).sum())


def run(spark: SparkSession, folder: Path) -> None:
    """Write the files and run the query both ways."""
    write_files(folder / "input")
    readings = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(folder / "input"))
    ways = {
        "withWatermark, 1 minute": readings.withWatermark("ts", "1 minute"),
        "eventide.heartbeats": eventide.heartbeats(readings, time="ts", source="device", policy=OwnProgress()),
    }
    for name, frame in ways.items():
        watermark, held = closed(frame)
        lost = belong(folder / "input", watermark) - held
        print(f"{name}: closed up to {watermark}, {held:,} rows counted, {lost:,} lost", flush=True)


def main() -> None:
    """Run in a Spark of its own."""
    parser = argparse.ArgumentParser(description="Heartbeats for a query that stays plain Spark.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    spark = local_session()
    run(spark, folder)
    spark.stop()


if __name__ == "__main__":
    main()
