"""The scale benchmark compares with the right answers and tells what it says, on a few rows. Times are not tested."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from benchmarks.scale.__main__ import together
from benchmarks.scale.answers import Fingerprint, batch, fingerprint, given
from benchmarks.scale.operators import SCALES, TINY, Measured, Run, headline, made, run
from benchmarks.scale.questions import QUESTIONS, Question
from tests.choice import chosen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BRUTE = {
    "interval_join": "SELECT count(*) FROM a JOIN b ON a.k = b.k AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 5000000",
    "full_outer_join": (
        "SELECT count(*) FROM a FULL JOIN b ON a.k = b.k AND abs(epoch_us(a.ts) - epoch_us(b.ts)) <= 5000000"
    ),
    "merge": "SELECT (SELECT count(*) FROM a) + (SELECT count(*) FROM b)",
    "rows": "SELECT count(*) FROM a WHERE v < 500",
    "lookup": "SELECT count(*) FROM a",
    "count_window": "SELECT count(*) // 1000 FROM a",
    "by_source": "SELECT count(*) FROM (SELECT DISTINCT k, v % 500, epoch_us(ts) // 10000000 FROM a)",
}


def test_with_four_times_the_data_twice_as_many_rounds_take_twice_as_many_rows() -> None:
    for question in QUESTIONS:
        files = [TINY.streams(question, scale)[0].files for scale in SCALES]
        rows = [sum(stream.rows for stream in TINY.streams(question, scale)) for scale in SCALES]
        assert files == [TINY.rounds, 2 * TINY.rounds, 4 * TINY.rounds]
        assert rows == [TINY.rows // 16, TINY.rows // 4, TINY.rows]


@pytest.mark.spark
@pytest.mark.parametrize(
    "question", chosen(QUESTIONS, lambda one: one.name == "lookup"), ids=lambda question: question.name
)
def test_an_operator_on_the_cluster_gives_the_batch_answer(
    question: Question, spark: SparkSession, tmp_path: Path
) -> None:
    data = made(question, TINY, tmp_path / "in", scales=(1,))[1]
    ran = run(spark, question, data, 1, TINY, tmp_path / "run")
    right = batch(spark, question, data)
    connection = duckdb.connect()
    for name, one in zip("ab", data, strict=False):
        connection.execute(f"CREATE VIEW {name} AS FROM read_parquet('{one.folder}/*.parquet')")
    assert connection.execute(BRUTE[question.name]).fetchall() == [(right.rows,)]
    assert right.rows > 0
    assert given(spark, question, tmp_path / "run" / "results") == (right, True)
    assert (ran.rows, ran.scale) == (sum(one.rows for one in data), 1)
    # Plain rows wait for nothing.
    assert ran.on_cluster == (question.name != "rows")


@pytest.mark.spark
def test_a_fingerprint_knows_no_order_but_every_value_and_where_nulls_are(spark: SparkSession) -> None:
    def of(rows: Sequence[tuple[int | None, int | None]]) -> Fingerprint:
        return fingerprint(spark.createDataFrame(rows, "a INT, b BIGINT"), ("a", "b"))

    one = of([(1, 2), (3, None)])
    assert one == of([(3, None), (1, 2)])
    assert one.rows == 2
    for other in ([(1, 2), (None, 3)], [(1, 2), (3, 3)], [(1, 2)], [(1, 2), (3, None), (3, None)]):
        assert one != of(other)


@pytest.mark.spark
def test_rounds_that_tell_rows_from_before_an_earlier_round_are_not_in_order(
    spark: SparkSession, tmp_path: Path
) -> None:
    merge = next(question for question in QUESTIONS if question.ordered)
    for folder, second in (("right", 20), ("wrong", 5)):
        rows = f"SELECT * FROM (VALUES (0, 1, 10), (1, {second}, {second + 1})) AS t(round, window_start, window_end)"
        frame = spark.sql(f"SELECT *, 1 AS k, 2 AS v, TIMESTAMP_MICROS(window_start) AS at FROM ({rows})")
        frame.write.parquet(str(tmp_path / folder / "deeper"))
        assert given(spark, merge, tmp_path / folder)[1] == (folder == "right")
    assert given(spark, merge, tmp_path / "nothing") == (Fingerprint(0, Decimal(0)), True)


def test_growth_is_from_the_smallest_to_the_largest_data_and_a_failure_is_told() -> None:
    runs = tuple(
        Run(scale, 100 * scale, float(scale), 200.0 + scale, 900.0, 10.0 * scale, True) for scale in (1, 4, 16)
    )
    found = headline([Measured("merge", runs, 5, True), Measured("rows", failure="gone")], driver_memory=4 * 2**20)
    assert found["driver_rss_growth"] == {"merge": 216 / 201}
    assert found["seconds_per_row_growth"] == {"merge": 1.0}
    assert found["state_over_budget"] == {"merge": 40.0}
    assert (found["rows_equal"], found["failed"], found["driver_rss_mb"]) == (False, {"rows": "gone"}, 216.0)
    assert headline([Measured("merge", runs, 5, True)], 1)["rows_equal"]
    assert together({"cost_growth": 1.0, "driver_rss_mb": 500.0}, found)["driver_rss_mb"] == 500.0
