"""Rows a second of every side on every question, from start to end of a bounded run.

Each side runs once over some of the files to warm up; then sides take turns, so that what disturbs the machine disturbs
all of them, and the median counts. The results of every run are compared with the truth.

>>> measured = Throughput({("sliding6", "eventide"): [4.0, 2.0, 3.0], ("sliding6", "window"): [1.0]}, 1_000, {})
>>> measured.rate("sliding6", "eventide"), measured.ratio("sliding6", "window")
(3.0, 3.0)
>>> measured.ratio("sliding6", "chain") is None
True
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.disorder import Disordered
from benchmarks.harness import say, show_table
from benchmarks.question import QUESTIONS, TUMBLING, Question, Truth
from benchmarks.spark_native.sides import CHAIN, EVENTIDE, SIDES, Side, Task, scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCAN = "noop"


@dataclass(frozen=True)
class Throughput:
    """Rows a second by question and side, one figure a run; the rows of the files; results compared by side."""

    rates: dict[tuple[str, str], list[float]]
    rows: int
    compared: dict[tuple[str, str], int]

    def rate(self, question: str, side: str) -> float | None:
        """The median; None where the side was not run."""
        found = self.rates.get((question, side))
        return median(found) if found else None

    def ratio(self, question: str, over: str, side: str = EVENTIDE.name) -> float | None:
        """The rate of a side, Eventide's if not told, over that of another."""
        ours, theirs = self.rate(question, side), self.rate(question, over)
        return ours / theirs if ours is not None and theirs else None


def sides_of(question: Question) -> Sequence[Side]:
    """The sides that differ: a window of one pane needs no chain.

    >>> [side.name for side in sides_of(TUMBLING)]
    ['eventide', 'eventide_sql', 'window']
    """
    return [side for side in SIDES if side is not CHAIN or question.panes_per_window > 1]


def measure(
    spark: SparkSession,
    data: Disordered,
    max_files: int,
    repeats: int,
    folder: Path,
    questions: Sequence[Question] = QUESTIONS,
) -> Throughput:
    """Warm up, take turns, compare; a line for every run, since some take minutes."""
    rates: dict[tuple[str, str], list[float]] = {}
    compared: dict[tuple[str, str], int] = {}
    warming = data.first(2 * max_files, folder / "warming")
    for question in questions:
        truth = Truth(question, data)
        for side in sides_of(question):
            side.run(spark, Task(question, warming, max_files, folder / f"warm-{question.name}-{side.name}"))
        for turn in range(repeats):
            for side in sides_of(question):
                task = Task(question, data, max_files, folder / f"{question.name}-{side.name}-{turn}")
                ran = side.run(spark, task)
                rates.setdefault((question.name, side.name), []).append(data.rows / ran.seconds)
                say(f"{question.name}, {side.name}, run {turn + 1} of {repeats}: {data.rows / ran.seconds:,.0f} rows/s")
                compared[question.name, side.name] = truth.check(
                    side.name, str(task.results / side.pattern), side.complete
                )
                shutil.rmtree(task.folder)
            if question is TUMBLING:
                task = Task(question, data, max_files, folder / f"{SCAN}-{turn}")
                rates.setdefault((question.name, SCAN), []).append(data.rows / scan(spark, task).seconds)
    return Throughput(rates, data.rows, compared)


def show(measured: Throughput) -> None:
    """Print rows a second, one line for each question."""
    names = [side.name for side in SIDES] + [SCAN]
    show_table(
        f"rows a second, {measured.rows:,} rows; eventide_sql: reduce by Spark SQL; chain: two operators, panes then "
        f"windows; {SCAN}: only reads",
        ["windows", *names, "over window", "over chain", "results compared"],
        [
            (
                f"{question.name} ({question.range} s every {question.slide} s)",
                *(_cell(measured.rate(question.name, name), ",.0f") for name in names),
                _cell(measured.ratio(question.name, "window"), ".2f"),
                _cell(measured.ratio(question.name, "chain"), ".2f"),
                " / ".join(f"{measured.compared[question.name, side.name]:,}" for side in sides_of(question)),
            )
            for question in QUESTIONS
            if measured.rate(question.name, EVENTIDE.name)
        ],
    )


def _cell(figure: float | None, format: str) -> str:
    return "" if figure is None else f"{figure:{format}}"
