"""How long a command takes to answer: `python -m benchmarks.startup [--quick] [--json FILE]`.

A script of two statements over a file of a thousand rows, as a shell runs it: a new process each time, from its start
to what is told here. The first start, which reads files that are not in memory yet and compiles them, does not count;
the median of the others does, as of a package that is installed. Every answer is checked, or the benchmark fails.

The last line is one JSON object:

- `check_seconds`: `eventide check`, from start to end.
- `local_first_result_seconds`: `eventide run --engine local --json`, from start to the first line of results.
- `spark_first_result_seconds`: the same on Spark, its JVM included.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from benchmarks.harness import REPOSITORY, as_duration, finish, options, say, scratch, show_table

COMMAND = [sys.executable, "-m", "eventide"]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(REPOSITORY / "src"), "PYTHONDONTWRITEBYTECODE": ""}
ROWS = 1_000
SCRIPT = """CREATE STREAM numbers (n BIGINT, v INT) FROM csv 'numbers.csv' TIMESTAMP BY n;
SELECT count(*) AS events, sum(v) AS total FROM numbers [RANGE 100];
"""


@dataclass(frozen=True)
class Repeats:
    """How often each command is started, after the first time."""

    quick_ones: int
    spark: int


QUICK = Repeats(5, 1)
FULL = Repeats(15, 5)


def prepared(folder: Path) -> Path:
    """A folder with the script and its rows.

    >>> import tempfile
    >>> sorted(path.name for path in prepared(Path(tempfile.mkdtemp())).iterdir())
    ['numbers.csv', 'numbers.sql']
    """
    (folder / "numbers.sql").write_text(SCRIPT, encoding="utf-8")
    rows = "".join(f"{n},{n % 7}\n" for n in range(ROWS))
    (folder / "numbers.csv").write_text("n,v\n" + rows, encoding="utf-8")
    return folder


def check_seconds(folder: Path) -> float:
    """One `check`, from start to end."""
    started = perf_counter()
    ran = subprocess.run(
        [*COMMAND, "check", "numbers.sql"], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True
    )
    took = perf_counter() - started
    if ran.returncode != 0 or "no errors" not in ran.stdout:
        raise SystemExit(f"the script was not found good: {ran.stdout}{ran.stderr}")
    return took


def first_result_seconds(folder: Path, *arguments: str) -> float:
    """One `run`, from start to its first result; it is let to its end, and all of its results are checked."""
    started = perf_counter()
    with subprocess.Popen(
        [*COMMAND, "run", "numbers.sql", "--bounded", "--json", *arguments],
        cwd=folder,
        env=ENVIRONMENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        first = process.stdout.readline()
        took = perf_counter() - started
        lines, said = [first, *process.stdout.readlines()], process.stderr.read()
    check_answers(lines, said)
    return took


def check_answers(lines: list[str], said: str = "") -> None:
    """Fail unless every window was told, and right.

    >>> check_answers([])
    Traceback (most recent call last):
        ...
    SystemExit: the run gave wrong answers: []
    """
    told = sorted((row["window_start"], row["events"], row["total"]) for row in map(json.loads, filter(None, lines)))
    right = [(start, 100, sum(n % 7 for n in range(start, start + 100))) for start in range(0, ROWS, 100)]
    if told != right:
        raise SystemExit(f"the run gave wrong answers: {told}{said}")


def measure(repeats: Repeats, folder: Path) -> dict[str, Any]:
    """Start each command some times, and show the medians."""
    place = prepared(folder)
    commands: dict[str, tuple[int, Callable[[], float]]] = {
        "check_seconds": (repeats.quick_ones, lambda: check_seconds(place)),
        "local_first_result_seconds": (
            repeats.quick_ones,
            lambda: first_result_seconds(place, "--engine", "local"),
        ),
        "spark_first_result_seconds": (
            repeats.spark,
            lambda: first_result_seconds(place, "--engine", "spark", "--master", "local[2]"),
        ),
    }
    found = {}
    for name, (times, command) in commands.items():
        say(f"measuring {name.removesuffix('_seconds').replace('_', ' ')}")
        command()
        found[name] = median(command() for _ in range(times))
    show_table("from start", list(found), [[as_duration(1000 * seconds) for seconds in found.values()]])
    return found


def main() -> None:
    """Measure, show, and end with the line of JSON."""
    asked = options("how long a command takes to answer")
    with scratch() as folder:
        results = measure(QUICK if asked.quick else FULL, folder)
    finish(asked, results)


if __name__ == "__main__":
    main()
