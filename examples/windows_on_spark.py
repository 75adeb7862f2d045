"""A continuous query on Spark, from files to a result folder, over an hour of disorderly devices.

    python -m examples.windows_on_spark out/demo [--engine local]

The recording of `make_recording.py` is laid out as sixty files in the order of arrival, a minute each, and one file is
one round. Up to 1 % of the rows may be late; time follows from that alone. The demo prints the finals as they come,
then what was lost and where it is, and ends.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventide.engine.local_engine import LocalEngine
from eventide.engine.running import Running
from eventide.engine.spark_engine import SparkEngine
from eventide.engine.spark_session import local_session
from eventide.eventtime.drop_ratio import DropRatio
from eventide.plan.program import Program
from eventide.plan.query import Query, named_as
from eventide.plan.stream import Input, Stream, columns
from eventide.plan.window import Window
from eventide.sinks.console import Console
from eventide.sinks.directory import Directory
from eventide.sinks.sink import Sink
from examples.make_recording import recording

SECOND = 1_000_000
MINUTE = 60 * SECOND
TIMES = ("event_time", "arrival_time")


def write_minutes(rows: pa.Table, folder: Path) -> int:
    """One file for each minute of arrival; gives how many."""
    for name in TIMES:
        place = rows.column_names.index(name)
        rows = rows.set_column(place, name, rows.column(name).cast(pa.timestamp("us", "UTC")))
    minute = pc.cast(rows.column("arrival_time"), pa.int64()).to_numpy() // MINUTE
    folder.mkdir(parents=True)
    for number, value in enumerate(sorted(set(minute.tolist()))):
        pq.write_table(rows.filter(pa.array(minute == value)), folder / f"minute-{number:03}.parquet")
    return len(set(minute.tolist()))


def program(folder: Path) -> Program:
    """The stream of devices, and two queries over it: one reading serves both."""
    devices = Stream(
        "devices",
        columns("device STRING, event_time TIMESTAMP, arrival_time TIMESTAMP, value DOUBLE"),
        time="event_time",
        source=("device",),
        arrival="arrival_time",
        policy=DropRatio(0.01),
        input=Input("parquet", path=str(folder), max_files=1),
    )
    every_minute = Query(
        "every_minute",
        "devices",
        Window(5 * MINUTE, MINUTE),
        named_as(readings="count(*)", mean="round(avg(value), 3)", highest="max(value)"),
    )
    by_device = Query(
        "by_device",
        "devices",
        Window(10 * MINUTE),
        named_as(readings="count(*)", spread="round(stddev(value), 3)"),
        groups=named_as("device"),
        where="value > 0",
    )
    return Program((devices,), (every_minute, by_device))


def summary(engine: Running, folder: Path, rounds: int) -> str:
    """What was lost, and where it is."""
    status = engine.status()
    stream = status.streams[0]
    found = pq.read_table(folder / "results")
    return (
        f"\n{stream.rows:,} rows of {stream.sources} sources in {rounds} rounds on {status.engine}; "
        f"{found.num_rows:,} results in {folder / 'results'}\n"
        f"late: {stream.late:,} of {stream.wanted:,} wanted rows, {stream.drop_ratio:.2%} (1 % is permitted); "
        f"every one of them is in {folder / 'checkpoint' / 'late'}\n"
    )


def main() -> None:
    """Write the files, run to the end, and say what happened."""
    parser = argparse.ArgumentParser(description="A continuous query over an hour of generated devices.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    parser.add_argument("--master", default="local[*]", help="the Spark cluster (default: local[*])")
    asked = parser.parse_args()
    shutil.rmtree(asked.folder, ignore_errors=True)
    files = write_minutes(recording(), asked.folder / "input")
    sinks: dict[str, Sink] = {"every_minute": Console(), "by_device": Directory(str(asked.folder / "results"))}
    checkpoint = str(asked.folder / "checkpoint")
    if asked.engine == "local":
        engine: LocalEngine | SparkEngine = LocalEngine(program(asked.folder / "input"), checkpoint, sinks)
    else:
        print("starting Spark ...", file=sys.stderr)
        engine = SparkEngine(local_session(asked.master), program(asked.folder / "input"), checkpoint, sinks)
    engine.stop_on_signals()
    engine.start(bounded=True)
    engine.await_end()
    print(summary(engine, asked.folder, files))


if __name__ == "__main__":
    main()
