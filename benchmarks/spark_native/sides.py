"""The sides: Eventide, Eventide with the reduce by Spark SQL, Spark's `window`, its chain of panes, and reading alone.

All run in one session with one set of settings, read the same files with the same number of them a round, wait for the
same delay, and write Parquet files. A side is timed from the start of its streaming query to its end.

>>> [side.name for side in SIDES]
['eventide', 'eventide_sql', 'window', 'chain']
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, TypeAlias

from benchmarks.disorder import COLUMNS, SECOND, Disordered
from benchmarks.places import Places
from benchmarks.question import QUERY, Question
from eventide.engine.spark.engine import SparkEngine
from eventide.sinks.directory import Directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

KEPT_PROGRESS = "spark.sql.streaming.numRecentProgressUpdates"


@dataclass(frozen=True)
class Task(Places):
    """A question over files, `max_files` of them a round, and a folder for what comes of it."""

    question: Question
    data: Disordered
    max_files: int
    folder: Path


@dataclass(frozen=True)
class Ran:
    """A run that is over: how long it took, and the milliseconds of each of its rounds that had rows."""

    seconds: float
    round_ms: tuple[float, ...] = ()


Run: TypeAlias = "Callable[[SparkSession, Task], Ran]"


@dataclass(frozen=True)
class Side:
    """One that answers. `pattern`: its files of results; `complete`: whether a bounded run closes every window."""

    name: str
    run: Run
    pattern: str
    complete: bool


def eventide_engine(spark: SparkSession, task: Task, by_files: bool = True) -> SparkEngine:
    """Eventide, ready to start."""
    program = task.question.program(task.data, task.max_files)
    return SparkEngine(spark, program, task.checkpoint, {QUERY: Directory(task.results)}, by_files=by_files)


def _eventide(by_files: bool) -> Run:
    def run(spark: SparkSession, task: Task) -> Ran:
        with eventide_engine(spark, task, by_files) as engine:
            started = perf_counter()
            engine.start(bounded=True)
            query = next((query for query in spark.streams.active if (query.name or "").startswith("eventide")), None)
            engine.await_end()
            return Ran(perf_counter() - started, rounds_of(query) if query is not None else ())

    return run


def read(spark: SparkSession, task: Task) -> DataFrame:
    """The files as Spark streams them."""
    reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", task.max_files)
    return reader.parquet(str(task.data.folder))


def windowed(rows: DataFrame, question: Question, delay: int) -> DataFrame:
    """Spark's plain way: every row is copied into each of its windows."""
    from pyspark.sql import functions as f

    window = f.window("ts", f"{question.range} seconds", f"{question.slide} seconds")
    grouped = rows.withWatermark("ts", f"{delay // SECOND} seconds").groupBy(window, "k")
    return _named(grouped.agg(f.sum("v").alias("total"), f.count("*").alias("n"), f.max("v").alias("most")))


def chained(rows: DataFrame, question: Question, delay: int) -> DataFrame:
    """Spark's thorough way: first panes, then windows over the panes, each with a state of its own."""
    from pyspark.sql import functions as f

    pane = f.window("ts", f"{question.slide} seconds")
    panes = rows.withWatermark("ts", f"{delay // SECOND} seconds").groupBy(pane, "k")
    partial = panes.agg(f.sum("v").alias("total"), f.count("*").alias("n"), f.max("v").alias("most"))
    window = f.window(f.window_time("window"), f"{question.range} seconds", f"{question.slide} seconds")
    merged = partial.groupBy(window, "k")
    return _named(merged.agg(f.sum("total").alias("total"), f.sum("n").alias("n"), f.max("most").alias("most")))


def _named(answers: DataFrame) -> DataFrame:
    return answers.selectExpr("window.start AS window_start", "window.end AS window_end", "k", "total", "n", "most")


def native_writer(answers: DataFrame, task: Task) -> DataStreamWriter:
    """Spark's own sink for Parquet files, which shows a round's files all at once in its log."""
    writer = answers.writeStream.format("parquet").outputMode("append")
    return writer.option("path", str(task.results)).option("checkpointLocation", task.checkpoint)


def _native(answers: Callable[[DataFrame, Question, int], DataFrame]) -> Run:
    def run(spark: SparkSession, task: Task) -> Ran:
        frame = answers(read(spark, task), task.question, task.data.delay)
        return _to_the_end(native_writer(frame, task))

    return run


def scan(spark: SparkSession, task: Task) -> Ran:
    """Read the same columns and do nothing: as fast as Spark can stream these files."""
    writer = read(spark, task).writeStream.format("noop").option("checkpointLocation", task.checkpoint)
    return _to_the_end(writer)


def _to_the_end(writer: DataStreamWriter) -> Ran:
    started = perf_counter()
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return Ran(perf_counter() - started, rounds_of(query))


def rounds_of(query: StreamingQuery) -> tuple[float, ...]:
    """The milliseconds of every round that had rows, as Spark itself measured them, from trigger to commit.

    Spark's rounds without rows only move its watermark. Of files that Eventide reduces in tasks of
    its own Spark counts no row, and it runs no batch without new files.
    """
    ours = (query.name or "").startswith("eventide")
    return tuple(
        float(progress.durationMs["triggerExecution"])
        for progress in query.recentProgress
        if (progress.numInputRows or (ours and "addBatch" in progress.durationMs))
        and "triggerExecution" in progress.durationMs
    )


EVENTIDE = Side("eventide", _eventide(by_files=True), f"{QUERY}-*.parquet", complete=True)
EVENTIDE_SQL = Side("eventide_sql", _eventide(by_files=False), f"{QUERY}-*.parquet", complete=True)
WINDOW = Side("window", _native(windowed), "part-*.parquet", complete=False)
CHAIN = Side("chain", _native(chained), "part-*.parquet", complete=False)
SIDES = (EVENTIDE, EVENTIDE_SQL, WINDOW, CHAIN)
