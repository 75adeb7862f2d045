"""How long a small round takes once warm: many files of a thousand rows, one a round, as Spark measures a trigger.

A round of Eventide closes its windows itself. Spark's only prepares that: its watermark moves with the next one. The
first half of a run warms up and does not count.

>>> warm((900.0, 800.0, 300.0, 100.0, 200.0, 150.0))
(100.0, 200.0, 150.0)
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.disorder import Disordered
from benchmarks.harness import say, show_table
from benchmarks.question import Question, Truth
from benchmarks.spark_native.sides import EVENTIDE, KEPT_PROGRESS, WINDOW, Task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SIDES = (EVENTIDE, WINDOW)


def warm(rounds: Sequence[float]) -> Sequence[float]:
    """The second half."""
    return rounds[len(rounds) // 2 :]


def measure(spark: SparkSession, question: Question, data: Disordered, repeats: int, folder: Path) -> dict[str, float]:
    """The median of a warm round, in milliseconds, by side."""
    spark.conf.set(KEPT_PROGRESS, str(len(data.files) + 10))
    truth = Truth(question, data)
    found: dict[str, list[float]] = {side.name: [] for side in SIDES}
    for turn in range(repeats):
        for side in SIDES:
            task = Task(question, data, 1, folder / f"rounds-{side.name}-{turn}")
            ran = side.run(spark, task)
            truth.check(side.name, str(task.results / side.pattern), side.complete)
            found[side.name] += warm(ran.round_ms)
            shutil.rmtree(task.folder)
    return {name: median(rounds) for name, rounds in found.items()}


def show(round_ms: dict[str, dict[str, float]], files: int) -> None:
    """Print milliseconds by question and side."""
    say(f"a warm round of one small file: the median of the second half of {files} rounds")
    show_table(
        "warm round, ms",
        ["windows", *(side.name for side in SIDES), "ratio"],
        [
            (name, *(f"{ms[side.name]:.0f}" for side in SIDES), f"{ms[EVENTIDE.name] / ms[WINDOW.name]:.2f}")
            for name, ms in round_ms.items()
        ],
    )
