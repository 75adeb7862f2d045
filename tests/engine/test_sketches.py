"""Sketches of Spark and of the driver are of one kind: either side merges what the other wrote."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.duckdb.functions import (
    distinct_estimate,
    distinct_sketch,
    distinct_union,
    quantile_sketch,
    quantile_union,
    quantiles,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@given(cuts=st.lists(st.integers(0, 30_000), max_size=4), reverse=st.booleans())
def test_a_distinct_count_does_not_depend_on_how_values_are_cut_or_ordered(cuts: list[int], reverse: bool) -> None:
    edges = sorted({0, *cuts, 30_000})
    pieces = [distinct_sketch(range(a, b), 12) for a, b in pairwise(edges)]
    whole = distinct_sketch(range(30_000), 12)
    union = distinct_union(pieces[::-1] if reverse else pieces)
    assert distinct_estimate(distinct_union([union, union])) == distinct_estimate(distinct_union([whole, whole]))


def test_nothing_is_counted_as_nothing_and_has_no_quantiles() -> None:
    assert distinct_estimate(distinct_union([])) == 0
    assert distinct_estimate(distinct_sketch([], 12)) == 0
    assert quantiles(quantile_union([]), [0.5]) is None
    assert quantiles(quantile_sketch(np.array([]), 200), [0.5]) is None


def test_quantiles_are_exact_while_the_sketch_holds_every_value() -> None:
    halves = [quantile_sketch(np.arange(start, 1000.0, 2.0), 2000) for start in (0.0, 1.0)]
    assert quantiles(quantile_union(halves, 2000), [0.0, 0.25, 0.5, 1.0]) == [0.0, 249.0, 499.0, 999.0]


@pytest.mark.spark
@pytest.mark.parametrize("n", [3, 300, 30_000])
@pytest.mark.parametrize("value", ["id", "concat('device-', id)"])
def test_the_driver_goes_on_with_distinct_sketches_of_spark_and_back(spark: SparkSession, n: int, value: str) -> None:
    rows = spark.sql(
        f"SELECT hll_sketch_agg({value}) FILTER (WHERE id % 3 = 0) AS a, hll_sketch_agg({value}) AS b, "
        f"hll_sketch_estimate(hll_union(hll_sketch_agg({value}), hll_sketch_agg({value}))) AS n FROM range({n})"
    )
    a, b, estimate = rows.collect()[0]
    values = [f"device-{i}" if "device" in value else i for i in range(n)]
    ours = distinct_sketch(values[1::3] + values[2::3], 12)
    assert distinct_estimate(distinct_union([bytes(a), ours])) == estimate
    assert distinct_estimate(distinct_union([bytes(b), bytes(b)])) == estimate
    given_back = pa.table({"s": pa.array([bytes(a), ours], pa.binary())})
    spark.createDataFrame(given_back).createOrReplaceTempView("distinct_sketches")
    assert spark.sql("SELECT hll_sketch_estimate(hll_union_agg(s)) FROM distinct_sketches").collect()[0][0] == estimate


@pytest.mark.spark
def test_the_driver_goes_on_with_quantile_sketches_of_spark_and_back(spark: SparkSession) -> None:
    shares = [0.0, 0.1, 0.5, 0.999, 1.0]
    text = "kll_sketch_agg_double(CAST(id AS DOUBLE), {}) FILTER (WHERE id % 2 = 0) FROM range({})"
    few = bytes(spark.sql("SELECT " + text.format(200, 100)).collect()[0][0])
    both = quantile_union([few, quantile_sketch(np.arange(1.0, 100.0, 2.0), 200)])
    assert quantiles(both, shares) == [0.0, 9.0, 49.0, 99.0, 99.0]
    many = bytes(spark.sql("SELECT " + text.format(2000, 100_000)).collect()[0][0])
    wide = quantile_union([many, quantile_sketch(np.arange(1.0, 100_000.0, 2.0), 2000)])
    spark.createDataFrame(pa.table({"s": pa.array([wide], pa.binary())})).createOrReplaceTempView("quantile_sketches")
    told = spark.sql(
        f"SELECT kll_sketch_get_quantile_double(s, array({', '.join(f'{share}D' for share in shares)})), "
        "kll_sketch_get_n_double(s) FROM quantile_sketches"
    ).collect()[0]
    assert told[0] == quantiles(wide, shares)
    assert told[1] == 100_000
    assert abs(told[0][2] - 50_000) < 1000
