"""A query from Python over a streaming DataFrame, with PySpark's own functions.

    python -m examples.python_2_spark out/python-2

The recording of `make_recording.py` is laid out as sixty files, a minute of arrivals each; five of them are one round.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import eventide
from eventide.api.query import ContinuousQuery
from eventide.engine.spark_session import local_session
from examples.make_recording import recording
from examples.windows_on_spark import write_minutes

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "device STRING, event_time TIMESTAMP, arrival_time TIMESTAMP, value DOUBLE"


def spread(readings: DataFrame) -> ContinuousQuery:
    """How far the values of each device lie apart, every ten minutes."""
    from pyspark.sql import functions as f

    devices = eventide.stream(readings, time="event_time", source="device", arrival="arrival_time", name="devices")
    return (
        devices.drop_ratio(0.01)
        .where(f.col("value") > 0)
        .window("10 minutes")
        .groupBy("device")
        .agg(f.round(f.max("value") - f.min("value"), 2).alias("spread"), readings="count(*)")
        .orderBy(f.desc("spread"))
        .limit(3)
    )


def run(spark: SparkSession, folder: Path) -> None:
    """Write the files, take them all, and show the results as a DataFrame."""
    write_minutes(recording(), folder / "input")
    readings = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 5).parquet(str(folder / "input"))
    with spread(readings).start(folder / "results", folder / "checkpoint", name="spread", bounded=True) as running:
        running.awaitTermination()
        running.toDF(spark).select("window_end", "device", "spread", "readings").show(9, truncate=False)
        stream = running.status().streams[0]
        print(f"{stream.late:,} of {stream.wanted:,} rows came too late: they are in {folder / 'checkpoint' / 'late'}")


def main() -> None:
    """Run in a Spark of its own."""
    parser = argparse.ArgumentParser(description="A query over a streaming DataFrame.")
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    shutil.rmtree(folder, ignore_errors=True)
    spark = local_session()
    run(spark, folder)
    spark.stop()


if __name__ == "__main__":
    main()
