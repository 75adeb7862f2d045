"""What a plan that changed by measurement could gain: `python -m benchmarks.plan_orders [--quick] [--json FILE]`.

Gigascope gathers statistics of its operators to optimise plans again while they run (section 6.3), and aggregates below
in a table of fixed size that ejects a group where another needs its place (section 4.4). Three questions, each with the
two ways in turn over the same rows, and the same results:

- **Filters**: an expensive condition (a regular expression that all rows pass) written before a cheap one that one row
  in a hundred passes, and after it; on the local engine, and by Spark.
- **Joins**: three streams, the most selective one joined last, and first (local engine).
- **Partial table**: rows of which few repeat a group, reduced by one GROUP BY, and by a table that is ejected whenever
  so many rows have come; both with the merge of what they give (DuckDB, which runs the reduce).

The last line is one JSON object: `filters.local`, `filters.spark`, `joins`: the time of the written order that is worse
over that of the better one; `partial_table`: by rows for each group, the time with an ejecting table over that without.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import eventide
from benchmarks.harness import finish, options, say, scratch, show_table

CHEAP, EXPENSIVE = "v < 10", "text RLIKE '^[a-f0-9]+(-[a-f0-9]+)*$'"
STREAM = """CREATE STREAM {name} (t BIGINT, k INT, v INT, text STRING) FROM parquet '{path}' TIMESTAMP BY t DELAY 100;
"""
TABLE_ROWS = 65_536
Way = Callable[[], object]


def rows_of(count: int, seed: int, step: int = 1) -> pa.Table:
    """Rows in the order of time; a hundredth of them has a small value, and all texts fit."""
    random = np.random.default_rng(seed)
    texts = pa.array([f"{n:08x}-{n * 7:08x}-{n * 13:08x}" for n in range(1_000)])
    return pa.table(
        {
            "t": np.arange(0, count * step, step),
            "k": random.integers(0, 100, count).astype(np.int32),
            "v": random.integers(0, 1_000, count).astype(np.int32),
            "text": texts.take(pa.array(random.integers(0, 1_000, count))),
        }
    )


def compared(ways: dict[str, Way], turns: int) -> dict[str, float]:
    """The median seconds of each way; they take turns, and what is run for the first time does not count."""
    found: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for name, way in ways.items():
            began = time.perf_counter()
            way()
            if turn:
                found[name].append(time.perf_counter() - began)
    return {name: median(seconds) for name, seconds in found.items()}


def filters(folder: Path, count: int, engine: str, turns: int) -> float:
    """Expensive first over cheap first."""
    path = folder / f"filters-{engine}"
    path.mkdir()
    pq.write_table(rows_of(count, 1), path / "rows.parquet")

    def way(where: str) -> Way:
        query = f"SELECT k, count(*) AS n FROM s [RANGE 1000000] WHERE {where} GROUP BY k;"
        script = STREAM.format(name="s", path=path) + query
        return lambda: eventide.sql(script).run(engine=engine)

    ways = {"expensive": way(f"{EXPENSIVE} AND {CHEAP}"), "cheap": way(f"{CHEAP} AND {EXPENSIVE}")}
    took = compared(ways, turns)
    return took["expensive"] / took["cheap"]


def joins(folder: Path, count: int, turns: int) -> float:
    """The selective stream joined last over joined first."""
    text = ""
    for seed, (name, step) in enumerate({"a": 1, "b": 1, "c": 100}.items()):
        path = folder / name
        path.mkdir()
        pq.write_table(rows_of(count // step, seed, step), path / "rows.parquet")
        text += STREAM.format(name=name, path=path)
    band = "{0}.t BETWEEN {1}.t - 200 AND {1}.t + 200 AND {0}.k = {1}.k"

    def way(first: str, second: str) -> Way:
        select = f"SELECT a.t AS at, b.t AS bt, c.t AS ct FROM a JOIN {first} ON {band.format(first, 'a')}"
        script = f"{text}CREATE QUERY three AS {select} JOIN {second} ON {band.format(second, 'a')};"
        return lambda: eventide.sql(script).run(engine="local")

    took = compared({"last": way("b", "c"), "first": way("c", "b")}, turns)
    return took["last"] / took["first"]


def partial_table(count: int, repeats: float, turns: int) -> float:
    """With a table that is ejected after so many rows, over one GROUP BY; both merged."""
    random = np.random.default_rng(5)
    groups = random.integers(0, max(1, int(count / repeats)), count)
    rows = pa.table({"n": np.arange(count), "k": groups, "v": random.integers(0, 1_000, count)})
    connection = duckdb.connect(config={"threads": 1})
    connection.register("rows", rows)
    partials = "count(*) AS n, sum(v) AS s, min(v) AS low, max(v) AS high"
    merge = "SELECT k, sum(n), sum(s), min(low), max(high) FROM ({}) GROUP BY k"
    whole = f"SELECT k, {partials} FROM rows GROUP BY k"
    ejected = f"SELECT k, {partials} FROM rows GROUP BY n // {TABLE_ROWS}, k"

    def way(reduce: str) -> Way:
        def run() -> None:
            connection.execute(f"CREATE OR REPLACE TABLE partials AS {reduce}")
            connection.execute(f"SELECT count(*) FROM ({merge.format('FROM partials')})").fetchall()

        return run

    took = compared({"ejected": way(ejected), "whole": way(whole)}, turns)
    connection.close()
    return took["ejected"] / took["whole"]


def main() -> None:
    """All questions, and the line of JSON."""
    asked = options("what plans gain by other orders, and by a partial table")
    rows, turns = (200_000, 2) if asked.quick else (4_000_000, 5)
    results: dict[str, Any] = {"filters": {}}
    with scratch() as folder:
        for engine in ("local", "spark"):
            results["filters"][engine] = filters(folder, rows, engine, turns)
            say(f"filters on {engine}: {results['filters'][engine]:.2f}")
        results["joins"] = joins(folder, rows // 20, turns)
        say(f"joins: {results['joins']:.2f}")
    results["partial_table"] = {f"{repeats:g}": partial_table(rows, repeats, turns) for repeats in (1.1, 2.0, 10.0)}
    show_table(
        "What the worse way takes over the better one",
        ("question", "ratio"),
        [
            ("filters, local engine: expensive first", f"{results['filters']['local']:.2f}"),
            ("filters, Spark: expensive first", f"{results['filters']['spark']:.2f}"),
            ("joins: the selective stream last", f"{results['joins']:.2f}"),
            *((f"ejecting table, {n} rows a group", f"{ratio:.2f}") for n, ratio in results["partial_table"].items()),
        ],
    )
    finish(asked, results)


if __name__ == "__main__":
    main()
