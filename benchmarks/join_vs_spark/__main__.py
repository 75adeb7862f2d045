"""Run Eventide's joins beside Spark's: `python -m benchmarks.join_vs_spark [--quick] [--place cluster] [--json FILE]`.

Both sides share one Spark session on this machine; the same files, of which they take the same number a round; the same
delay, above every row's. Two joins (`questions`), each over two stories: in the first both streams speak to the end,
in the second the right one falls silent half-way. Eventide's streams are declared to trail their arrivals by the
delay, which holds in silence too; a watermark of Spark only moves when rows come. Rows are compared with the truth,
which is computed from the files at once. Spark's rows may be incomplete (its last epochs never close in a bounded
run), never wrong. With `--place cluster` all state of Eventide is on the cluster; by default it may be within the
driver's memory as far as it fits there.

The last line is one JSON object:

- `throughput_ratio`: Eventide's rows a second over Spark's, the lower of both joins, while both streams speak;
  `epochs_throughput_ratio`, `interval_throughput_ratio`.
- `place`: where Eventide's state was: `default` or `cluster`.
- `rows_equal`: whether Eventide told exactly the truth in all runs, and Spark nothing else.
- `told_before_end`: in the silent story, for the epoch join: the share of the true rows that each side told before the
  end of the run; `stalled_at`: how far into the story each side's last told epoch is (1 is its end).
- `rows_per_second`, `rows`: the figures behind them.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from benchmarks.disorder import START, Disorder
from benchmarks.driver_memory import DRIVER_MEMORY_AT, add_place
from benchmarks.harness import as_percent, asked, database, finish, parser, say, scratch, show_table
from benchmarks.join_vs_spark.questions import EPOCHS, QUESTIONS, Compared, Inputs, Question, Truth
from benchmarks.join_vs_spark.sides import EVENTIDE, NATIVE, SIDES, Side, Task
from benchmarks.places import result_files
from eventide.launch.spark_session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2]"
FILES_A_ROUND = 1


@dataclass(frozen=True)
class Sizes:
    """How much is measured: rows of each stream over how many seconds, in how many files."""

    rows: int
    groups: int
    files: int
    seconds: int
    repeats: int

    def stream(self, seed: int, share: float = 1.0) -> Disorder:
        """One stream, of which only the first `share` is there."""
        files, rows, seconds = (max(1, int(whole * share)) for whole in (self.files, self.rows, self.seconds))
        return Disorder(rows, self.groups, files, seconds, seed=seed)


QUICK = Sizes(500_000, 20_000, files=10, seconds=400, repeats=1)
FULL = Sizes(4_000_000, 20_000, files=20, seconds=1600, repeats=3)


@dataclass
class Measured:
    """Rows a second and comparisons, by join and side."""

    rates: dict[tuple[str, str], list[float]]
    compared: dict[tuple[str, str], Compared]

    def rate(self, question: Question, side: Side) -> float:
        """The median."""
        return median(self.rates[question.name, side.name])

    def ratio(self, question: Question) -> float:
        """Eventide over Spark."""
        return self.rate(question, EVENTIDE) / self.rate(question, NATIVE)

    @property
    def rows_equal(self) -> bool:
        """Whether nothing is wrong, and Eventide left nothing out."""
        complete = all(one.missing == 0 for (_, side), one in self.compared.items() if side == EVENTIDE.name)
        return complete and all(one.wrong == 0 for one in self.compared.values())


def measure_speaking(
    spark: SparkSession, inputs: Inputs, warming: Inputs, sizes: Sizes, place: str, folder: Path
) -> Measured:
    """Warm up, take turns, compare; a line for every run, since some take minutes."""
    memory = DRIVER_MEMORY_AT[place]
    measured = Measured({}, {})
    for question in QUESTIONS:
        truth = Truth(question, inputs)
        for side in SIDES:
            warm = folder / f"warm-{question.name}-{side.name}"
            side.run(spark, Task(question, warming, FILES_A_ROUND, warm, memory))
        for turn in range(sizes.repeats):
            for side in SIDES:
                task = Task(question, inputs, FILES_A_ROUND, folder / f"{question.name}-{side.name}-{turn}", memory)
                seconds = side.run(spark, task)
                measured.rates.setdefault((question.name, side.name), []).append(inputs.rows / seconds)
                rate = f"{inputs.rows / seconds:,.0f} rows/s"
                say(f"{question.name}, {side.name}, run {turn + 1} of {sizes.repeats}: {rate}")
                measured.compared[question.name, side.name] = truth.compare(result_files(task.results / side.pattern))
                shutil.rmtree(task.folder)
    return measured


@dataclass(frozen=True)
class BeforeEnd:
    """What a side told before the end of the silent story: a share of the truth, up to a share of the time."""

    share: float
    until: float


def measure_silence(
    spark: SparkSession, inputs: Inputs, sizes: Sizes, place: str, folder: Path
) -> tuple[dict[str, BeforeEnd], dict[str, Compared]]:
    """The epoch join, once for each side; what was told before the end."""
    truth, told, compared = Truth(EPOCHS, inputs), {}, {}
    for side in SIDES:
        task = Task(EPOCHS, inputs, FILES_A_ROUND, folder / f"silent-{side.name}", DRIVER_MEMORY_AT[place])
        side.run(spark, task)
        files = result_files(task.results / side.pattern)
        compared[side.name] = truth.compare(files)
        # Eventide's results of the end of a run were closed by no heartbeat.
        before = "WHERE heartbeat IS NOT NULL" if side is EVENTIDE else ""
        count, last = database().execute(
            f"SELECT count(*), max(epoch_us(window_end)) FROM read_parquet($files) {before}", {"files": files}
        ).fetchone() or (0, None)
        whole = compared[side.name].told + compared[side.name].missing
        until = 0.0 if last is None else (last - START) / (sizes.seconds * 1_000_000)
        told[side.name] = BeforeEnd(count / whole, until)
    return told, compared


def show(measured: Measured, told: Mapping[str, BeforeEnd], rows: int) -> None:
    """Print both stories."""
    show_table(
        f"rows a second, {rows:,} rows of two streams",
        ["join", "eventide", "spark", "ratio", "rows told", "missing", "wrong"],
        [
            (
                question.name,
                *(f"{measured.rate(question, side):,.0f}" for side in SIDES),
                f"{measured.ratio(question):.2f}",
                *(
                    " / ".join(f"{getattr(measured.compared[question.name, side.name], what):,}" for side in SIDES)
                    for what in ("told", "missing", "wrong")
                ),
            )
            for question in QUESTIONS
        ],
    )
    show_table(
        "the right stream falls silent half-way: what the epoch join told before the end of the run",
        ["side", "of all rows", "up to, of the time"],
        [(name, as_percent(one.share), as_percent(one.until)) for name, one in told.items()],
    )


def measure(sizes: Sizes, place: str, folder: Path) -> dict[str, Any]:
    """Make the files, start Spark, measure both stories and show them."""
    say(f"making {2 * sizes.rows:,} rows of {sizes.groups:,} keys")
    left, right = sizes.stream(1).into(folder / "left"), sizes.stream(2).into(folder / "right")
    half = sizes.stream(2, share=0.5).into(folder / "half")
    both, silent = Inputs(left, right), Inputs(left, half)
    warming = Inputs(left.first(3, folder / "warm_left"), right.first(3, folder / "warm_right"))
    spark = local_session(MASTER, log_file=folder / "spark.log")
    try:
        measured = measure_speaking(spark, both, warming, sizes, place, folder)
        told, compared = measure_silence(spark, silent, sizes, place, folder)
    finally:
        spark.stop()
    measured.compared.update({(f"silent {EPOCHS.name}", side): one for side, one in compared.items()})
    show(measured, told, both.rows)
    ratios = {question.name: measured.ratio(question) for question in QUESTIONS}
    return {
        "place": place,
        "throughput_ratio": min(ratios.values()),
        **{f"{name}_throughput_ratio": ratio for name, ratio in ratios.items()},
        "rows_equal": measured.rows_equal,
        "told_before_end": {name: one.share for name, one in told.items()},
        "stalled_at": {name: one.until for name, one in told.items()},
        "rows": both.rows,
        "rows_per_second": {f"{q.name}_{side.name}": measured.rate(q, side) for q in QUESTIONS for side in SIDES},
    }


def main() -> None:
    """Measure, show, and end with the line of JSON."""
    arguments = parser("Eventide's joins beside Spark's own stream-stream joins")
    add_place(arguments)
    found = arguments.parse_args()
    with scratch() as folder:
        results = measure(QUICK if found.quick else FULL, found.place, folder)
    finish(asked(found), results)


if __name__ == "__main__":
    main()
