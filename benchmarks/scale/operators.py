"""Every operator at 1x, 4x and 16x data on the Spark engine, with state that is larger than the driver's memory for it.

With four times the data the story is four times as long, heartbeats trail four times as far behind (so that four times
as much waits for them), and twice as many rounds take twice as many rows each. Input are Parquet files, results go into
a directory of them. All sizes of one operator run in a process of their own, one after the other, the smallest first;
files are made in another one, and whoever calls compares the results.
"""

from __future__ import annotations

import gc
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.bounded_run import to_the_end
from benchmarks.disorder import SECOND, Disorder, Disordered
from benchmarks.harness import say, show_table
from benchmarks.processes import PeakMemory, elsewhere, jvm_of
from benchmarks.scale.answers import batch, given
from benchmarks.scale.questions import ANSWERS, QUESTIONS, Question
from eventide.engine.round.report import RoundReport
from eventide.engine.spark.engine import SparkEngine
from eventide.launch.spark_session import local_session
from eventide.sinks.directory import Directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCALES = (1, 4, 16)
HELD = 0.75
"""Heartbeats trail so far behind, as a share of the story."""


@dataclass(frozen=True)
class Sizes:
    """Rows of all streams at 16x, of wide questions and of others; rounds at 1x; rows a second of the story."""

    wide_rows: int
    rows: int
    rounds: int
    rate: int
    driver_memory: int

    def seconds(self, question: Question, scale: int) -> int:
        """How long the story is."""
        return (self.wide_rows if question.wide else self.rows) * scale // SCALES[-1] // self.rate

    def streams(self, question: Question, scale: int) -> tuple[Disorder, ...]:
        """The streams of a question, each with a file for every round."""
        seconds = self.seconds(question, scale)
        rows, keys = seconds * self.rate // question.inputs, question.sources or 5 * self.rate
        files = self.rounds * isqrt(scale)
        return tuple(Disorder(rows, keys, files, seconds, seed=seed) for seed in range(1, question.inputs + 1))


TINY = Sizes(wide_rows=32_000, rows=32_000, rounds=2, rate=100, driver_memory=16 * 2**10)
QUICK = Sizes(wide_rows=4_800_000, rows=3_200_000, rounds=4, rate=4_000, driver_memory=4 * 2**20)
FULL = Sizes(wide_rows=40_000_000, rows=20_000_000, rounds=8, rate=4_000, driver_memory=4 * 2**20)


@dataclass(frozen=True)
class Run:
    """One run: its size, how long it took, and the most that was held: by Python, by Spark's driver, as state."""

    scale: int
    rows: int
    seconds: float
    python_mb: float
    jvm_mb: float
    state_mb: float
    on_cluster: bool


@dataclass(frozen=True)
class Measured:
    """The runs of one question, smallest first, and whether each gave the batch answer; `failure` if one failed."""

    question: str
    runs: tuple[Run, ...] = ()
    results: int = 0
    equal: bool = False
    failure: str = ""

    @property
    def rss_growth(self) -> float:
        """Memory of the Python driver, largest over smallest data."""
        return self.runs[-1].python_mb / self.runs[0].python_mb

    @property
    def cost_growth(self) -> float:
        """Seconds a row, largest over smallest data."""
        first, last = self.runs[0], self.runs[-1]
        return last.seconds / last.rows / (first.seconds / first.rows)


class Watch:
    """The largest state that the status tells of after a round, and whether it was on the cluster."""

    def __init__(self, engine: SparkEngine) -> None:
        self.bytes = 0
        self.on_cluster = False
        self._engine = engine
        engine.on_round(self._note)

    def _note(self, report: RoundReport) -> None:
        queries = self._engine.status().queries
        self.bytes = max(self.bytes, sum(query.state_bytes for query in queries))
        self.on_cluster |= any(query.placement == "cluster" for query in queries)


def made(
    question: Question, sizes: Sizes, folder: Path, scales: Sequence[int] = SCALES
) -> dict[int, tuple[Disordered, ...]]:
    """Make the files of all scales."""
    return {
        scale: tuple(
            stream.into(folder / f"{scale}x" / str(place))
            for place, stream in enumerate(sizes.streams(question, scale))
        )
        for scale in scales
    }


def run(
    spark: SparkSession, question: Question, data: tuple[Disordered, ...], scale: int, sizes: Sizes, folder: Path
) -> Run:
    """One bounded run from start to end; its results stay."""
    gc.collect()
    pa.default_memory_pool().release_unused()
    engine = SparkEngine(
        spark,
        question.program(data, int(HELD * sizes.seconds(question, scale) * SECOND)),
        str(folder / "checkpoint"),
        {ANSWERS: Directory(folder / "results")},
        driver_memory=sizes.driver_memory,
    )
    watch, jvm, rows = Watch(engine), jvm_of(spark), sum(one.rows for one in data)
    with PeakMemory([os.getpid(), jvm]) as peak:
        seconds = to_the_end(engine)
    shutil.rmtree(folder / "checkpoint")
    return Run(scale, rows, seconds, peak.mb[os.getpid()], peak.mb[jvm], watch.bytes / 2**20, watch.on_cluster)


def measured_here(name: str, data: dict[int, tuple[Disordered, ...]], sizes: Sizes, folder: Path) -> tuple[Run, ...]:
    """Warm up, then run a question at every scale, in a session of Spark of its own; for `elsewhere`."""
    question = named(name)
    spark = local_session("local[2]", log_file=folder / "spark.log")
    try:
        some = tuple(one.first(2, folder / "warming" / str(place)) for place, one in enumerate(data[1]))
        run(spark, question, some, 1, sizes, folder / "warm")
        return tuple(run(spark, question, of, scale, sizes, folder / f"run-{scale}") for scale, of in data.items())
    finally:
        spark.stop()


def measured(spark: SparkSession, question: Question, sizes: Sizes, folder: Path) -> Measured:
    """A question at every scale, compared with Spark's batch answer, which this process asks for."""
    try:
        data = elsewhere(made_by_name, question.name, sizes, folder / "in")
        runs = elsewhere(measured_here, question.name, data, sizes, folder)
        results, equal = 0, True
        for scale, of in data.items():
            right, (found, in_order) = (
                batch(spark, question, of),
                given(spark, question, folder / f"run-{scale}/results"),
            )
            results, equal = found.rows, equal and in_order and found == right and found.rows > 0
            if found != right or not in_order:
                say(f"{question.name} at {scale}x: {found} where {right} is right; rounds in order: {in_order}")
        return Measured(question.name, runs, results, equal)
    except Exception as failure:
        # The others are measured all the same.
        say(f"{question.name} failed: {failure}")
        return Measured(question.name, failure=str(failure).splitlines()[0] if str(failure) else repr(failure))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def made_by_name(name: str, sizes: Sizes, folder: Path) -> dict[int, tuple[Disordered, ...]]:
    """Make the files of a question, for `elsewhere`."""
    return made(named(name), sizes, folder)


def named(name: str) -> Question:
    """The question of a name: that can be sent to another process, the functions of a question cannot.

    >>> named("merge").ordered
    True
    """
    return next(question for question in QUESTIONS if question.name == name)


def measure(names: Sequence[str], sizes: Sizes, folder: Path) -> list[Measured]:
    """The named questions, one after the other."""
    spark = local_session("local[2]", log_file=folder / "batch.log")
    try:
        found = [
            measured(spark, question, sizes, folder / question.name) for question in QUESTIONS if question.name in names
        ]
    finally:
        spark.stop()
    show(found, sizes)
    return found


def headline(found: Sequence[Measured], driver_memory: int) -> dict[str, Any]:
    """The keys of the last line that are about operators."""
    ran = [one for one in found if one.runs]
    return {
        "driver_rss_growth": {one.question: one.rss_growth for one in ran},
        "driver_rss_mb": max((run.python_mb for one in ran for run in one.runs), default=0.0),
        "seconds_per_row_growth": {one.question: one.cost_growth for one in ran},
        "rows_equal": all(one.equal for one in found),
        "state_over_budget": {one.question: one.runs[-1].state_mb * 2**20 / driver_memory for one in ran},
        "operator_rows_per_second": {one.question: [run.rows / run.seconds for run in one.runs] for one in ran},
        "operator_rss_mb": {one.question: [run.python_mb for run in one.runs] for one in ran},
        "failed": {one.question: one.failure for one in found if one.failure},
    }


def show(found: Sequence[Measured], sizes: Sizes) -> None:
    """Print one line for each run."""
    show_table(
        f"operators, {sizes.driver_memory / 2**20:.3g} MB of the driver's memory for state",
        ["operator", "data", "rows", "rows/s", "Python MB", "JVM MB", "state MB", "state is", "batch answer"],
        [
            (
                one.question,
                f"{run.scale}x",
                f"{run.rows:,}",
                f"{run.rows / run.seconds:,.0f}",
                f"{run.python_mb:.0f}",
                f"{run.jvm_mb:.0f}",
                f"{run.state_mb:.1f}",
                "on the cluster" if run.on_cluster else "with the driver",
                "equal" if one.equal else "DIFFERS",
            )
            for one in found
            for run in one.runs
        ],
    )
