"""How expressions are split: what is kept, what is shared, what the driver can say."""

from __future__ import annotations

import pytest

from eventide.plan.bound.aggregates import over_rows, split

KINDS = {"i": "INT", "b": "BIGINT", "d": "DOUBLE", "m": "DECIMAL(10, 2)", "huge": "DECIMAL(38, 18)", "s": "STRING"}


def _type_of(sql: str) -> str:
    return KINDS.get(sql, "BOOLEAN" if " > " in sql else "DOUBLE")


def test_aggregates_of_the_same_rows_share_their_partials() -> None:
    found = split("p", "sum(i) / count(i) - avg(i)", _type_of)
    assert found is not None
    assert [partial.reduce for partial in found.partials] == ["sum(CAST(i AS BIGINT))", "count(i)"]


def test_names_of_partials_start_with_the_prefix() -> None:
    found = split("__p7", "stddev(d) + max(i)", _type_of)
    assert found is not None
    names = [partial.name for partial in found.partials]
    assert names == ["__p7_0", "__p7_1", "__p7_2", "__p7_3"]
    assert [name for partial in found.partials for name, _ in partial.over] == ["__p7_2_over"]


def test_a_filter_goes_inside_so_that_every_reduce_is_one_plain_call() -> None:
    found = split("p", "avg(m) FILTER (WHERE i > 0)", _type_of)
    assert found is not None
    assert [partial.reduce for partial in found.partials] == [
        "sum(IF(i > 0, CAST(m AS DECIMAL(10, 2)), NULL))",
        "count(IF(i > 0, m, NULL))",
    ]


@pytest.mark.parametrize(
    ("sql", "kind"),
    [("sum(i)", "BIGINT"), ("sum(m)", "DECIMAL(20, 2)"), ("avg(m)", "DECIMAL(14, 6)"), ("avg(i)", "DOUBLE"),
     ("max(s)", "STRING"), ("count(*)", "BIGINT"), ("first(m)", "DECIMAL(10, 2)"),
     ("approx_count_distinct(s)", "BIGINT"), ("approx_percentile(i, array(0.5))", "ARRAY<INT>")],
)  # fmt: skip
def test_the_type_is_sparks(sql: str, kind: str) -> None:
    found = split("p", sql, _type_of, "t")
    assert found is not None
    assert found.type == kind


def test_a_value_that_only_spark_can_tell_is_left_to_spark() -> None:
    here, there = split("p", "round(max(d), 2)", _type_of), split("p", "format_number(max(d), 2)", _type_of)
    assert here is not None
    assert here.driver_exact
    assert there is not None
    assert not there.driver_exact


def test_decimals_without_room_for_a_sum_keep_rows() -> None:
    assert split("p", "sum(huge)", _type_of) is None
    assert split("p", "avg(huge)", _type_of) is None
    assert split("p", "max(huge)", _type_of) is not None


def test_first_needs_a_time() -> None:
    assert split("p", "first(i)", _type_of) is None
    assert split("p", "first(i)", _type_of, "t") is not None


def test_over_kept_rows_aggregates_mean_what_they_mean_from_partials() -> None:
    found = over_rows("last(i) + percentile(d, 0.5) + sum(b)", _type_of, "t")
    assert found.partials == ()
    assert "MAX(STRUCT(NULLIF(t, CAST(NULL AS BIGINT)) AS b0" in found.value
    assert "PERCENTILE(d, 0.5)" in found.value
    assert found.checks[0][1] == "the sum of b overflows BIGINT"
    assert "SUM(CAST(b AS BIGINT) & 4294967295)" in found.checks[0][0]
