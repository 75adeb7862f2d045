"""The local engine beside the Spark engine: `python -m benchmarks.local_engine [--quick] [--json FILE]`.

The same program over the same files, the same number of them a round, Parquet files as sink, on this machine: DuckDB in
this process, or Spark with two cores. Engines take turns after a warm-up, and the median counts. Both must give every
right answer, or the benchmark fails.

The last line is one JSON object:

- `throughput_ratio`: rows a second of the local engine over those of the Spark engine, from start to end;
  `sql_throughput_ratio`: over those of the Spark engine when it leaves the reduce to Spark SQL, as it does for sources
  other than Parquet files.
- `small_round_ms`: a whole warm round of the local engine that reads, answers and commits one file of a thousand rows.
- `rows_per_second`, `small_round_steps_ms`: the figures behind them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import TYPE_CHECKING, Any

from benchmarks.bounded_run import to_the_end
from benchmarks.disorder import Disorder, Disordered
from benchmarks.harness import finish, options, say, scratch, show_table
from benchmarks.question import QUERY, SLIDING6, Truth
from eventide.engine.local.engine import LocalEngine
from eventide.engine.round.report import RoundReport
from eventide.engine.running import Running
from eventide.engine.spark.engine import SparkEngine
from eventide.launch.spark_session import local_session
from eventide.sinks.directory import Directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

GROUPS = 1000
FILES_A_ROUND = 2


@dataclass(frozen=True)
class Sizes:
    """How much is measured."""

    large: Disorder
    repeats: int
    small_files: int


QUICK = Sizes(Disorder(4_000_000, GROUPS, files=16, seconds=1600), 3, 200)
FULL = Sizes(Disorder(16_000_000, GROUPS, files=32, seconds=6400), 5, 1000)


def spark_engine(spark: SparkSession, data: Disordered, max_files: int, folder: Path, by_files: bool) -> SparkEngine:
    """The program on Spark."""
    program = SLIDING6.program(data, max_files)
    sinks = {QUERY: Directory(folder / "results")}
    return SparkEngine(spark, program, str(folder / "checkpoint"), sinks, by_files=by_files)


def local_engine(data: Disordered, max_files: int, folder: Path) -> LocalEngine:
    """The program in this process."""
    program = SLIDING6.program(data, max_files)
    return LocalEngine(program, str(folder / "checkpoint"), {QUERY: Directory(folder / "results")})


def throughput(spark: SparkSession, data: Disordered, repeats: int, folder: Path) -> dict[str, float]:
    """The median of rows a second, by engine."""
    engines: dict[str, Callable[[Disordered, Path], SparkEngine | LocalEngine]] = {
        "local": lambda rows, place: local_engine(rows, FILES_A_ROUND, place),
        "spark": lambda rows, place: spark_engine(spark, rows, FILES_A_ROUND, place, by_files=True),
        "spark_sql": lambda rows, place: spark_engine(spark, rows, FILES_A_ROUND, place, by_files=False),
    }
    warming = data.first(3 * FILES_A_ROUND, folder / "warming")
    for name, make in engines.items():
        to_the_end(make(warming, folder / f"warm-{name}"))
    truth = Truth(SLIDING6, data)
    rates: dict[str, list[float]] = {name: [] for name in engines}
    for turn in range(repeats):
        for name, make in engines.items():
            place = folder / f"{name}-{turn}"
            rates[name].append(data.rows / to_the_end(make(data, place)))
            truth.check(name, str(place / "results" / f"{QUERY}-*.parquet"), complete=True)
            shutil.rmtree(place)
    return {name: median(found) for name, found in rates.items()}


class Rounds:
    """When rounds ended, and how long each of their steps took.

    >>> rounds = Rounds(lambda: 0.5)
    >>> rounds.ends += [0.1, 0.2, 0.23, 0.25]
    >>> round(rounds.warm_ms(), 1)
    25.0
    """

    def __init__(self, clock: Callable[[], float] = perf_counter) -> None:
        self.ends: list[float] = []
        self.steps: list[dict[str, float]] = []
        self._clock = clock

    def watch(self, engine: Running) -> None:
        """Note every round of an engine from now on."""
        engine.on_round(self._note)

    def _note(self, work: RoundReport) -> None:
        if work.rows:
            self.ends.append(self._clock())
            self.steps.append(dict(work.seconds))

    def warm_ms(self) -> float:
        """The median from end to end, of the second half."""
        ends = self.ends[len(self.ends) // 2 - 1 :]
        return 1000 * median(after - before for before, after in pairwise(ends))

    def warm_steps_ms(self) -> dict[str, float]:
        """The median of each step, of the second half."""
        warm = self.steps[len(self.steps) // 2 :]
        return {name: 1000 * median(step[name] for step in warm) for name in warm[0]}


def small_rounds(data: Disordered, folder: Path) -> Rounds:
    """One small file a round on the local engine."""
    engine = local_engine(data, 1, folder)
    rounds = Rounds()
    rounds.watch(engine)
    to_the_end(engine)
    Truth(SLIDING6, data).check("local", str(folder / "results" / f"{QUERY}-*.parquet"), complete=True)
    return rounds


def measure(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Make the files, measure, show."""
    say(f"making {sizes.large.rows:,} rows of {GROUPS} groups")
    data = sizes.large.into(folder / "large")
    many = Disorder(1000 * sizes.small_files, GROUPS, sizes.small_files, 10 * sizes.small_files, mean_delay=1.0)
    rounds = small_rounds(many.into(folder / "many"), folder / "small")
    spark = local_session("local[2]", log_file=folder / "spark.log")
    try:
        rates = throughput(spark, data, sizes.repeats, folder)
    finally:
        spark.stop()
    show_table("rows a second", ["engine", "rows/s"], [(name, f"{rate:,.0f}") for name, rate in rates.items()])
    steps = rounds.warm_steps_ms()
    show_table(
        "a small round of the local engine, ms",
        ["whole", *steps],
        [(f"{rounds.warm_ms():.2f}", *(f"{ms:.2f}" for ms in steps.values()))],
    )
    return {
        "throughput_ratio": rates["local"] / rates["spark"],
        "sql_throughput_ratio": rates["local"] / rates["spark_sql"],
        "small_round_ms": rounds.warm_ms(),
        "rows_per_second": rates,
        "small_round_steps_ms": steps,
        "rows": data.rows,
    }


def main() -> None:
    """Measure, show, and end with the line of JSON."""
    asked = options("the local engine beside the Spark engine")
    with scratch() as folder:
        results = measure(QUICK if asked.quick else FULL, folder)
    finish(asked, results)


if __name__ == "__main__":
    main()
