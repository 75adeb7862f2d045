"""Rows that make an expression fail are found without failing, exactly, and on both engines alike."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.errors import DataFaultError
from eventide.plan.bound.query import BoundQuery, bind
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream
from eventide.plan.declared.window import Window
from eventide.plan.duckdb.generator import MACROS
from eventide.plan.expressions.columns import columns
from eventide.plan.expressions.parse import SPARK, parsed
from eventide.plan.expressions.spark_types import SparkTypes
from eventide.plan.sql.evaluation_order import in_evaluation_order, may_fail
from eventide.plan.sql.failing_rows import RowExpressions, fail_safe_form, fails
from eventide.plan.sql.reduce import broken_text
from eventide.plan.sql.stream_rows import MALFORMED, batch_view
from eventide.sources.arrow_types import arrow_type
from tests.plan.spark_model import COLUMNS, Row, Word, fails_for, rows, words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = SparkTypes({column.name: column.type for column in columns(COLUMNS)})
SCHEMA = pa.schema(
    [("__t", pa.int64()), ("a", pa.int32()), ("b", pa.int32()), ("s", pa.string()), ("xs", pa.list_(pa.int32()))]
)


@pytest.fixture(scope="module")
def bench() -> Iterator[DuckDBExecutor]:
    duckdb_executor = DuckDBExecutor()
    yield duckdb_executor
    duckdb_executor.close()


def table(given: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist([{"__t": i, **row} for i, row in enumerate(given)], schema=SCHEMA)


def in_order(sql: str) -> str:
    """The expression as the careful statement has it."""
    return in_evaluation_order(parsed(sql, "a test"), TYPES).sql(SPARK)


def raises(bench: DuckDBExecutor, sql: str, row: Row) -> bool:
    try:
        bench.ask(f"SELECT {sql} AS x FROM r", {"r": table([row])})
    except DataFaultError:
        return True
    return False


@settings(max_examples=150)
@given(words, st.lists(rows, min_size=1, max_size=6))
def test_a_row_fails_where_spark_fails_and_the_value_of_all_others_is_spark_s(
    bench: DuckDBExecutor, word: Word, given: list[Row]
) -> None:
    sql = in_order(word.sql())
    asked = f"SELECT __t, {fails(sql)} AS broken, CASE WHEN {fails(sql)} THEN NULL ELSE {sql} END AS x FROM r"
    answer = {row["__t"]: row for row in bench.ask(asked, {"r": table(given)}).to_pylist()}
    for i, row in enumerate(given):
        broken = fails_for(word, row)
        assert answer[i]["broken"] is broken, (word.sql(), row)
        assert answer[i]["x"] == (None if broken else word.of(row)), (word.sql(), row)


@settings(max_examples=50)
@given(words, rows)
def test_the_order_of_evaluation_that_is_written_out_is_the_one_that_raises(
    bench: DuckDBExecutor, word: Word, row: Row
) -> None:
    assert raises(bench, in_order(word.sql()), row) is fails_for(word, row)


@settings(max_examples=100)
@given(words, st.lists(rows, min_size=3, max_size=8))
def test_what_is_said_not_to_fail_never_does(word: Word, given: list[Row]) -> None:
    if not may_fail(parsed(word.sql(), "a test"), TYPES):
        assert not any(fails_for(word, row) for row in given)


@pytest.mark.spark
# Always the same expressions: Spark has more rules for leaving things out than the model knows.
@settings(max_examples=12, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(words, min_size=6, max_size=10), st.lists(rows, min_size=4, max_size=8))
def test_spark_fails_for_the_same_rows_also_where_expressions_share_their_parts(
    spark: SparkSession, tmp_path: Path, several: list[Word], given: list[Row]
) -> None:
    asked = ", ".join(f"{fails(in_order(word.sql()))} AS x{i}" for i, word in enumerate(several))
    # From a file: what Spark computes of rows in memory never meets its compiled code.
    file = tmp_path / "rows.parquet"
    pq.write_table(table(given), file)
    spark.read.parquet(str(file)).createOrReplaceTempView("broken_sample")
    answer = {row["__t"]: row for row in spark.sql(f"SELECT __t, {asked} FROM broken_sample").toArrow().to_pylist()}
    for i, row in enumerate(given):
        for j, word in enumerate(several):
            assert answer[i][f"x{j}"] is fails_for(word, row), (word.sql(), row)


MIXED = "n INT, m BIGINT, y TINYINT, x DOUBLE, d DECIMAL(5, 2), s STRING, xs ARRAY<STRING>"
MIXED_ROWS: list[dict[str, Any]] = [
    {"n": 1, "m": 1, "y": 1, "x": 1.0, "d": Decimal("1.00"), "s": "1", "xs": ["1", "2"]},
    {"n": 0, "m": 0, "y": 0, "x": 0.0, "d": Decimal("0.00"), "s": "abc", "xs": ["x"]},
    {"n": 2**31 - 1, "m": 2**63 - 1, "y": 127, "x": 1e300, "d": Decimal("999.99"), "s": "2024-02-30", "xs": []},
    dict.fromkeys(["n", "m", "y", "x", "d", "s", "xs"]),
]
FAILING: dict[str, set[int]] = {
    "CAST(s AS INT)": {1, 2},
    "CAST(s AS DATE)": {0, 1, 2},
    "CAST(s AS BOOLEAN)": {1, 2},
    "CAST(s AS DECIMAL(5, 2))": {1, 2},
    "CAST(s AS DOUBLE)": {1, 2},
    "CAST(x AS INT)": {2},
    "CAST(m AS INT)": {2},
    "CAST(d * 100 AS TINYINT)": {2},
    "CAST(n AS BIGINT) + 1": set(),
    "n + 1": {2},
    "m * 2": {2},
    "y + y": {2},
    "1 / n": {1},
    "n % y": {1},
    "m div n": {1},
    "x / x": {1},
    "x % x": {1},
    "d / d": {1},
    "pmod(n, y)": {1},
    "xs[1]": {1, 2},
    "xs[n]": {2},
    "element_at(xs, 2)": {1, 2},
    "element_at(xs, n)": {1, 2},
    "get(xs, n)": set(),
    "try_divide(1, n)": set(),
    "TRY_CAST(s AS INT)": set(),
    "transform(xs, z -> CAST(z AS INT))": {1},
    "CASE WHEN n <> 0 THEN 1 / n END": set(),
    "IF(n = 0, NULL, 1 / n)": set(),
    "coalesce(n, CAST(s AS INT))": set(),
    "nullif(n, CAST(s AS INT))": {1, 2},
    "n <> 0 AND 1 / n > 0": set(),
    "n = 0 OR 1 / n > 0": set(),
    "n BETWEEN 0 AND 5 / n": {1},
    "n BETWEEN 1 AND 5 / n": set(),
    "concat(s, '\\'')": set(),
    "CAST(concat(s, '\\'') AS INT)": {0, 1, 2},
    "to_timestamp(s, 'yyyy-MM-dd')": {0, 1, 2},
}
"""For each expression, the rows that it fails for, on either engine."""

ON_SPARK_ALONE: dict[str, set[int]] = {
    "s + 1": {1, 2},
    "s > 5": {1, 2},
    "n IN (7, s)": {1, 2},
    "sqrt(s)": {1, 2},
    "hour(s)": {0, 1, 2},
    "to_number(s, '9')": {1, 2},
    "CAST(xs AS ARRAY<INT>)": {1},
    "named_struct('k', CAST(s AS INT))": {1, 2},
    "map('k', 1 / n)['k']": {1},
    "make_date(2024, n, 1)": {1, 2},
    "raise_error(s)": {0, 1, 2, 3},
    "assert_true(n <> 0)": {1, 3},
    "parse_json(s)": {1, 2},
}
"""What the local engine refuses when it is declared."""


def mixed() -> pa.Table:
    fields = [("__t", pa.int64()), *((column.name, arrow_type(column.type)) for column in columns(MIXED))]
    return pa.Table.from_pylist([{"__t": i, **row} for i, row in enumerate(MIXED_ROWS)], schema=pa.schema(fields))


def asked_of_all(expressions: Sequence[str]) -> str:
    types = SparkTypes({column.name: column.type for column in columns(MIXED)})
    told = []
    for i, sql in enumerate(expressions):
        spoken = in_evaluation_order(parsed(sql, "a test"), types).sql(SPARK)
        told.append(f"{fails(spoken)} AS x{i}, CASE WHEN {fails(spoken)} THEN NULL ELSE {spoken} END AS y{i}")
    return f"SELECT __t, {', '.join(told)} FROM broken_mixed"


@pytest.mark.parametrize("sql", FAILING)
def test_an_expression_fails_for_these_rows_on_the_local_engine(bench: DuckDBExecutor, sql: str) -> None:
    answer = bench.ask(asked_of_all([sql]), {"broken_mixed": mixed()})
    assert {row["__t"] for row in answer.to_pylist() if row["x0"]} == FAILING[sql]


@pytest.mark.spark
def test_expressions_fail_for_the_same_rows_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    every = FAILING | ON_SPARK_ALONE
    pq.write_table(mixed(), tmp_path / "rows.parquet")
    spark.read.parquet(str(tmp_path / "rows.parquet")).createOrReplaceTempView("broken_mixed")
    answer = spark.sql(asked_of_all(list(every))).collect()
    found = {sql: {row["__t"] for row in answer if row[f"x{i}"]} for i, sql in enumerate(every)}
    assert found == every


def test_no_macro_fails_in_a_way_that_cannot_be_tried() -> None:
    """DuckDB refuses TRY around its own `error`, so the macros must not use it."""
    assert not [macro for macro in MACROS if re.search(r"\berror\(", macro)]


STREAM = Stream("S", columns("t BIGINT, s STRING, a INT, b INT, x DOUBLE"), time="t")


def bound(select: str, where: str | None = None, group: str | None = None, window: Window | None = None) -> BoundQuery:
    query = Query("q", "S", window or Window(10), named_as(v=select), named_as(g=group) if group else (), where)
    types = SparkTypes({column.name: column.type for column in STREAM.columns})
    return bind(query, STREAM, lambda sql: types.of(parsed(sql, "a test")) or "INT")


@pytest.mark.parametrize(
    ("select", "where", "group"),
    [("sum(x)", None, "s"), ("max(a)", "b > 1 AND s = 'x'", None), ("count(*)", None, None)],
)
def test_a_query_that_no_row_can_break_has_no_other_form(select: str, where: str | None, group: str | None) -> None:
    query = bound(select, where, group)
    assert RowExpressions(query).broken is None
    assert fail_safe_form(query) is query


def told(bench: DuckDBExecutor, query: BoundQuery, row: dict[str, Any]) -> str | None:
    """The reason why a row is rejected, or None."""
    fields = [(column.name, arrow_type(column.type)) for column in STREAM.columns]
    table = pa.Table.from_pylist([{"t": 1, **row}], schema=pa.schema([*fields, (MALFORMED, pa.string())]))
    answer = bench.ask(broken_text(STREAM, [query]), {batch_view(STREAM): table}).to_pylist()
    return str(answer[0]["_reason"]) if answer else None


@pytest.mark.parametrize(
    ("select", "where", "group", "row", "reason"),
    [
        (
            "sum(CAST(s AS DECIMAL(5, 1)))",
            None,
            None,
            {"s": "x"},
            "CAST(s AS DECIMAL(5, 1)) fails: the value is no DECIMAL(5, 1)",
        ),
        ("sum(CAST(s AS INT) + a)", None, None, {"s": "x"}, "CAST(s AS INT) fails: the value is no INT"),
        ("sum(a + 1)", None, None, {"a": 2**31 - 1}, "a + 1 fails: the result does not fit INT"),
        ("sum(a)", "a / b > 1", None, {"a": 1, "b": 0}, "a / b fails: division by zero"),
        ("sum(a)", None, "pmod(a, b)", {"a": 1, "b": 0}, "pmod(a, b) fails: division by zero"),
        ("max(split(s, ',')[1])", None, None, {"s": "x"}, "SPLIT(s, ',')[1] fails: there is no such element"),
        ("sum(CASE WHEN a > 0 THEN a / b END)", None, None, {"a": 1, "b": 0}, "CASE WHEN a > 0 THEN a / b END fails"),
        ("sum(a / b) FILTER (WHERE a > 0)", None, None, {"a": 1, "b": 0}, "a / b fails: division by zero"),
        ("sum(a) FILTER (WHERE a / b > 0)", None, None, {"a": 1, "b": 0}, "a / b fails: division by zero"),
        ("min_by(a, CAST(s AS DATE))", None, None, {"a": 1, "s": "x"}, "CAST(s AS DATE) fails: the value is no DATE"),
        ("sum(a / b) FILTER (WHERE b <> 0)", None, None, {"a": 1, "b": 0}, None),
        ("sum(a / b)", "b <> 0", None, {"a": 1, "b": 0}, None),
        ("sum(a / b)", "a > 1", "CAST(s AS INT)", {"a": 1, "b": 0, "s": "x"}, None),
    ],
)
def test_the_reason_names_the_innermost_expression_that_fails_and_why(
    bench: DuckDBExecutor, select: str, where: str | None, group: str | None, row: dict[str, Any], reason: str | None
) -> None:
    found = told(bench, bound(select, where, group), row)
    assert found == (None if reason is None else f"query 'q': {reason}")


def test_a_row_in_the_gap_between_windows_breaks_nothing(bench: DuckDBExecutor) -> None:
    query, gaps = (bound("sum(CAST(s AS INT))", window=window) for window in (Window(1), Window(1, 10)))
    assert told(bench, query, {"s": "x"}) is not None
    assert told(bench, gaps, {"s": "x"}) is None
