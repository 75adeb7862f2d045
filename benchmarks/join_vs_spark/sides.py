"""Both sides of a join: each reads the same files, as many of them a round, and writes Parquet files.

Rows are told before the end of a bounded run, or at it: Eventide closes everything then, Spark never does. What counts
for waiting is what is told before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from benchmarks.bounded_run import to_the_end
from benchmarks.disorder import COLUMNS, Disordered
from benchmarks.join_vs_spark.questions import JOINED, Inputs, Question
from benchmarks.places import Places
from eventide.engine.operators.placement import DRIVER_MEMORY
from eventide.engine.spark.engine import SparkEngine
from eventide.sinks.directory import Directory

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Task(Places):
    """A join of files, `max_files` of each stream a round, and a folder for what comes of it.

    `driver_memory`: the driver's memory for the state of Eventide.
    """

    question: Question
    inputs: Inputs
    max_files: int
    folder: Path
    driver_memory: int = DRIVER_MEMORY


@dataclass(frozen=True)
class Side:
    """One that answers; `run` gives the seconds it took, `pattern` names its files."""

    name: str
    run: Callable[[SparkSession, Task], float]
    pattern: str


def _eventide(spark: SparkSession, task: Task) -> float:
    program = task.question.program(task.inputs, task.max_files)
    sinks = {JOINED: Directory(task.results)}
    return to_the_end(SparkEngine(spark, program, task.checkpoint, sinks, driver_memory=task.driver_memory))


def _native(spark: SparkSession, task: Task) -> float:
    def read(data: Disordered) -> DataFrame:
        reader = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", task.max_files)
        return reader.parquet(str(data.folder))

    joined = task.question.frames(read(task.inputs.left), read(task.inputs.right), task.inputs.delay)
    writer = joined.writeStream.format("parquet").outputMode("append").option("path", str(task.results))
    begin = perf_counter()
    writer.option("checkpointLocation", task.checkpoint).trigger(availableNow=True).start().awaitTermination()
    return perf_counter() - begin


EVENTIDE = Side("eventide", _eventide, f"{JOINED}-*.parquet")
NATIVE = Side("spark", _native, "part-*.parquet")
SIDES = (EVENTIDE, NATIVE)
