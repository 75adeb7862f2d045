"""A query from Python over a streaming DataFrame, with PySpark's own functions.

    python -m examples.python_2_spark out/python-2

The freeway traffic of `freeway.py` is laid out as files of 5 seconds of arrivals each; thirty of them are one round.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import eventide
from eventide.api.query import ContinuousQuery
from eventide.launch.spark_session import local_session
from examples.freeway import readings, write_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "detector STRING, highway STRING, direction STRING, ts TIMESTAMP, arrived TIMESTAMP, cars INT, speed DOUBLE"


def spread(rows: DataFrame) -> ContinuousQuery:
    """How far the speeds of each road lie apart, every ten minutes."""
    from pyspark.sql import functions as f

    traffic = eventide.stream(rows, time="ts", source="detector", arrival="arrived", name="traffic")
    return (
        traffic.drop_ratio(0.01)
        .idle_after("1 minute")
        .where(f.col("cars") > 0)
        .window("5 minutes")
        .groupBy("highway", "direction")
        .agg(f.round(f.max("speed") - f.min("speed"), 1).alias("spread"), readings="count(*)")
        .orderBy(f.desc("spread"))
        .limit(3)
    )


def run(spark: SparkSession, folder: Path) -> None:
    """Write the files, take them all, and show the results as a DataFrame."""
    write_files(readings(), folder / "input")
    rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 30).parquet(str(folder / "input"))
    with spread(rows).start(folder / "results", folder / "checkpoint", name="spread", bounded=True) as running:
        running.awaitTermination()
        running.toDF(spark).select("window_end", "highway", "direction", "spread", "readings").show(9, truncate=False)
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
