"""What the dialect says to DuckDB has Spark's answer, expression by expression, over rows with edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pytest

from eventide.duckdb.functions import missing_functions
from eventide.engine.spark.versions import same_everywhere
from eventide.errors import DeclarationError
from eventide.plan.duckdb.transpile import same_answer, to_duckdb
from eventide.plan.expressions.columns import Column, spark_type
from eventide.plan.expressions.parse import parsed
from eventide.plan.expressions.spark_dialect import SPARK
from eventide.plan.expressions.spark_types import SparkTypes
from eventide.plan.sql.failing_rows import fails
from eventide.sources.arrow_types import spark_type_of
from tests.engine.partial_runs import alike, duck
from tests.engine.spark_corners import COLUMNS as CORNER_COLUMNS
from tests.engine.spark_corners import CORNERS, TEXT_CASTS, TEXT_COLUMNS, corners, texts
from tests.engine.spark_words import ALL_COLUMNS, EXPRESSIONS, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDING = 1e-12
DDL = ", ".join(f"`{column.name}` {column.type}" for column in ALL_COLUMNS)

AGGREGATES = (
    "count(*)", "count(i)", "count(DISTINCT i, j)", "count(i, j)", "sum(i)", "sum(m)", "sum(e)", "avg(m)", "avg(i)",
    "avg(e)", "min(s)", "max(t)", "stddev(e)", "var_pop(e)", "median(i)", "percentile(i, 0.25)",
    "percentile(e, array(0.1, 0.9))", "bool_and(o)", "any(o)", "bit_xor(i)", "count_if(i > 0)",
    "sum(i) FILTER (WHERE o)", "avg(m) FILTER (WHERE i > 0)", "sum(DISTINCT j)", "covar_samp(e, j)",
    "corr(i, i)", "corr(j, i)", "corr(j, j)", "regr_slope(i, j)", "regr_slope(j, i)", "corr(i, j) FILTER (WHERE i > 9)",
    "size(collect_list(i))", "array_sort(collect_set(j))", "size(array_agg(i) FILTER (WHERE i > 9))",
    "sum(m) / count(m)", "grouping_id()", "grouping(j)",
)  # fmt: skip


@pytest.fixture(scope="module")
def words(spark: SparkSession) -> SparkSession:
    spark.createDataFrame(table(), schema=DDL).createOrReplaceTempView("words")
    return spark


@pytest.mark.spark
def test_every_expression_has_sparks_answer_and_type_in_duckdb(words: SparkSession) -> None:
    selected = ", ".join(f"{sql} AS c{n}" for n, sql in enumerate(EXPRESSIONS))
    expected = words.sql(f"SELECT {selected} FROM words").toArrow()
    with duck() as connection:
        connection.register("words", table())
        for n, sql in enumerate(EXPRESSIONS):
            found = connection.sql(f"SELECT {to_duckdb(sql, ALL_COLUMNS)} AS x FROM words").to_arrow_table()
            assert alike(expected.column(n).to_pylist(), found.column(0).to_pylist(), ROUNDING), sql
            assert spark_type_of(expected.schema.field(n).type) == spark_type_of(found.schema.field(0).type), sql
            assert same_answer(sql, ALL_COLUMNS), sql


@pytest.mark.spark
@pytest.mark.parametrize(
    ("rows", "known", "expressions"),
    [(corners, CORNER_COLUMNS, CORNERS), (texts, TEXT_COLUMNS, TEXT_CASTS)],
    ids=["values", "texts"],
)
def test_corners_have_sparks_answer_and_type_and_fail_for_the_same_rows(
    spark: SparkSession, rows: Callable[[], pa.Table], known: tuple[Column, ...], expressions: tuple[str, ...]
) -> None:
    ddl = ", ".join(f"`{column.name}` {column.type}" for column in known)
    spark.createDataFrame(rows(), schema=ddl).createOrReplaceTempView("corners")
    with duck() as connection:
        connection.register("corners", rows())
        # Expressions in several statements: Spark's compiler takes too long over a very wide one.
        for start in range(0, len(expressions), 30):
            some = expressions[start : start + 30]
            asked = [f"{fails(sql)}, CASE WHEN {fails(sql)} THEN NULL ELSE {sql} END" for sql in some]
            expected = spark.sql(same_everywhere(f"SELECT {', '.join(asked)} FROM corners ORDER BY __t")).toArrow()
            for n, (sql, text) in enumerate(zip(some, asked, strict=True)):
                statement = to_duckdb(f"SELECT {text} FROM corners ORDER BY __t", known)
                found = connection.sql(statement).to_arrow_table()
                assert found.column(0).to_pylist() == expected.column(2 * n).to_pylist(), sql
                assert alike(_plain(expected.column(2 * n + 1)), _plain(found.column(1)), ROUNDING), sql
                kinds = [spark_type_of(each.type) for each in (expected.schema.field(2 * n + 1), found.schema.field(1))]
                assert kinds[0] == kinds[1], sql
                assert same_answer(sql, known), sql


def _plain(column: pa.ChunkedArray) -> list[object]:
    """Values of Python; days as numbers, as Python has no year above 9999."""
    whole = pa.types.is_date(column.type) or pa.types.is_timestamp(column.type)
    days = pa.types.is_date(column.type)
    return list((column.cast(pa.int32() if days else pa.int64()) if whole else column).to_pylist())


@pytest.mark.spark
def test_reading_and_writing_sparks_sql_changes_no_answer(words: SparkSession) -> None:
    selected = ", ".join(f"{sql} AS c{n}" for n, sql in enumerate(EXPRESSIONS))
    written = ", ".join(f"{parsed(sql, 'a test').sql(SPARK)} AS c{n}" for n, sql in enumerate(EXPRESSIONS))
    one, other = (words.sql(f"SELECT {columns} FROM words").toArrow() for columns in (selected, written))
    for n, sql in enumerate(EXPRESSIONS):
        assert alike(one.column(n).to_pylist(), other.column(n).to_pylist()), sql


@pytest.mark.spark
def test_types_told_from_the_words_alone_are_never_wrong(words: SparkSession) -> None:
    types = SparkTypes({column.name: column.type for column in ALL_COLUMNS})
    for sources, told in ((EXPRESSIONS, 120), (AGGREGATES[:-2], 20)):
        schema = words.sql(f"SELECT {', '.join(f'{sql} AS c{n}' for n, sql in enumerate(sources))} FROM words").schema
        known = {sql: types.of(parsed(sql, "a test")) for sql in sources}
        assert sum(kind is not None for kind in known.values()) >= told
        for field, sql in zip(schema, sources, strict=True):
            actual = field.dataType.simpleString()
            assert known[sql] in (None, "VOID" if actual == "void" else spark_type(actual)), sql


@pytest.mark.spark
def test_aggregates_over_rows_and_grouping_sets_have_sparks_answer_in_duckdb(words: SparkSession) -> None:
    selected = ", ".join(f"{sql} AS c{n}" for n, sql in enumerate(AGGREGATES))
    text = f"SELECT {selected} FROM words GROUP BY GROUPING SETS ((j), (j, o), ()) ORDER BY grouping_id(j, o), j, o"
    text = text.replace("grouping_id()", "grouping_id(j, o)")
    expected = words.sql(same_everywhere(text)).toArrow()
    with duck() as connection:
        connection.register("words", table())
        found = connection.sql(to_duckdb(text, ALL_COLUMNS)).to_arrow_table()
    for n, sql in enumerate(AGGREGATES):
        ours, sparks = found.column(n).to_pylist(), expected.column(n).to_pylist()
        assert alike(sparks, ours, ROUNDING), sql
        # GROUPING is TINYINT in Spark, BIGINT in DuckDB.
        same_type = spark_type_of(expected.schema.field(n).type) == spark_type_of(found.schema.field(n).type)
        assert same_type or "grouping" in sql, sql


@pytest.mark.parametrize(
    "sql",
    ["1 / 0", "i / 0", "m / 0", "1 % 0", "1 div 0", "a[7]", "element_at(a, 9)", "CAST('x' AS INT)",
     "CAST(1e20D AS INT)", "i + 2147483647", "b * b", "CAST(b AS INT)", "CAST('2020-13-01' AS DATE)",
     "CAST('1.5' AS INT)"],
)  # fmt: skip
def test_what_is_an_error_in_spark_is_one_in_duckdb(sql: str) -> None:
    with duck() as connection:
        connection.register("words", table())
        text = to_duckdb(f"SELECT {sql} AS x FROM words", ALL_COLUMNS)
        with pytest.raises(duckdb.Error):
            connection.sql(text).to_arrow_table()


@pytest.mark.spark
@pytest.mark.parametrize("sql", ["1 / 0", "a[7]", "CAST('1.5' AS INT)", "i + 2147483647", "CAST(b AS INT)"])
def test_these_are_errors_in_spark(words: SparkSession, sql: str) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException):
        words.sql(f"SELECT {sql} AS x FROM words").toArrow()


@pytest.mark.parametrize(
    ("sql", "name"),
    [
        ("date_format(t, 'QQ')", "DATE_FORMAT with 'QQ' in its pattern"),
        ("soundex(s)", "SOUNDEX"),
        ("hash(i)", "HASH"),
        ("xxhash64(i) + now()", "NOW"),
        ("arrays_zip(a, a)", "ARRAYS_ZIP"),
        ("skewness(i)", "SKEWNESS"),
        ("regexp_extract_all(s, 'a*', 0)", "all matches of 'a\\*', which matches no letters at all,"),
        ("current_timestamp()", "CURRENT_TIMESTAMP"),
    ],
)
def test_a_function_that_only_spark_has_is_refused(sql: str, name: str) -> None:
    with pytest.raises(DeclarationError, match=f"{name} exists only on Spark: use the Spark engine"):
        to_duckdb(f"SELECT {sql} FROM words")
    assert not same_answer(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "w * w",
        "CAST(w AS DECIMAL(38, 10)) / w",
        "s RLIKE u",
        "s RLIKE '(?<=h)e'",
        "s RLIKE '(.)\\\\1'",
        "s RLIKE 'x++'",
        "s RLIKE '[[:alpha:]]'",
        "regexp_replace(s, 'l*', '-')",
        "regexp_replace(s, 'l', '$1')",
        "greatest(r, r)",
        "regexp_extract(s, 'l', 1)",
        "date_part('epoch', t)",
        "a < array(1)",
        "round(e, i)",
        "s LIKE ANY ('a', 'b')",
        "split(s, ',', 2)",
        "j << 2",
        "to_utc_timestamp(t, 'Europe/Berlin')",
        "from_utc_timestamp(t, '+02:00')",
        "CAST(t AS DECIMAL(20, 6))",
        "y - y",
    ],
)
def test_what_would_be_said_with_another_answer_is_refused(sql: str) -> None:
    with pytest.raises(DeclarationError, match="exists only on Spark"):
        to_duckdb(sql, ALL_COLUMNS)


def test_a_users_own_function_is_passed_on_and_missed_where_it_is_not_there() -> None:
    def doubled(x: int) -> int:
        return 2 * x

    sql = "SELECT my_own(i) AS x FROM (SELECT 21 AS i)"
    with duck() as connection:
        assert missing_functions(connection, sql) == ["my_own"]
        function: Callable[[int], int] = doubled
        connection.create_function("my_own", function, ["INTEGER"], "INTEGER")
        assert missing_functions(connection, sql) == []
        assert connection.sql(to_duckdb(sql)).fetchall() == [(42,)]
    assert not same_answer("my_own(i)")
