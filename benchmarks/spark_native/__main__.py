"""Run Eventide beside native Spark: `python -m benchmarks.spark_native [--quick] [--only PART[,PART]]`.

Both sides share one Spark session on this machine, with the settings that Eventide gives its own; the same files, of
which they take the same number a round; the same delay, above every row's; Parquet files as sink. Rows are read and
reduced in Spark's tasks on both sides: by DuckDB in its Python workers for Eventide, by Spark SQL for the others. Every
run's results are compared, row by row, with those computed from the files at once; if a side differs, the benchmark
fails. Spark's last windows, which its watermark never passes in a bounded run, are not part of the comparison; Eventide
closes them. `--only` runs some of the parts: sliding60, sliding6, tumbling, rounds, latency. All of them take about
half an hour in the full form on two quiet cores.

The last line is one JSON object, without the figures of parts that were not run:

- `sliding60_throughput_ratio`, `sliding6_throughput_ratio`, `tumbling_throughput_ratio`: Eventide's rows a second over
  those of Spark's `withWatermark` and `window`, for windows of 600 s and 60 s every 10 s, and of 10 s;
  `*_chain_throughput_ratio`: over Spark's two operators, panes and then windows.
- `scan_fraction`: Eventide's rows a second (tumbling) over those of Spark streaming the same columns to `noop`.
- `sliding60_sql_throughput_ratio`, `tumbling_sql_throughput_ratio`, `sql_scan_fraction`: the same with the reduce by
  Spark SQL, as it is for sources other than Parquet files.
- `round_ratio`: a warm round of a thousand rows, Eventide's time over Spark's, for windows of 60 s every 10 s;
  `tumbling_round_ratio`: the same for those of 10 s, where Spark has least to do.
- `final_latency_ratio`: from the row that lets a window close to its result readable in the sink, over Spark's.
- `rows`, `rows_per_second`, `round_ms`, `final_latency_ms`: the figures behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.disorder import Disorder
from benchmarks.harness import add_only, asked, finish, parser, say, scratch
from benchmarks.question import QUESTIONS, SLIDING6, TUMBLING
from benchmarks.spark_native import latency, rounds, throughput
from benchmarks.spark_native.sides import EVENTIDE_SQL
from benchmarks.spark_native.throughput import SCAN, Throughput
from eventide.launch.spark_session import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2]"
GROUPS = 1000


@dataclass(frozen=True)
class Sizes:
    """How much is measured. A round of `large` takes two files, one for each core."""

    large: Disorder
    repeats: int
    small_files: int
    small_repeats: int
    fed_files: int


QUICK = Sizes(Disorder(2_000_000, GROUPS, files=16, seconds=800), 2, 100, 1, 30)
FULL = Sizes(Disorder(16_000_000, GROUPS, files=32, seconds=6400), 3, 200, 2, 120)
FILES_A_ROUND = 2
ROUNDS, LATENCY = "rounds", "latency"


def small(files: int) -> Disorder:
    """Files of a thousand rows and ten seconds each.

    >>> small(3).rows
    3000
    """
    return Disorder(1000 * files, GROUPS, files, seconds=10 * files, mean_delay=1.0)


def headline(
    measured: Throughput, round_ms: dict[str, dict[str, float]], latency_ms: dict[str, float]
) -> dict[str, Any]:
    """The JSON object of the last line."""
    rounds_of = {name: ms["eventide"] / ms["window"] for name, ms in round_ms.items()}
    figures = {
        "sliding60_throughput_ratio": measured.ratio("sliding60", "window"),
        "sliding6_throughput_ratio": measured.ratio("sliding6", "window"),
        "tumbling_throughput_ratio": measured.ratio("tumbling", "window"),
        "scan_fraction": measured.ratio("tumbling", SCAN),
        "round_ratio": rounds_of.get(SLIDING6.name),
        "final_latency_ratio": latency_ms["eventide"] / latency_ms["window"] if latency_ms else None,
        "tumbling_round_ratio": rounds_of.get(TUMBLING.name),
        "sliding60_sql_throughput_ratio": measured.ratio("sliding60", "window", EVENTIDE_SQL.name),
        "tumbling_sql_throughput_ratio": measured.ratio("tumbling", "window", EVENTIDE_SQL.name),
        "sql_scan_fraction": measured.ratio("tumbling", SCAN, EVENTIDE_SQL.name),
        "sliding60_chain_throughput_ratio": measured.ratio("sliding60", "chain"),
        "sliding6_chain_throughput_ratio": measured.ratio("sliding6", "chain"),
        "rows": measured.rows,
        "rows_per_second": {f"{q}_{side}": measured.rate(q, side) for q, side in measured.rates},
        "round_ms": round_ms,
        "final_latency_ms": latency_ms,
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def measure(sizes: Sizes, only: Sequence[str], folder: Path) -> dict[str, Any]:
    """Make the files, start Spark, measure the parts that were asked for and show them."""
    spark = local_session(MASTER, log_file=folder / "spark.log")
    try:
        measured = Throughput({}, sizes.large.rows, {})
        questions = [question for question in QUESTIONS if question.name in only]
        if questions:
            say(f"making {sizes.large.rows:,} rows of {GROUPS} groups")
            data = sizes.large.into(folder / "large")
            say(f"the largest delay is below {data.delay // 1_000_000} s, which every side waits for")
            measured = throughput.measure(spark, data, FILES_A_ROUND, sizes.repeats, folder, questions)
            throughput.show(measured)
        round_ms = warm_rounds(spark, sizes, folder) if ROUNDS in only or LATENCY in only else {}
        latency_ms = final_latency(spark, sizes, round_ms, folder) if LATENCY in only else {}
    finally:
        spark.stop()
    return headline(measured, round_ms, latency_ms)


def warm_rounds(spark: SparkSession, sizes: Sizes, folder: Path) -> dict[str, dict[str, float]]:
    """Milliseconds of a round of a thousand rows, by question and side."""
    many = small(sizes.small_files).into(folder / "many")
    found = {
        question.name: rounds.measure(spark, question, many, sizes.small_repeats, folder)
        for question in (SLIDING6, TUMBLING)
    }
    rounds.show(found, len(many.files))
    return found


def final_latency(
    spark: SparkSession, sizes: Sizes, round_ms: dict[str, dict[str, float]], folder: Path
) -> dict[str, float]:
    """Milliseconds from the row that closes a window to its result, by side; files come as fast as rounds can."""
    pace = latency.pace_for(max(max(ms.values()) for ms in round_ms.values()))
    found = latency.measure(spark, small(sizes.fed_files).into(folder / "fed"), pace, sizes.small_repeats, folder)
    latency.show(found, pace)
    return {name: one.middle for name, one in found.items()}


def main() -> None:
    """Measure, show, and end with the line of JSON."""
    arguments = parser("Eventide beside Spark's own watermarks and windows")
    add_only(arguments, (*(question.name for question in QUESTIONS), ROUNDS, LATENCY))
    found = arguments.parse_args()
    with scratch() as folder:
        results = measure(QUICK if found.quick else FULL, found.only, folder)
    finish(asked(found), results)


if __name__ == "__main__":
    main()
