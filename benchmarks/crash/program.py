"""The program that is killed: seven queries over three streams, one of them over another, an outer join, an ordered
merge and a lookup, with late rows, rejects and revisions.

Law: but for the times of `visits`, which are the clock's, every result follows from the recording alone, down to the
round that tells it. So what an uninterrupted run shows is what every other must show.

`python -m benchmarks.crash.program FOLDER` runs it to its end, on the recording in FOLDER, from the checkpoint there.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.crash.moment import QUERIES, Moment
from benchmarks.crash.recording import SECOND
from eventide.engine.local.engine import LocalEngine
from eventide.engine.operators.placement import DRIVER_MEMORY
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.plan.declared.join import Band, Join, JoinKind, Lookup, Side
from eventide.plan.declared.program import Operator, Program
from eventide.plan.declared.query import Query, named_as, order_by
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Input, Stream, Timestamps, columns
from eventide.plan.declared.window import RowWindow, Window
from eventide.sinks.directory import Directory
from eventide.sinks.sink import Sink
from eventide.storage.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from eventide.engine.spark.engine import SparkEngine

OUT, CHECKPOINT = "out", "checkpoint"


def program(folder: Path, chosen: Sequence[str] = QUERIES) -> Program:
    """The streams and queries over the recording in a folder; or only these queries, and their streams.

    `levels`, `in_order` and `known` read `sliding`, and cannot be chosen without it.
    """

    def files(stream: str) -> Input:
        return Input("parquet", str(folder / stream), max_files=1)

    readings = Stream(
        "readings",
        columns("ts TIMESTAMP, arrived TIMESTAMP, device STRING, value INT"),
        time="ts",
        source=("device",),
        arrival="arrived",
        policy=DropRatio(0.05),
        input=files("readings"),
    )
    numbers = Stream(
        "numbers", columns("n BIGINT, amount BIGINT"), time="n", policy=FixedDelay(30), input=files("numbers")
    )
    visits = Stream("visits", columns("page STRING"), timestamps=Timestamps.INTERNAL, input=files("visits"))
    sums = named_as(n="count(*)", total="sum(value)", most="max(value)", mean="avg(value)")
    queries: tuple[Query, ...] = (
        Query("sliding", "readings", Window(60 * SECOND, 20 * SECOND), sums, named_as("device")),
        Query("revised", "readings", Window(30 * SECOND), sums, retain=90 * SECOND),
        Query("distinct", "readings", Window(40 * SECOND), named_as(different="count(DISTINCT value)")),
        Query("by_rows", "numbers", RowWindow(70, 30), named_as(total="sum(amount)", last="max(n)")),
        Query(
            "levels",
            "sliding",
            Window(90 * SECOND, 30 * SECOND),
            named_as(windows="count(*)", most="max(total)", different="count(DISTINCT most)"),
            named_as("device"),
            order=order_by("most DESC"),
            limit=3,
        ),
        Query("by_device", "readings", Window(50 * SECOND), sums, named_as("device"), by_source=True),
        Query("by_clock", "visits", Window(1_000), named_as(n="count(*)"), named_as("page")),
    )
    operators: tuple[Operator, ...] = (
        Join(
            "paired",
            Side("readings", "high", keys=("device",), where="value > 900"),
            Side("readings", "low", keys=("device",), where="value < 50"),
            bands=(Band("ts", "ts", -2 * SECOND, 5 * SECOND),),
            kind=JoinKind.FULL,
            select=named_as(device="coalesce(high.device, low.device)", high="high.value", low="low.value"),
        ),
        Rows("in_order", ("readings", "sliding"), named_as("device")),
        Lookup(
            "known",
            Side("readings", "r", keys=("device",)),
            Side("sliding", "s", keys=("device",)),
            keeps_all=True,
            select=named_as(device="r.device", value="r.value", mean="s.mean"),
        ),
    )
    queries = tuple(query for query in queries if query.name in chosen)
    operators = tuple(operator for operator in operators if operator.name in chosen)
    used = {*(query.stream for query in queries), *(name for operator in operators for name in operator.inputs)}
    return Program(tuple(one for one in (readings, numbers, visits) if one.name in used), queries, operators)


def engine(
    folder: Path,
    spark: SparkSession | None = None,
    moment: Moment | None = None,
    chosen: Sequence[str] = QUERIES,
    remote: bool = False,
    **options: Any,
) -> LocalEngine | SparkEngine:
    """An engine for the program, on the recording and the checkpoint in a folder; it dies at the moment, if any.

    `remote`: the checkpoint is reached as in a store elsewhere.
    """
    declared = program(folder, chosen)
    sink: Sink = Directory(folder / OUT)
    told = [step.name for step in (*declared.queries, *declared.operators)]
    sinks = {name: moment.watching(sink, name) if moment else sink for name in told}
    options |= {"observer": moment.after_step} if moment else {}
    made: LocalEngine | SparkEngine
    storage = remote_storage(folder) if remote else Storage.at(str(folder / CHECKPOINT))
    if spark is None:
        made = LocalEngine(declared, storage, sinks, **options)
    else:
        from eventide.engine.spark.engine import SparkEngine

        made = SparkEngine(spark, declared, storage, sinks, **options)
    if moment:
        moment.watch(made.engine.checkpoint.storage)
    return made


def remote_storage(folder: Path) -> Storage:
    """The folder of the checkpoint as a file system of Arrow's, with a lease in the place of a lock."""
    from pyarrow.fs import LocalFileSystem

    from eventide.storage.remote import RemoteStorage

    path = str((folder / CHECKPOINT).absolute())
    return RemoteStorage(LocalFileSystem(), path, f"file://{path}", by_renaming=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """One life of the program, from where the last one ended."""
    parser = argparse.ArgumentParser(description="the program that the crash test kills")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--engine", choices=("local", "spark"), default="local")
    parser.add_argument("--master", default="local[2]")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="a setting of Spark")
    parser.add_argument("--driver-memory", type=int, default=DRIVER_MEMORY, help="the driver's memory for state")
    parser.add_argument("--remote", action="store_true", help="reach the checkpoint as in a store elsewhere")
    parser.add_argument("--query", action="append", choices=QUERIES, help="only these (default: all)")
    parser.add_argument("--moment", type=Moment.of, help=f"die there: {Moment.FORMS}")
    parser.add_argument("--endless", action="store_true", help="go on until SIGINT or SIGTERM")
    parser.add_argument("--tell", action="store_true", help="print the number of every round")
    asked = parser.parse_args(arguments)
    spark = None
    if asked.engine == "spark":
        from eventide.launch.spark_session import local_session

        settings = dict(setting.split("=", 1) for setting in asked.conf)
        spark = local_session(asked.master, settings, log_file=asked.folder / "spark.log")
    placed = {} if spark is None else {"driver_memory": asked.driver_memory}
    running = engine(asked.folder, spark, asked.moment, asked.query or QUERIES, asked.remote, **placed)
    if asked.tell:
        running.on_round(lambda work: print(f"round {work.number}", flush=True))
    running.stop_on_signals()
    running.start(bounded=not asked.endless).await_end()
    if spark is not None:
        spark.stop()


if __name__ == "__main__":
    main()
