"""Reduce, merge and tell the value, the way rounds do it, in Spark, in DuckDB, or half and half."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from eventide.duckdb.functions import register
from eventide.plan.bound.aggregates import split
from eventide.plan.duckdb.transpile import to_duckdb
from eventide.plan.expressions.aggregate_call import Split
from eventide.plan.expressions.columns import Column, columns, spark_type
from eventide.sources.arrow_types import arrow_type, spark_type_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS = columns(
    "g INT, pane INT, t BIGINT, ti TINYINT, i INT, b BIGINT, d DOUBLE, e DOUBLE, f FLOAT, m DECIMAL(10, 2), "
    "w DECIMAL(24, 6), s STRING, o BOOLEAN, ts TIMESTAMP, z TIMESTAMP_NTZ, y DATE, a ARRAY<INT>, "
    "r STRUCT<p: INT, q: STRING>, x BINARY, c BOOLEAN"
)

Answers = dict[int, dict[str, Any]]
"""For each group the values by name."""


def duck() -> duckdb.DuckDBPyConnection:
    """A new connection as the engine has it."""
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    register(connection)
    return connection


@cache
def shared_duck() -> duckdb.DuckDBPyConnection:
    """One connection for all runs of this process."""
    return duck()


def spark_types(spark: SparkSession) -> Callable[[str], str]:
    """The types of expressions over the columns, as Spark tells them."""
    empty = spark.createDataFrame([], ", ".join(f"`{c.name}` {c.type}" for c in COLUMNS))

    @cache
    def type_of(sql: str) -> str:
        return spark_type(empty.selectExpr(f"{sql} AS x").schema[0].dataType.simpleString())

    return type_of


def splits_of(expressions: Sequence[str], type_of: Callable[[str], str]) -> dict[str, Split]:
    """Every expression split; `t` is the time."""
    found = {f"v{n}": split(f"p{n}", sql, type_of, "t") for n, sql in enumerate(expressions)}
    missing = [expressions[int(name[1:])] for name, part in found.items() if part is None]
    assert not missing, f"no partials for {missing}"
    return {name: part for name, part in found.items() if part is not None}


def reduce_text(splits: dict[str, Split], table: str) -> str:
    """One row of partials for each pane and group."""
    partials = ", ".join(f"{p.reduce} AS {p.name}" for part in splits.values() for p in part.partials)
    return f"SELECT pane, g, {partials} FROM {table} GROUP BY pane, g"


def merge_text(splits: dict[str, Split], table: str, keys: str = "g") -> str:
    """One row of merged partials for each group, or for each of the given keys."""
    parts = [p for part in splits.values() for p in part.partials]
    over = [
        f"{sql.replace('OVER merged', f'OVER (PARTITION BY {keys})')} AS {name}" for p in parts for name, sql in p.over
    ]
    merged = ", ".join(f"{p.merge} AS {p.name}" for p in parts)
    return f"SELECT {keys}, {merged} FROM (SELECT {', '.join(['*', *over])} FROM {table}) GROUP BY {keys}"


def value_text(splits: dict[str, Split], table: str) -> str:
    """The values and whether the checks hold."""
    values = [f"{part.value} AS {name}" for name, part in splits.items()]
    checks = [
        f"({' AND '.join(f'({condition})' for condition, _ in part.checks)}) AS ok_{name}"
        for name, part in splits.items()
        if part.checks
    ]
    return f"SELECT g, {', '.join([*values, *checks])} FROM ({table})"


def direct_text(expressions: Sequence[str], table: str) -> str:
    """What Spark itself says over all rows."""
    return f"SELECT g, {', '.join(f'{sql} AS v{n}' for n, sql in enumerate(expressions))} FROM {table} GROUP BY g"


def all_in_duckdb(splits: dict[str, Split], rows: pa.Table, known: tuple[Column, ...] = COLUMNS) -> pa.Table:
    """The local engine: every step in DuckDB."""
    connection = shared_duck()
    connection.register("rows", rows)
    slices = connection.sql(to_duckdb(reduce_text(splits, "rows"), known)).to_arrow_table()
    return finished_in_duckdb(splits, slices)


def merged_twice_in_duckdb(splits: dict[str, Split], rows: pa.Table) -> pa.Table:
    """As when slices are made fewer on the way: slices of one pane and round, then of one pane, then all."""
    connection = shared_duck()
    connection.register("rows", rows)
    fine = reduce_text(splits, "(SELECT * REPLACE (pane * 2 + t % 2 AS pane) FROM rows)")
    connection.register("fine", connection.sql(to_duckdb(fine, COLUMNS)).to_arrow_table())
    known = tuple(Column(p.name, p.type) for part in splits.values() for p in part.partials)
    connection.execute("CREATE OR REPLACE TEMP VIEW panes AS SELECT * REPLACE (pane // 2 AS pane) FROM fine")
    slices = connection.sql(to_duckdb(merge_text(splits, "panes", "pane, g"), known)).to_arrow_table()
    types = {p.name: arrow_type(p.type) for part in splits.values() for p in part.partials}
    for name, kind in types.items():
        assert spark_type_of(slices.schema.field(name).type) == spark_type_of(kind), name
    return finished_in_duckdb(splits, slices)


def finished_in_duckdb(splits: dict[str, Split], slices: pa.Table) -> pa.Table:
    """The driver: partials that were reduced elsewhere are merged and told in DuckDB."""
    connection = shared_duck()
    connection.register("slices", slices)
    known = tuple(Column(p.name, p.type) for part in splits.values() for p in part.partials)
    finished: pa.Table = connection.sql(
        to_duckdb(value_text(splits, merge_text(splits, "slices")), known)
    ).to_arrow_table()
    return finished


def by_group(table: pa.Table) -> Answers:
    """The answers of a table with one row for each group."""
    return {row["g"]: row for row in table.to_pylist()}


def alike(one: Any, other: Any, close: float = 0.0) -> bool:
    """Whether two values are the same; numbers with a fraction within a relative error."""
    if isinstance(one, float) and isinstance(other, float):
        if math.isnan(one) or math.isnan(other) or math.isinf(one) or math.isinf(other):
            return one == other or (math.isnan(one) and math.isnan(other))
        return math.isclose(one, other, rel_tol=close, abs_tol=close)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(alike(a, b, close) for a, b in zip(one, other, strict=True))
    if isinstance(one, Decimal) and isinstance(other, Decimal):
        return one == other and one.as_tuple().exponent == other.as_tuple().exponent
    return type(one) is type(other) and one == other
