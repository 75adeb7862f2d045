"""What is plain is told alike by both engines, and what engines tell in ways of their own is not plain."""

from __future__ import annotations

import pytest

from eventide.plan.declared.stream import Stream, columns
from eventide.plan.expressions.parse import parsed
from eventide.plan.sql.portable import ValueKinds

STREAM = Stream(
    "s",
    columns(
        "t BIGINT, i INT, d DOUBLE, f FLOAT, m DECIMAL(10, 2), s STRING, ok BOOLEAN, at TIMESTAMP, day DATE, "
        "b BINARY, a ARRAY<INT>, x STRUCT<y: INT>"
    ),
    time="t",
)


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("i * 2 - t", "whole"),
        ("d + i", "fraction"),
        ("-m", "decimal"),
        ("CAST(i AS BIGINT)", "whole"),
        ("CAST(m AS DECIMAL(10, 2))", "decimal"),
        ("i > 3 AND NOT (s = 'a' OR s IS NULL)", "truth"),
        ("d BETWEEN 0.5 AND 2 OR s IN ('a', 'b')", "truth"),
        ("at < at AND day = day", "truth"),
        ("CASE WHEN ok THEN i WHEN i > 2 THEN t END", "whole"),
        ("coalesce(s, 'none')", "text"),
        ("IF(ok, d, NULL)", "fraction"),
    ],
)
def test_columns_choices_and_comparisons_of_like_with_like_are_plain(sql: str, kind: str) -> None:
    assert ValueKinds(STREAM).of(parsed(sql, "q")) == kind


@pytest.mark.parametrize(
    "sql",
    [
        *(
            "CAST(s AS DOUBLE)",
            "CAST(i AS STRING)",
            "CAST(d AS BIGINT)",
            "CAST(m AS DECIMAL(5, 2))",
            "TRY_CAST(s AS INT)",
        ),
        *("i / 2", "i % 2", "m * 2", "m + m", "f = 0.1", "f", "b", "a", "x", "x.y", "s > 3", "at > '2024-01-01'"),
        *("s || 'x'", "concat(s, 'x')", "upper(s)", "s LIKE 'a%'", "floor(d)", "hour(at)", "date_trunc('hour', at)"),
        *("CASE i WHEN 1 THEN 2 END", "IF(i, 1, 2)", "coalesce(i, 'x')", "md5(s)", "rand()", "a[0]", "s IN (SELECT 1)"),
    ],
)
def test_whatever_engines_have_their_own_views_on_is_not_plain(sql: str) -> None:
    assert ValueKinds(STREAM).of(parsed(sql, "q")) is None


@pytest.mark.parametrize(
    ("sql", "plain"),
    [
        *(
            (sql, True)
            for sql in ("count(*)", "count(s)", "sum(i)", "sum(m)", "sum(d)", "min(s)", "max(at)", "bool_or(ok)")
        ),
        *(
            (sql, False)
            for sql in ("avg(i)", "count(DISTINCT i)", "sum(f)", "max(x)", "stddev(d)", "first(s)", "sum(s)")
        ),
    ],
)
def test_counts_sums_minima_and_maxima_are_plain(sql: str, plain: bool) -> None:
    assert ValueKinds(STREAM).is_aggregate(parsed(sql, "q")) == plain
