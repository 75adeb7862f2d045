"""Unions, joins and rows in Python, run over Arrow data."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import eventide
from eventide.api.stream import EventStream
from eventide.errors import DeclarationError


def stream(name: str, **columns: list[object]) -> EventStream:
    return eventide.stream(pa.table(columns), time="t", name=name).delay(0)


NORTH = stream("north", t=[1, 12, 20], car=["x", "y", "x"], speed=[50, 60, 70])
SOUTH = stream("south", t=[3, 11, 30], car=["x", "y", "z"], speed=[55, 65, 75])


def test_rows_go_to_a_sink_in_the_order_of_time(tmp_path: Path) -> None:
    seen: list[int] = []
    running = NORTH.union(SOUTH).select("t").start(lambda table: seen.extend(table.column("t").to_pylist()))
    assert running.awaitTermination()
    assert seen == [1, 3, 11, 12, 20, 30]


def test_a_builder_with_conditions_alone_gives_rows() -> None:
    assert NORTH.where("speed > 55").run().column("car").to_pylist() == ["y", "x"]


def test_a_join_gives_shared_columns_once() -> None:
    both = NORTH.join(SOUTH, on=["car"], within=2, how="full")
    found = both.run()
    assert found.column_names[-5:] == ["car", "t", "speed", "south_t", "south_speed"]
    told = {(row["car"], row["t"], row["south_t"]) for row in found.to_pylist()}
    assert told == {("x", 1, 3), ("y", 12, 11), ("x", 20, None), ("z", None, 30)}


def test_windows_over_a_join_go_by_the_later_row() -> None:
    counted = NORTH.join(SOUTH, on="car", within=2).window(10).groupBy("car").agg(n="count(*)")
    assert {(row["window_end"], row["car"]) for row in counted.run().to_pylist()} == {(10, "x"), (20, "y")}


def test_rows_that_two_queries_read_are_one_operator_by_its_name() -> None:
    both = NORTH.union(SOUTH).where("speed > 50").select().named("fast")
    running = eventide.start(n=both.window(50).agg(n="count(*)"), top=both.window(50).agg(top="max(speed)"))
    assert running.awaitTermination()
    assert running["n"].results().column("n").to_pylist() == [5]
    assert running["top"].results().column("top").to_pylist() == [75]


def test_a_lookup_gives_each_row_the_version_of_its_time() -> None:
    told = NORTH.lookup(SOUTH, on="car", how="left").run().to_pylist()
    assert [(row["t"], row["car"], row["south_speed"]) for row in told] == [
        (1, "x", None),
        (12, "y", 65),
        (20, "x", 55),
    ]


def test_windows_over_a_lookup_go_by_its_rows() -> None:
    counted = NORTH.where("speed < 70").lookup(SOUTH, on="car").where("south.speed > 60").window(10).agg(n="count(*)")
    assert [(row["window_end"], row["n"]) for row in counted.run().to_pylist()] == [(20, 1)]


@pytest.mark.parametrize(
    ("made", "message"),
    {
        "no time": (lambda: NORTH.join(SOUTH, on="car"), "nothing relates the time of 'north' to that of 'south'"),
        "one bound": (lambda: NORTH.join(SOUTH, on="north.t <= south.t"), r"may be any time after north\.t"),
        "kind": (lambda: NORTH.join(SOUTH, on="car", within=2, how="cross"), "there is no join 'cross'"),
        "column": (lambda: NORTH.join(SOUTH, on="plate", within=2), "'north' has no column 'plate'"),
        "itself": (lambda: NORTH.join(NORTH, on="car", within=2), "both inputs of this join are called 'north'"),
        "full lookup": (lambda: NORTH.lookup(SOUTH, on="car", how="full"), "is an inner or a LEFT join"),
        "no key": (lambda: NORTH.lookup(SOUTH, on="north.t < south.t"), "has no equal keys"),
        "no such key": (lambda: NORTH.lookup(SOUTH, on="plate"), "'north' has no column 'plate'"),
        "twice": (lambda: NORTH.union(NORTH), "cannot be merged with itself"),
        "others": (lambda: NORTH.union(SOUTH.select("t", "car")), "has 2 columns and 'north' has 3"),
        "order": (lambda: NORTH.union(SOUTH.select("car", "t", "speed")), "'query' has car STRING"),
        "window": (lambda: NORTH.window(5).select("car"), "rows have no windows"),
        "unknown": (lambda: NORTH.join(SOUTH, on="car", within=2).select("north.z"), "there is no column 'z'"),
        "rows": (lambda: NORTH.union(42), "42 gives no rows"),  # type: ignore[arg-type]
    }.values(),
)
def test_what_cannot_be_is_refused_where_it_is_said(made: object, message: str) -> None:
    assert callable(made)
    with pytest.raises(DeclarationError, match=message):
        made()
