"""Window aggregates as their state grows: by groups, by open slices, and by both.

- groups: from a thousand to a million, with one slice open (a second one while time passes its edge);
- slices: from 1 to 60 open at a time, because time trails further and further behind;
- both: a million groups and 60 open slices, so much state that it moves to the cluster; and, to compare, the same with
  everything kept on the driver.

Every answer is compared with the right one. Memory is the most that the process of Python and that of Spark's driver
held while they ran. Files are made and answers are checked in other processes, which are gone by then.
"""

from __future__ import annotations

import gc
import os
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from benchmarks.bounded_run import to_the_end
from benchmarks.disorder import SECOND, Disorder, Disordered
from benchmarks.harness import say, show_table
from benchmarks.processes import PeakMemory, elsewhere, jvm_of
from benchmarks.question import QUERY, TUMBLING, Truth
from eventide.engine.operators.placement import DRIVER_MEMORY
from eventide.engine.round.report import RoundReport
from eventide.engine.spark.engine import SparkEngine
from eventide.launch.spark_session import local_session
from eventide.sinks.directory import Directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES_A_ROUND = 2
MEAN_DELAY = 0.2
MOST_GROUPS = 1_000_000
MOST_SLICES = 60
NO_LIMIT = 2**62


@dataclass(frozen=True)
class Sizes:
    """How much is measured: rows of the three tables and of a file, groups and open slices, the driver's share."""

    rows_by_groups: int
    rows_by_slices: int
    rows_of_both: int
    rows_a_file: int
    groups: tuple[int, ...]
    slices: tuple[int, ...]
    driver_memory: int


TINY = Sizes(2_000, 2_000, 2_000, 500, (10, 100), (1, MOST_SLICES), 2**10)
QUICK = Sizes(2_000_000, 1_500_000, 3_000_000, 125_000, (1_000, 30_000, MOST_GROUPS), (1, MOST_SLICES), 32 * 2**20)
FULL = Sizes(
    16_000_000, 12_000_000, 24_000_000, 500_000, (1_000, 10_000, 100_000, MOST_GROUPS), (1, 6, 20, MOST_SLICES),
    DRIVER_MEMORY,
)  # fmt: skip
GROUPS_OF_SLICES = 10_000
PANES_OF_GROUPS = 8
PANES_OF_SLICES = 120


@dataclass(frozen=True)
class Cell:
    """One run: what was asked for, how long it took, and the most that was held."""

    groups: int
    slices: int
    rows: int
    seconds: float
    python_mb: float
    jvm_mb: float
    most_open: int
    most_state_mb: float
    switched_at_mb: float | None

    @property
    def seconds_per_row(self) -> float:
        """What a row costs."""
        return self.seconds / self.rows


class StateWatch:
    """What the status says after each round: open slices, bytes, and where the slices are."""

    def __init__(self, engine: SparkEngine) -> None:
        self.most_open = 0
        self.most_bytes = 0
        self.switched_at: int | None = None
        self._engine = engine
        self._on_driver = 0
        engine.on_round(self._note)

    def _note(self, work: RoundReport) -> None:
        (query,) = self._engine.status().queries
        self.most_open = max(self.most_open, query.open_slices)
        self.most_bytes = max(self.most_bytes, query.state_bytes)
        if query.placement == "driver":
            self._on_driver = query.state_bytes
        elif self.switched_at is None:
            self.switched_at = self._on_driver


def made(disorder: Disorder, folder: Path) -> Disordered:
    """Make files, for `elsewhere`."""
    return disorder.into(folder)


def checked(data: Disordered, results: str) -> int:
    """Compare results, for `elsewhere`."""
    return Truth(TUMBLING, data).check("eventide", results, complete=True)


def trailing(data: Disordered, slices: int) -> Disordered:
    """The same files, for a policy that trails so far behind that about `slices` slices are open.

    >>> data = Disordered(Path("in"), (), rows=0, delay=3 * SECOND)
    >>> trailing(data, 1).delay // SECOND, trailing(data, 60).delay // SECOND
    (3, 593)
    """
    return replace(data, delay=data.delay + (slices - 1) * TUMBLING.slide * SECOND)


def disorder(rows: int, groups: int, panes: int, rows_a_file: int) -> Disorder:
    """Rows over so many slices.

    >>> disorder(1_000_000, 10, panes=8, rows_a_file=125_000).files
    8
    """
    return Disorder(rows, groups, max(1, rows // rows_a_file), panes * TUMBLING.slide, MEAN_DELAY)


def run(spark: SparkSession, data: Disordered, groups: int, slices: int, driver_memory: int, folder: Path) -> Cell:
    """One bounded run from start to end; its results are checked and removed."""
    late = trailing(data, slices)
    gc.collect()
    pa.default_memory_pool().release_unused()
    engine = SparkEngine(
        spark,
        TUMBLING.program(late, FILES_A_ROUND),
        str(folder / "checkpoint"),
        {QUERY: Directory(folder / "results")},
        driver_memory=driver_memory,
    )
    watch = StateWatch(engine)
    jvm = jvm_of(spark)
    with PeakMemory([os.getpid(), jvm]) as peak:
        seconds = to_the_end(engine)
    elsewhere(checked, data, str(folder / "results" / f"{QUERY}-*.parquet"))
    shutil.rmtree(folder)
    switched = None if watch.switched_at is None else watch.switched_at / 2**20
    return Cell(
        groups,
        slices,
        data.rows,
        seconds,
        peak.mb[os.getpid()],
        peak.mb[jvm],
        watch.most_open,
        watch.most_bytes / 2**20,
        switched,
    )


def measure(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """All three tables, smallest state first: memory that was once taken is not always given back."""
    spark = local_session("local[2]", log_file=folder / "spark.log")
    try:
        by_groups, by_slices = [], []
        for place, groups in enumerate(sizes.groups):
            shape = disorder(sizes.rows_by_groups, groups, PANES_OF_GROUPS, sizes.rows_a_file)
            data = elsewhere(made, shape, folder / f"groups-{groups}")
            if place == 0:
                warming = data.first(3 * FILES_A_ROUND, folder / "warming")
                run(spark, warming, groups, 1, sizes.driver_memory, folder / "run")
            by_groups.append(run(spark, data, groups, 1, sizes.driver_memory, folder / "run"))
            shutil.rmtree(data.folder)
        show("groups", by_groups)
        shape = disorder(sizes.rows_by_slices, GROUPS_OF_SLICES, PANES_OF_SLICES, sizes.rows_a_file)
        data = elsewhere(made, shape, folder / "slices")
        for slices in sizes.slices:
            by_slices.append(run(spark, data, GROUPS_OF_SLICES, slices, sizes.driver_memory, folder / "run"))
        show("open slices", by_slices)
        shape = disorder(sizes.rows_of_both, MOST_GROUPS, PANES_OF_SLICES, sizes.rows_a_file)
        data = elsewhere(made, shape, folder / "both")
        both = [
            run(spark, data, MOST_GROUPS, MOST_SLICES, limit, folder / "run")
            for limit in (sizes.driver_memory, NO_LIMIT)
        ]
        say(f"slices move to the cluster above {sizes.driver_memory / 2**20:.0f} MB; in the second line they never do")
        show("both", both)
    finally:
        spark.stop()
    return headline(by_groups, by_slices, both)


def headline(by_groups: list[Cell], by_slices: list[Cell], both: list[Cell]) -> dict[str, Any]:
    """The JSON object of the last line."""
    every = [*by_groups, *by_slices, *both]
    return {
        "cost_growth": by_groups[-1].seconds_per_row / by_groups[0].seconds_per_row,
        "driver_rss_mb": max(cell.python_mb for cell in (*by_groups, *by_slices, both[0])),
        "windows_rss_mb": both[0].python_mb,
        "driver_rss_mb_kept": both[1].python_mb,
        "driver_rss_mb_small": by_groups[0].python_mb,
        "jvm_rss_mb": max(cell.jvm_mb for cell in every),
        "switched_at_mb": next((cell.switched_at_mb for cell in every if cell.switched_at_mb is not None), None),
        "slices_growth": by_slices[-1].seconds_per_row / by_slices[0].seconds_per_row,
        "rows_per_second": {
            **{f"{cell.groups}_groups": cell.rows / cell.seconds for cell in by_groups},
            **{f"{cell.slices}_slices": cell.rows / cell.seconds for cell in by_slices},
            **dict(zip(("both", "both_kept"), (cell.rows / cell.seconds for cell in both), strict=True)),
        },
    }


def show(title: str, cells: list[Cell]) -> None:
    """Print one line for each run."""
    show_table(
        title,
        ["groups", "slices asked", "open", "state MB", "rows/s", "Python MB", "JVM MB", "moved to the cluster at MB"],
        [
            (
                f"{cell.groups:,}",
                cell.slices,
                cell.most_open,
                f"{cell.most_state_mb:.1f}",
                f"{cell.rows / cell.seconds:,.0f}",
                f"{cell.python_mb:.0f}",
                f"{cell.jvm_mb:.0f}",
                "" if cell.switched_at_mb is None else f"{cell.switched_at_mb:.1f}",
            )
            for cell in cells
        ],
    )
