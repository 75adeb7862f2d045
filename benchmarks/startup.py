"""How long a command takes to answer: `python -m benchmarks.startup [--quick] [--json FILE]`.

A script of two statements over a file of a thousand rows, as a shell runs it: a new process each time, from its start
to what is told here. Beside it, in turns, the least that a program of the same libraries takes for the same answers:
Python with sqlglot, Arrow and DuckDB, and a streaming query of PySpark. The first start of each, which reads files that
are not in memory yet and compiles them, does not count; the median of the others does, as of a package that is
installed. Every answer is checked, or the benchmark fails.

The last line is one JSON object:

- `check_seconds`: `eventide check`, from start to end.
- `bare_first_result_seconds`: the libraries alone, from start to the first line of results.
- `local_first_result_seconds`: `eventide run --engine local --json`, likewise.
- `pyspark_first_result_seconds`: PySpark alone, its JVM included.
- `spark_first_result_seconds`: `eventide run --json` on Spark.
- `spark_archived_first_result_seconds`: the same with an archive of Spark's classes (docs/operations.md).
- `local_ratio`, `spark_ratio`: how much longer than the libraries alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
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
BARE = """
import duckdb, pyarrow.compute, sqlglot
asked = "SELECT n DIV 100 * 100 AS window_start, count(*) AS events, sum(v) AS total FROM numbers GROUP BY 1"
text = sqlglot.transpile(asked, read="spark", write="duckdb")[0].replace("FROM numbers", "FROM 'numbers.csv'")
for row in duckdb.sql(f"SELECT to_json(found) FROM ({text}) AS found").fetchall():
    print(row[0], flush=True)
"""
PYSPARK = """
from pyspark.sql import SparkSession, functions as F
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.conf.set("spark.sql.shuffle.partitions", "2")
rows = spark.readStream.schema("n BIGINT, v INT").option("header", "true").csv("numbers.cs[v]")
every = rows.groupBy(F.expr("n DIV 100 * 100").alias("window_start"))
counts = every.agg(F.count("*").alias("events"), F.sum("v").alias("total"))

def tell(batch, number):
    for row in batch.toJSON().collect():
        print(row, flush=True)

counts.writeStream.outputMode("complete").foreachBatch(tell).trigger(availableNow=True).start().awaitTermination()
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


def run_seconds(folder: Path, *arguments: str, java: str = "") -> float:
    """One `run`, from start to its first result."""
    return first_result_seconds(folder, [*COMMAND, "run", "numbers.sql", "--bounded", "--json", *arguments], java)


def first_result_seconds(folder: Path, command: list[str], java: str = "") -> float:
    """A program, from start to its first result; it is let to its end, and all of its results are checked."""
    started = perf_counter()
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**ENVIRONMENT, **({"JAVA_TOOL_OPTIONS": java} if java else {})},
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
    """Start each command some times, in turns, and show the medians."""
    place = prepared(folder)
    say("keeping Spark's classes")
    classes = folder / "spark.jsa"
    subprocess.run([sys.executable, "-m", "scripts.spark_archive", str(classes)], cwd=REPOSITORY, check=True)
    spark = ("--engine", "spark", "--master", "local[2]")
    found = in_turns(
        repeats.quick_ones,
        {
            "check_seconds": lambda: check_seconds(place),
            "bare_first_result_seconds": lambda: first_result_seconds(place, [sys.executable, "-c", BARE]),
            "local_first_result_seconds": lambda: run_seconds(place, "--engine", "local"),
        },
    ) | in_turns(
        repeats.spark,
        {
            "pyspark_first_result_seconds": lambda: first_result_seconds(place, [sys.executable, "-c", PYSPARK]),
            "spark_first_result_seconds": lambda: run_seconds(place, *spark),
            "spark_archived_first_result_seconds": lambda: run_seconds(
                place, *spark, java=f"-XX:SharedArchiveFile={classes}"
            ),
        },
    )
    show_table("from start", ["", "median"], [[name, as_duration(1000 * took)] for name, took in found.items()])
    return found | {
        "local_ratio": found["local_first_result_seconds"] / found["bare_first_result_seconds"],
        "spark_ratio": found["spark_first_result_seconds"] / found["pyspark_first_result_seconds"],
    }


def in_turns(times: int, commands: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    """The medians of commands that follow each other, so that whatever else the machine does meets them all."""
    took: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(times + 1):
        for name, command in commands.items():
            say(f"{name.removesuffix('_seconds').replace('_', ' ')}: {turn} of {times}")
            seconds = command()
            if turn:
                took[name].append(seconds)
    return {name: median(every) for name, every in took.items()}


def main() -> None:
    """Measure, show, and end with the line of JSON."""
    asked = options("how long a command takes to answer")
    with scratch() as folder:
        results = measure(QUICK if asked.quick else FULL, folder)
    finish(asked, results)


if __name__ == "__main__":
    main()
