"""Every kind of aggregate has the same answer on the local engine, on Spark, and with slices on the cluster."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Named, Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import RowWindow, Window
from eventide.testing.trial import Trial
from tests.choice import slow

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FIELDS = (
    ("t", pa.int64(), "BIGINT"),
    ("k", pa.string(), "STRING"),
    ("i", pa.int32(), "INT"),
    ("b", pa.int64(), "BIGINT"),
    ("d", pa.float64(), "DOUBLE"),
    ("m", pa.decimal128(10, 2), "DECIMAL(10, 2)"),
    ("s", pa.string(), "STRING"),
    ("ok", pa.bool_(), "BOOLEAN"),
    ("at", pa.timestamp("us", "UTC"), "TIMESTAMP"),
    ("a", pa.list_(pa.int32()), "ARRAY<INT>"),
)
SCHEMA = pa.schema([(name, kind) for name, kind, _ in FIELDS])
STREAM = Stream("s", columns(", ".join(f"{name} {kind}" for name, _, kind in FIELDS)), time="t", policy=FixedDelay(4))

BY_PARTIALS = (
    *("count(*)", "count(i)", "sum(i)", "sum(b)", "sum(d)", "sum(m)", "avg(i)", "avg(b)", "avg(d)", "avg(m)"),
    *("min(s)", "max(s)", "min(at)", "max(a)", "min(m)", "max(d)", "bool_or(ok)", "bool_and(ok)", "count_if(ok)"),
    *("stddev(d)", "stddev_pop(i)", "var_samp(m)", "var_pop(d)", "first(s)", "last(i)", "last(i, true)"),
    *("min_by(s, d)", "max_by(a, m)", "approx_count_distinct(i)", "approx_count_distinct(s)"),
    *("sum(i) FILTER (WHERE ok)", "max(d) - min(d)", "sum(i) / count(*)", "concat(min(s), '-', count(*))"),
)
BY_ROWS = (
    *("count(DISTINCT s)", "sum(DISTINCT i)", "median(i)", "percentile(d, 0.25)", "sort_array(collect_list(i))"),
    *("count(*)", "avg(m)", "stddev(i)", "max(at)", "sum(i) FILTER (WHERE NOT ok)"),
)


def named(expressions: tuple[str, ...]) -> tuple[Named, ...]:
    return tuple(Named(f"c{number}", sql) for number, sql in enumerate(expressions))


PROGRAM = Program(
    (STREAM,),
    (
        Query("by_partials", "s", Window(12, 4), named(BY_PARTIALS), groups=named_as("k")),
        Query("by_rows", "s", Window(12, 4), named(BY_ROWS), groups=named_as("ok"), where="i <> 3"),
        Query("by_number", "s", RowWindow(7, 3), named(BY_PARTIALS)),
        Query("revised", "s", Window(6), named(BY_PARTIALS[:12]), groups=named_as("k"), retain=12),
    ),
)


def rounds(seed: int) -> list[pa.Table]:
    random = Random(seed)

    def maybe(value: Any) -> Any:
        return value if random.random() > 0.15 else None

    def row(now: int) -> dict[str, Any]:
        return {
            "t": now + random.randint(-8, 4),
            "k": maybe(random.choice("xyz")),
            "i": maybe(random.randint(-5, 5)),
            "b": maybe(random.randint(-(2**40), 2**40)),
            # Halves add up without loss in any order.
            "d": maybe(random.randint(-40, 40) / 2),
            "m": maybe(Decimal(random.randint(-99999, 99999)) / 100),
            "s": maybe(random.choice(["", "a", "B", "é", "zz"])),
            "ok": maybe(random.random() > 0.5),
            "at": maybe(datetime(2024, 5, 1, tzinfo=UTC) + timedelta(microseconds=random.randint(0, 10**9))),
            "a": maybe([maybe(random.randint(0, 3)) for _ in range(random.randint(0, 3))]),
        }

    return [pa.Table.from_pylist([row(4 * n) for _ in range(random.randint(0, 25))], SCHEMA) for n in range(5)]


def told(trial: Trial, story: list[pa.Table]) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Every result by what it is of."""
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for rows in story:
        trial.round({"s": rows}, clock=0, heartbeats={})
    trial.end(clock=0)
    taken = trial.output()
    for table in (*taken.final, *taken.revised):
        for row in table.to_pylist():
            key = (row["query"], row["kind"], row["window_start"], row["round"], row.get("k"), row.get("ok"))
            assert key not in found, key
            found[key] = row
    return found


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return (math.isnan(one) and math.isnan(other)) or math.isclose(one, other, rel_tol=1e-12, abs_tol=1e-12)
    return type(one) is type(other) and bool(one == other)


@pytest.mark.spark
@pytest.mark.parametrize(("seed", "driver_memory"), [(0, 2**30), slow((1, 0))], ids=["on the driver", "on the cluster"])
def test_spark_gives_the_answers_of_the_local_engine(
    seed: int, driver_memory: int, spark: SparkSession, tmp_path: Path
) -> None:
    story = rounds(seed)
    with Trial(PROGRAM, tmp_path / "local") as trial:
        local = told(trial, story)
    with Trial(PROGRAM, tmp_path / "spark", "spark", spark, driver_memory=driver_memory) as trial:
        on_spark = told(trial, story)
    assert local.keys() == on_spark.keys()
    assert {kind for _, kind, *_ in local} == {"final", "revised"}
    texts = {query.name: {item.name: item.sql for item in query.select} for query in PROGRAM.queries}
    differs = [
        (key, texts[key[0]].get(name, name), value, on_spark[key][name])
        for key, row in local.items()
        for name, value in row.items()
        if not alike(value, on_spark[key][name])
    ]
    assert not differs, differs[:5]
