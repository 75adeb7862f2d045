"""What the local engine says by a function of Spark's is what Spark says, value by value."""

from __future__ import annotations

from string import ascii_letters
from typing import TYPE_CHECKING

import pytest

from eventide.errors import DeclarationError
from eventide.plan.duckdb.transpile import to_duckdb
from eventide.plan.expressions.parse import SPARK, parsed
from eventide.sources.arrow_types import spark_type_of
from tests.choice import chosen
from tests.engine.functions_of_spark import AGGREGATES, OVER, functions, is_same, refused
from tests.engine.partial_runs import alike, duck
from tests.engine.spark_words import ALL_COLUMNS, table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROUNDING = 1e-12
DDL = ", ".join(f"`{column.name}` {column.type}" for column in ALL_COLUMNS)
GROUPS = list(dict.fromkeys(function.group for function in functions()))
NO_NAMES = {
    "case",
    "cast",
    "try_cast",
    "exists",
    "extract",
    "in",
    "overlay",
    "position",
    "rlike",
    "timestampadd",
    "timestampdiff",
}
"""Words of the grammar, which no catalog of functions has, and one that has another name in it."""


def compared(group: str) -> list[str]:
    """The calls of a group whose answers are said to be the same."""
    mine = [function for function in functions() if function.group == group]
    return [call for one in mine for call in one.calls if call not in refused() and is_same(call)]


@pytest.mark.spark
@pytest.mark.parametrize(
    "group",
    chosen(
        [group for group in GROUPS if group not in (OVER, "JSON and others")],
        lambda group: group == "Arrays, maps and structs",
    ),
)
def test_functions_have_sparks_answers_and_types(group: str, spark: SparkSession) -> None:
    spark.createDataFrame(table(), schema=DDL).createOrReplaceTempView("words")
    calls = compared(group)
    selected = ", ".join(f"{sql} AS c{n}" for n, sql in enumerate(calls))
    expected = spark.sql(f"SELECT {selected} FROM words").toArrow()
    with duck() as connection:
        connection.register("words", table())
        for n, sql in enumerate(calls):
            found = connection.sql(f"SELECT {to_duckdb(sql, ALL_COLUMNS)} AS x FROM words").to_arrow_table()
            assert alike(expected.column(n).to_pylist(), found.column(0).to_pylist(), ROUNDING), sql
            assert spark_type_of(expected.schema.field(n).type) == spark_type_of(found.schema.field(0).type), sql


@pytest.mark.slow
@pytest.mark.spark
def test_all_of_the_list_are_functions_of_spark(spark: SparkSession) -> None:
    known = {row.function for row in spark.sql("SHOW FUNCTIONS").collect()}
    assert {function.name for function in functions()} - NO_NAMES <= known


def test_the_list_has_functions_of_every_kind() -> None:
    names = [function.name for function in functions()]
    assert len(names) > 200
    assert len(set(names)) == len(names)
    assert compared(AGGREGATES)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("call", ["date_format(TIMESTAMP '2024-01-01', '{}')", "to_timestamp('2024', '{}')"])
def test_a_pattern_that_is_refused_fails_in_spark(call: str, spark: SparkSession) -> None:
    from pyspark.errors import PySparkException

    for letter in ascii_letters:
        try:
            parsed(call.format(letter), "q")
        except DeclarationError:
            with pytest.raises(PySparkException):
                spark.sql(f"SELECT {call.format(letter)}").collect()


@pytest.mark.parametrize("pattern", ["YYYY-MM", "yyyy-MM-ddTHH", "w", "''yyyy'"])
def test_a_pattern_without_a_meaning_is_refused_before_a_row_comes(pattern: str) -> None:
    with pytest.raises(DeclarationError, match="pattern of times"):
        parsed(f'date_format(t, "{pattern}")', "q")


def test_a_pattern_stays_as_it_is_written() -> None:
    assert parsed("date_format(t, \"'day' d\")", "q").sql(SPARK) == "DATE_FORMAT(t, '\\'day\\' d')"
