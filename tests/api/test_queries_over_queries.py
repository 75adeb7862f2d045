"""Queries over queries in Python, run over Arrow data: what is shared runs once, and levels answer for each other."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import eventide
from eventide.errors import DeclarationError

ROWS = pa.table({"t": [1, 2, 3, 12, 13, 25], "car": ["x", "x", "y", "x", "y", "y"], "speed": [5, 6, 7, 8, 9, 10]})
CARS = eventide.stream(ROWS, time="t", name="cars").delay(0)
COUNTS = CARS.window(10).groupBy("car").agg(n="count(*)").named("counts")


def test_a_query_over_another_has_its_windows_or_its_own() -> None:
    assert COUNTS.agg(most="max(n)").run().column("most").to_pylist() == [2, 1, 1]
    assert COUNTS.where("car = 'x'").window(20).agg(total="sum(n)").run().column("total").to_pylist() == [3]
    assert COUNTS.rows(2).agg(total="sum(n)").run().column("total").to_pylist() == [3, 2, 1]


def test_three_levels_are_one_plan() -> None:
    most = COUNTS.agg(most="max(n)")
    highest = most.window(30).agg(highest="max(most)").named("highest")
    assert [query.name for query in highest.plan.in_order] == ["counts", "highest_below", "highest"]
    assert highest.run().column("highest").to_pylist() == [2]


def test_a_query_that_is_read_and_told_runs_once_in_whatever_order_they_are_given() -> None:
    most = COUNTS.agg(most="max(n)").named("most")
    for asked in ((COUNTS, most), (most, COUNTS)):
        with eventide.start(*asked) as running:
            assert running.awaitTermination(60)
            assert running["counts"].results().num_rows == 5
            assert running["most"].results().column("most").to_pylist() == [2, 1, 1]
            assert {query.name for query in running.engine.engine.program.queries} == {"counts", "most"}


def test_a_query_started_under_the_name_it_has_is_the_one_that_others_read() -> None:
    with eventide.start(counts=COUNTS, most=COUNTS.agg(most="max(n)")) as running:
        assert running.awaitTermination(60)
        assert len(running.engine.engine.program.queries) == 2


def test_results_are_chosen_merged_and_joined_as_rows_are() -> None:
    slow = CARS.where("speed < 8").window(10).groupBy("car").agg(n="count(*)").named("slow")
    assert COUNTS.where("n > 1").select("car", till="window_end").run().column("till").to_pylist() == [10]
    assert COUNTS.union(slow).run().num_rows == 7
    both = COUNTS.join(slow, on="counts.car = slow.car AND counts.window_end = slow.window_end", how="left")
    found = both.select("counts.car", "counts.n", less="slow.n").run().to_pylist()
    assert sorted((row["car"], row["n"], row["less"] or 0) for row in found) == [
        ("x", 1, 0),
        ("x", 2, 2),
        ("y", 1, 0),
        ("y", 1, 0),
        ("y", 1, 1),
    ]


def test_prods_of_the_query_above_are_answered_from_the_one_below() -> None:
    asks = eventide.stream(pa.table({"t": [49]}), time="t", name="asks")
    most = CARS.window(50).groupBy("car").agg(n="count(*)").agg(most="max(n)").prodded(by=asks)
    assert [(row["kind"], row["most"]) for row in most.run().to_pylist()] == [("early", 3), ("final", 3)]


@pytest.mark.parametrize(
    ("made", "message"),
    {
        "column": (lambda: COUNTS.where("m > 1"), "query 'counts' has no column 'm'.*It has car, n, window_start"),
        "retained": (
            lambda: CARS.window(10, retain=10).agg(n="count(*)").agg(m="max(n)").plan,
            "what was read cannot be taken back",
        ),
        "alias": (lambda: CARS.alias("a b"), "'a b' cannot name a query"),
        "itself": (lambda: COUNTS.join(COUNTS, on="car", within=5), r"\.alias\('other'\)"),
        "twice": (lambda: COUNTS.union(COUNTS), "cannot be merged with itself"),
    }.values(),
)
def test_what_cannot_be_read_so_is_refused_where_it_is_said(made: Callable[[], object], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        made()
