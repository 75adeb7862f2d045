"""How cost and memory grow with the state: `python -m benchmarks.scale [--quick] [--only NAME[,NAME]] [--json FILE]`.

Two parts, both on the Spark engine, every answer compared with the right one:

- `windows`: three tables of a window aggregate whose state grows by groups, by open slices and by both (`windows`);
- interval_join, full_outer_join, merge (ordered), rows (a projection with WHERE), lookup (AS OF), count_window,
  by_source (windows closed by source): each at 1x, 4x and 16x data, with state far larger than the driver's memory for
  it, from Parquet files into Parquet files; compared with a batch answer of Spark on the same files (`operators`).

`--only` runs some of these names. `--tiny` is for tests. The quick form takes about 8 minutes on two cores (`windows`
about 2 of them), the full form, with 40 M rows for merge and rows and 20 M for each of the others, about an hour and a
half.

The last line is one JSON object:

- `driver_rss_growth.NAME`: the most memory that the Python driver held at 16x data over that at 1x.
- `driver_rss_mb`: the most that it held in any run whose state had a limit.
- `seconds_per_row_growth.NAME`: what a row costs at 16x data over what it costs at 1x.
- `rows_equal`: whether all results of all operators at all sizes are the batch answer; `failed.NAME`: what went wrong
  where an operator could not be run to its end.
- `state_over_budget.NAME`: the largest state (as large as its files are) over the driver's memory for state. Plain rows
  have no state.
- `operator_rows_per_second.NAME`, `operator_rss_mb.NAME`: the figures behind them at 1x, 4x, 16x.

And of `windows`:

- `cost_growth`: seconds per row with a million groups over those with a thousand.
- `windows_rss_mb`: memory of the Python driver with the largest state; `driver_rss_mb_kept`: with all of it on the
  driver; `driver_rss_mb_small`: with the smallest state. `jvm_rss_mb`: memory of Spark's driver at most.
- `switched_at_mb`: megabytes of slices on the driver when they moved to the cluster; null if they never did.
- `slices_growth`: seconds per row with 60 open slices over those with one; `rows_per_second`: the figures behind them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import add_only, asked, finish, parser, scratch
from benchmarks.scale import operators, windows
from benchmarks.scale.questions import QUESTIONS

WINDOWS = "windows"
NAMES = (WINDOWS, *(question.name for question in QUESTIONS))


def measure(
    only: Sequence[str], of_windows: windows.Sizes, of_operators: operators.Sizes, folder: Path
) -> dict[str, Any]:
    """What was asked for, one part after the other."""
    results: dict[str, Any] = {}
    if WINDOWS in only:
        results = windows.measure(of_windows, folder)
    if any(name != WINDOWS for name in only):
        found = operators.measure(only, of_operators, folder)
        results = together(results, operators.headline(found, of_operators.driver_memory))
    return results


def together(of_windows: dict[str, Any], of_operators: dict[str, Any]) -> dict[str, Any]:
    """Both parts in one object; the most memory of both counts.

    >>> together({"driver_rss_mb": 300.0}, {"driver_rss_mb": 200.0})
    {'driver_rss_mb': 300.0}
    """
    most = max(of_windows.get("driver_rss_mb", 0.0), of_operators["driver_rss_mb"])
    return {**of_operators, **of_windows, "driver_rss_mb": most}


def main() -> None:
    """Measure, show, and end with the line of JSON."""
    arguments = parser("cost and memory as the state grows")
    add_only(arguments, NAMES)
    arguments.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    found = arguments.parse_args()
    sizes = (windows.QUICK, operators.QUICK) if found.quick else (windows.FULL, operators.FULL)
    sizes = (windows.TINY, operators.TINY) if found.tiny else sizes
    with scratch() as folder:
        results = measure(found.only, *sizes, folder)
    finish(asked(found), results)
    if not results.get("rows_equal", True):
        raise SystemExit("results differ from the batch answer of Spark, or an operator failed; see above")


if __name__ == "__main__":
    main()
