"""Reading expressions: columns, aggregates, and errors that show the place."""

from __future__ import annotations

import pytest

from eventide.errors import DeclarationError
from eventide.plan.expressions.columns import columns
from eventide.plan.expressions.parse import aggregates_in, check_columns, columns_in, only_where, parsed
from eventide.plan.expressions.spark_dialect import SPARK


@pytest.mark.parametrize(
    ("sql", "shown"),
    [
        ("sum(speed", "sum(speed\n"),
        ("sum(x + ) + 3", "    sum(x + ) + 3\n            ^"),
        ("x +\n  (y *", "y *"),
        ("'open", "quote"),
        ("a, b", "must be one expression"),
        ("a AS b", "without a name"),
        ("a FROM t", "must be one expression"),
        ("1; DROP TABLE t", "must be one expression"),
        ("", "must be one expression"),
    ],
)
def test_what_cannot_be_read_is_shown_back(sql: str, shown: str) -> None:
    with pytest.raises(DeclarationError, match=r"^the WHERE of query 'q': ") as error:
        parsed(sql, "the WHERE of query 'q'")
    assert shown in str(error.value)


def test_what_is_nested_too_deeply_is_refused_in_words() -> None:
    """Sixty calls inside each other were a RecursionError."""
    few, many = ("abs(" * depth + "x" + ")" * depth for depth in (20, 1000))
    assert columns_in(parsed(few, "query 'q'")) == ("x",)
    with pytest.raises(DeclarationError, match="query 'q': this is nested too deeply: compute parts of it in a query"):
        parsed(many, "query 'q'")


def test_a_quote_that_comes_twice_stands_for_itself() -> None:
    assert parsed("'it''s'", "q").name == "it's"
    assert parsed('"say ""hi"""', "q").name == 'say "hi"'


def test_columns_are_told_once_without_names_of_lambdas_and_fields() -> None:
    assert columns_in(parsed("A + a + s.f.g + transform(xs, x -> x + b) + count(*)", "q")) == ("A", "s", "xs", "b")
    with pytest.raises(DeclarationError, match="stream 's' has no column 'bb': It has a, xs"):
        check_columns(parsed("a + bb", "q"), columns("a INT, xs ARRAY<INT>"), "stream 's'")


@pytest.mark.parametrize(
    ("sql", "calls"),
    [
        ("sum(x) / count(*)", ["SUM(x)", "COUNT(*)"]),
        ("count(DISTINCT x, y)", ["COUNT(DISTINCT x, y)"]),
        ("sum(x) FILTER (WHERE y > 1) + 1", ["SUM(x) FILTER(WHERE y > 1)"]),
        ("first(x) IGNORE NULLS", ["FIRST(x) IGNORE NULLS"]),
        ("any(x) AND some(y)", ["ANY(x)", "SOME(y)"]),
        ("x LIKE ANY ('a', 'b') OR x LIKE SOME ('c')", []),
        ("max_by(x, y, 3)", ["MAX_BY(x, y, 3)"]),
        ("percentile(x, 0.5, weight)", ["PERCENTILE(x, 0.5, weight)"]),
        ("greatest(max(x), upper(y))", ["MAX(x)"]),
        ("hll_sketch_estimate(hll_sketch_agg(x, 12))", ["HLL_SKETCH_AGG(x, 12)"]),
        ("kurtosis(x) + std(y)", ["KURTOSIS(x)", "STD(y)"]),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY x)", ["PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)"]),
        ("theirs(x) + mine(y)", ["MINE(y)"]),
        ("upper(x)", []),
    ],
)
def test_aggregates_are_found_with_all_that_belongs_to_them(sql: str, calls: list[str]) -> None:
    assert [call.sql(SPARK) for call in aggregates_in(parsed(sql, "q"), user=["Mine"])] == calls


def test_an_aggregate_over_some_rows_keeps_its_settings() -> None:
    assert only_where("max_by(x, y)", "c") == "MAX_BY(IF(c, x, NULL), IF(c, y, NULL))"
    assert only_where("kll_sketch_agg_double(x, 200)", "c") == "KLL_SKETCH_AGG_DOUBLE(IF(c, x, NULL), 200)"
    assert only_where("count(1)", "c") == "COUNT(IF(c, 1, NULL))"
