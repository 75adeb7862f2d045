"""What a program may be: names, and who reads whom."""

from __future__ import annotations

import pytest

from eventide.errors import DeclarationError
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import RowWindow, SameWindow, Window

STREAM = Stream("s", columns("t BIGINT, v INT"), time="t")
COUNT = named_as(n="count(*)")


def query(name: str, reads: str, **fields: int) -> Query:
    return Query(name, reads, Window(10), COUNT, **fields)  # type: ignore[arg-type]


def test_every_query_comes_after_the_one_it_reads_however_they_are_declared() -> None:
    given = (query("e", "d"), query("b", "a"), query("d", "b"), query("a", "s"), query("c", "s"), query("f", "b"))
    order = [one.name for one in Program((STREAM,), given).in_order]
    assert sorted(order) == ["a", "b", "c", "d", "e", "f"]
    assert all(order.index(one.name) > order.index(one.stream) for one in given if one.stream != "s")


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ((query("a", "a"),), "'a' reads 'a': a query cannot read its own results"),
        ((query("a", "c"), query("b", "a"), query("c", "b")), "'a' reads 'c' reads 'b' reads 'a'"),
        ((query("a", "s"), query("x", "z"), query("y", "x"), query("z", "y")), "'x' reads 'z' reads 'y' reads 'x'"),
        ((query("a", "t"), query("b", "s")), "'a' reads 't', which is neither a stream nor a query; declared: s, b"),
        ((query("S", "s"),), "two of name 'S'"),
        ((query("a", "s", retain=10), query("b", "a")), "Drop its `retain`; or declare it twice"),
        ((query("a", "s"), query("b", "a", retain=10)), "never late, so it has nothing to revise: drop its `retain`"),
        ((Query("a", "s", SameWindow(), COUNT),), "has no windows: give it a window of its own"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_way_out(queries: tuple[Query, ...], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        Program((STREAM,), queries)


def test_a_query_goes_only_when_nobody_reads_it() -> None:
    program = Program((STREAM,), (query("a", "s"), query("b", "a")))
    with pytest.raises(DeclarationError, match="query 'a' cannot go: b would have nothing to read"):
        program.without_query("a")
    assert program.without_query("b").without_query("a").queries == ()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"limit": 0}, "LIMIT 0 shows nothing: give 1 or more"),
        ({"sample": 0.0}, "cannot take 0.0 of the rows: give a share above 0, at most 1"),
        ({"sample": 1.5}, "cannot take 1.5 of the rows"),
        ({"select": ()}, "selects nothing: give at least one aggregate or group"),
        ({"window": RowWindow(3), "retain": 5}, "cannot be revised; drop `retain`"),
    ],
)
def test_a_query_that_could_show_nothing_is_refused(fields: dict[str, object], message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        Query(**({"name": "q", "stream": "s", "window": Window(10), "select": COUNT} | fields))  # type: ignore[arg-type]
