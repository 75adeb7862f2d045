"""Run Eventide beside native Spark: `python -m benchmarks.spark_native [--quick] [--json FILE]`.

Both sides share one Spark session on this machine, with the settings that Eventide gives its own; the same files, of
which they take the same number a round; the same delay, above every row's; Parquet files as sink. Rows are read and
reduced in Spark's tasks on both sides: by DuckDB in its Python workers for Eventide, by Spark SQL for the others. Every
run's results are compared, row by row, with those computed from the files at once; if a side differs, the benchmark
fails. Spark's last windows, which its watermark never passes in a bounded run, are not part of the comparison; Eventide
closes them.

The last line is one JSON object:

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

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.disorder import Disorder
from benchmarks.harness import finish, options, say, scratch
from benchmarks.question import SLIDING6, TUMBLING
from benchmarks.spark_native import latency, rounds, throughput
from benchmarks.spark_native.sides import EVENTIDE_SQL
from benchmarks.spark_native.throughput import SCAN, Throughput
from eventide.launch.spark_session import local_session

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
    return {
        "sliding60_throughput_ratio": measured.ratio("sliding60", "window"),
        "sliding6_throughput_ratio": measured.ratio("sliding6", "window"),
        "tumbling_throughput_ratio": measured.ratio("tumbling", "window"),
        "scan_fraction": measured.ratio("tumbling", SCAN),
        "round_ratio": rounds_of[SLIDING6.name],
        "final_latency_ratio": latency_ms["eventide"] / latency_ms["window"],
        "tumbling_round_ratio": rounds_of[TUMBLING.name],
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


def measure(sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Make the files, start Spark, measure all three parts and show them."""
    say(f"making {sizes.large.rows:,} rows of {GROUPS} groups")
    data = sizes.large.into(folder / "large")
    many, fed = small(sizes.small_files).into(folder / "many"), small(sizes.fed_files).into(folder / "fed")
    say(f"the largest delay is below {data.delay // 1_000_000} s, which every side waits for")
    spark = local_session(MASTER, log_file=folder / "spark.log")
    try:
        measured = throughput.measure(spark, data, FILES_A_ROUND, sizes.repeats, folder)
        throughput.show(measured)
        round_ms = {
            question.name: rounds.measure(spark, question, many, sizes.small_repeats, folder)
            for question in (SLIDING6, TUMBLING)
        }
        rounds.show(round_ms, len(many.files))
        pace = latency.pace_for(max(max(ms.values()) for ms in round_ms.values()))
        latencies = latency.measure(spark, fed, pace, sizes.small_repeats, folder)
        latency.show(latencies, pace)
    finally:
        spark.stop()
    return headline(measured, round_ms, {name: one.middle for name, one in latencies.items()})


def main() -> None:
    """Measure, show, and end with the line of JSON."""
    asked = options("Eventide beside Spark's own watermarks and windows")
    with scratch() as folder:
        results = measure(QUICK if asked.quick else FULL, folder)
    finish(asked, results)


if __name__ == "__main__":
    main()
