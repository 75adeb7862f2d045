"""The law of slices: however rows are cut, reduced and merged, the value is what Spark says over all of them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.plan.bound.aggregates import over_rows, split, split_together
from eventide.plan.duckdb.transpile import to_duckdb
from eventide.plan.expressions.aggregate_call import Split
from eventide.plan.expressions.parse import parsed
from eventide.plan.expressions.spark_types import SparkTypes
from eventide.sources.arrow_types import arrow_type, spark_type_of
from tests.engine.aggregate_cases import CASES, random_rows
from tests.engine.partial_runs import (
    COLUMNS,
    alike,
    all_in_duckdb,
    by_group,
    direct_text,
    finished_in_duckdb,
    merge_text,
    merged_twice_in_duckdb,
    reduce_text,
    shared_duck,
    spark_types,
    splits_of,
    value_text,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CLOSE = 1e-9
AT_ONCE = 60
DDL = ", ".join(f"`{column.name}` {column.type}" for column in COLUMNS)
TYPES = SparkTypes({column.name: column.type for column in COLUMNS})


@pytest.fixture(scope="module")
def interpreted(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark without compiled code: compiling hundreds of aggregates takes longer than they do."""
    settings_ = {"spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN"}
    before = {key: spark.conf.get(key, None) for key in settings_}
    for key, value in settings_.items():
        spark.conf.set(key, value)
    yield spark
    for key, old in before.items():
        spark.conf.set(key, old) if old is not None else spark.conf.unset(key)


@pytest.fixture(scope="module")
def splits(interpreted: SparkSession) -> dict[str, Split]:
    by_spark = spark_types(interpreted)
    return splits_of(list(CASES), lambda sql: TYPES.of(parsed(sql, "a test")) or by_spark(sql))


@pytest.mark.spark
def test_spark_the_driver_and_the_local_engine_tell_what_spark_says_over_all_rows(
    interpreted: SparkSession, splits: dict[str, Split]
) -> None:
    rows = random_rows(Random(1), groups=200)
    interpreted.createDataFrame(rows, schema=DDL).createOrReplaceTempView("partial_rows")
    names = list(splits)
    for first in range(0, len(names), AT_ONCE):
        some = {name: splits[name] for name in names[first : first + AT_ONCE]}
        direct = [expected for name, expected in zip(names, CASES.values(), strict=True) if name in some]
        text = direct_text(direct, "partial_rows")
        expected = interpreted.sql(text).toArrow().rename_columns(["g", *some])
        slices = interpreted.sql(reduce_text(some, "partial_rows")).toArrow()
        interpreted.createDataFrame(slices).createOrReplaceTempView("partial_slices")
        on_cluster = interpreted.sql(value_text(some, merge_text(some, "partial_slices"))).toArrow()
        _compare(some, expected, on_cluster, "all in Spark")
        _compare(some, expected, finished_in_duckdb(some, slices), "reduced in Spark, merged in DuckDB")
        _compare(some, expected, all_in_duckdb(some, rows), "all in DuckDB")


def _compare(some: dict[str, Split], expected: pa.Table, answer: pa.Table, where: str) -> None:
    sentences = dict(zip((f"v{n}" for n in range(len(CASES))), CASES, strict=True))
    wanted, found = by_group(expected), by_group(answer)
    assert wanted.keys() == found.keys()
    for name, part in some.items():
        assert spark_type_of(expected.schema.field(name).type) == part.type, sentences[name]
        assert spark_type_of(answer.schema.field(name).type) == part.type, (where, sentences[name])
        for group, row in wanted.items():
            assert alike(row[name], found[group][name], CLOSE), (where, sentences[name], group, row[name])


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "g": st.integers(0, 1),
            "pane": st.integers(0, 3),
            "t": st.integers(0, 2),
            "i": st.none() | st.integers(-(2**31), 2**31 - 1),
            "b": st.none() | st.integers(-(2**63), 2**63 - 1),
            "e": st.none() | st.floats(-1e6, 1e6),
            "d": st.none() | st.floats(-1e300, 1e300) | st.just(float("nan")),
            "m": st.none() | st.decimals(-99_999_999, 99_999_999, places=2),
            "s": st.none() | st.text(max_size=3),
            "o": st.none() | st.booleans(),
            "a": st.none() | st.lists(st.none() | st.integers(0, 2), max_size=2),
            "c": st.booleans(),
        }
    ),
    min_size=1,
    max_size=12,
)
LAW = [
    "count(i)", "sum(b)", "avg(b)", "sum(m)", "avg(m)", "avg(e)", "stddev(e)", "var_pop(e)", "min(a)", "max(d)",
    "min(s)", "first(i)", "last(s) IGNORE NULLS", "max_by(s, i)", "min_by(m, d) FILTER (WHERE c)", "bool_and(o)",
    "bit_xor(b)", "approx_count_distinct(s)", "approx_percentile(d, array(0.1, 0.5))", "max(i) FILTER (WHERE c)",

]  # fmt: skip


LAW_SPLITS = splits_of(LAW, lambda sql: TYPES.of(parsed(sql, "a test")) or "")


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=ROWS)
def test_how_rows_are_cut_and_how_often_slices_are_merged_does_not_show_in_the_answers(
    drawn: list[dict[str, object]],
) -> None:
    parts = LAW_SPLITS
    fields = [pa.field(column.name, arrow_type(column.type)) for column in COLUMNS]
    cut = pa.table([pa.array([row.get(f.name) for row in drawn], f.type) for f in fields], schema=pa.schema(fields))
    place = cut.column_names.index("pane")
    whole = cut.set_column(place, fields[place], pa.array([0] * len(drawn), fields[place].type))
    wanted, found = by_group(all_in_duckdb(parts, whole)), by_group(all_in_duckdb(parts, cut))
    again = by_group(merged_twice_in_duckdb(parts, cut))
    for group, row in wanted.items():
        for name, sql in zip(parts, LAW, strict=True):
            assert alike(row[name], found[group][name], CLOSE), (sql, row[name], found[group][name])
            assert alike(row[name], again[group][name], CLOSE), ("merged twice", sql, row[name], again[group][name])


ONE_ROW = ["last(s)", "max_by(i, b)", "last(a)", "first(i)", "max_by(s, b)", "last(i)", "first(s)", "max_by(a, b)"]


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(drawn=ROWS)
def test_values_that_are_chosen_in_the_same_way_are_those_of_one_row(drawn: list[dict[str, Any]]) -> None:
    found = split_together("p", ONE_ROW, lambda sql: TYPES.of(parsed(sql, "a test")) or "", "t")
    parts = {f"v{n}": part for n, part in enumerate(found) if part is not None}
    fields = [pa.field(column.name, arrow_type(column.type)) for column in COLUMNS]
    rows = pa.table([pa.array([row.get(f.name) for row in drawn], f.type) for f in fields], schema=pa.schema(fields))
    answers = by_group(all_in_duckdb(parts, rows))
    for group in {row["g"] for row in drawn}:
        mine = [row for row in drawn if row["g"] == group]
        last = max(mine, key=lambda row: (row["t"], *map(_placed, (row["s"], row["a"], row["i"]))))
        first = min(mine, key=lambda row: (row["t"], *map(_placed, (row["i"], row["s"]))))
        there = [row for row in mine if row["b"] is not None]
        most = max(there, key=lambda row: (row["b"], *map(_placed, (row["i"], row["s"], row["a"]))), default={})
        chosen = dict(zip(ONE_ROW, (last, most, last, first, most, last, first, most), strict=True))
        for name, (sql, row) in zip(parts, chosen.items(), strict=True):
            column = sql.split("(")[1][0]
            assert alike(row.get(column), answers[group][name], CLOSE), (sql, row, answers[group])


def _placed(value: Any) -> Any:
    """The place of a value in the order: NULL is below all else, also inside of an array."""
    if isinstance(value, list):
        return True, [_placed(one) for one in value]
    return (value is not None, value.encode() if isinstance(value, str) else value or 0)


def test_a_sum_that_leaves_bigint_is_null_and_the_check_says_so() -> None:
    parts = splits_of(["sum(b)"], lambda sql: "BIGINT")
    assert parts["v0"].checks[0][1] == "the sum of b overflows BIGINT"
    fields = [pa.field(name, pa.int64()) for name in ("g", "pane", "b")]
    largest = 2**63 - 1
    rows = pa.table([[0, 0, 1, 1, 1], [0, 1, 0, 1, 2], [largest, 1, largest, 1, -1]], schema=pa.schema(fields))
    answers = by_group(all_in_duckdb(parts, rows))
    assert (answers[0]["v0"], answers[0]["ok_v0"]) == (None, False)
    # On the way the sum leaves BIGINT and comes back: nothing is lost.
    assert (answers[1]["v0"], answers[1]["ok_v0"]) == (largest, True)


@pytest.mark.parametrize(
    "sql",
    [
        "percentile(i, 0.5)", "median(i)", "mode(i)", "collect_list(i)", "collect_set(i)", "count(DISTINCT i)",
        "sum(DISTINCT i)", "my_own_sum(i) + sum(i)", "skewness(d)", "percentile_cont(0.5) WITHIN GROUP (ORDER BY i)",
        "max(i) + percentile(i, 0.5)", "listagg(s, ',')", "max_by(s, i, 2)", "histogram_numeric(i, 3)",
    ],
)  # fmt: skip
def test_an_aggregate_without_partials_keeps_rows(sql: str) -> None:
    kinds = {"s": "STRING", "d": "DOUBLE"}
    assert split("p", sql, lambda text: kinds.get(text, "INT"), "t") is None or "my_own" in sql


KEPT = {
    "concat(last(s), '/', count(DISTINCT i))": f"concat({CASES['last(s)']}, '/', count(DISTINCT i))",
    "first(i) + median(e)": f"{CASES['first(i)']} + median(e)",
    "max_by(s, i) = min(s) OR count(DISTINCT s) > 2": f"{CASES['max_by(s, i)']} = min(s) OR count(DISTINCT s) > 2",
    "approx_count_distinct(s) - count(DISTINCT s)": f"{CASES['approx_count_distinct(s)']} - count(DISTINCT s)",
    "avg(m) + percentile(e, 0.25)": "avg(m) + percentile(e, 0.25)",
    "stddev(e) - median(e)": "stddev(e) - median(e)",
    "coalesce(sum(b), -1) > count(DISTINCT i)": f"coalesce({CASES['sum(b)']}, -1) > count(DISTINCT i)",
}
"""Expressions in which one aggregate has no partials, and what Spark must say."""


@pytest.mark.spark
def test_over_kept_rows_aggregates_mean_the_same_on_both_engines(interpreted: SparkSession) -> None:
    rows = random_rows(Random(7), groups=60)
    interpreted.createDataFrame(rows, schema=DDL).createOrReplaceTempView("kept_rows")
    known = spark_types(interpreted)
    texts = [over_rows(sql, known, "t", COLUMNS).value for sql in KEPT]
    expected = by_group(interpreted.sql(direct_text(list(KEPT.values()), "kept_rows")).toArrow())
    on_spark = by_group(interpreted.sql(direct_text(texts, "kept_rows")).toArrow())
    connection = shared_duck()
    connection.register("kept_rows", rows)
    local = by_group(connection.sql(to_duckdb(direct_text(texts, "kept_rows"), COLUMNS)).to_arrow_table())
    for group, row in expected.items():
        for n, sql in enumerate(KEPT):
            assert alike(row[f"v{n}"], on_spark[group][f"v{n}"], CLOSE), ("in Spark", sql, group)
            assert alike(row[f"v{n}"], local[group][f"v{n}"], CLOSE), ("in DuckDB", sql, group)
