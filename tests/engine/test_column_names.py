"""Columns of a user may have the names that operators have for their own small tables."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.plan.declared.join import Band, Join, JoinKind, Lookup, Side
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Named, Query, named_as
from eventide.plan.declared.rows import Rows, Sideline, queued
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import RowWindow, Window
from eventide.plan.expressions.columns import quoted
from eventide.sinks.sink import Memory

NAMES = (
    "first", "last", "low", "high", "width", "stretch", "count", "clock", "time", "now1", "was1", "floor1", "n", "w",
    "found", "limits", "span", "edge", "ready", "held", "new", "matched", "slices", "windows", "pane", "by", "up_to",
    "segments", "versions", "answer", "closed", "sources", "firsts", "names",
    "it`s", "it's", 'say "so"', "a b", "select", "ä.b",
)  # fmt: skip


def test_no_name_of_a_column_confuses_an_operator(tmp_path: Path) -> None:
    declared = columns(", ".join(["t BIGINT, k INT", *(f"{quoted(name)} BIGINT" for name in NAMES)]))
    one, two = (Stream(stream, declared, time="t", policy=Punctuated()) for stream in "ab")
    every = " + ".join(map(quoted, NAMES))
    groups = tuple(Named(name, quoted(name)) for name in NAMES)
    queue, sums = queued(
        Query("sums", "a", Window(10), (*named_as(total=f"sum({every})"), Named("it`s most", "max(`it``s`)")), groups),
        ("a",), "sums_queue", room=1, sideline=Sideline(),
    )  # fmt: skip
    operators = (
        Rows("both", ("a", "b"), (Named("t", "t"), *groups)),
        Rows("plainly", ("a", "b"), groups, ordered=False),
        Join("pairs", Side("a"), Side("b"), (Band("t", "t", -5, 5),), JoinKind.FULL, condition="a.first >= b.last"),
        Lookup("priced", Side("a", keys=("k",)), Side("b", keys=("k",)), keeps_all=True),
        queue,
    )
    by_rows = Query("by_rows", "a", RowWindow(2), named_as(middle=f"percentile({every}, 0.5)"), groups)
    program = Program((one, two), (sums, by_rows), operators)
    sink, steps = Memory(), ("both", "plainly", "pairs", "priced", "sums", "by_rows")
    engine = Engine(program, LocalBackend(), str(tmp_path), dict.fromkeys(steps, sink), flush_rows=1)
    for at in (0, 7, 14):
        values = {name: pa.array([at, 3]) for name in NAMES}
        rows = pa.table({"t": [at, at + 1], "k": pa.array([1, 2], pa.int32()), **values})
        # The rows of the last instant stay behind: operators hold some from round to round.
        engine.round({"a": rows, "b": rows}, clock=at, heartbeats={"a": at, "b": at})
    engine.end(clock=20)
    engine.close()
    for step in ("both", "plainly"):
        assert sorted(row["count"] for row in sink.rows(step)) == sorted([0, 3, 7, 3, 14, 3] * 2)
    assert [row["rows"] for row in sink.rows("priced")] == [2] * 6
    assert all(row["it`s most"] == row["it`s"] for row in sink.rows("sums"))
    assert sum(row["total"] for row in sink.rows("sums")) == (0 + 7 + 14 + 9) * len(NAMES)
    pairs = {(row["a_first"], row["b_first"]) for row in sink.rows("pairs")}
    assert pairs == {(0, 0), (3, 0), (3, 3), (7, 7), (7, 3), (14, 14), (14, 3)}
    assert sum(row["rows"] for row in sink.rows("by_rows")) == 6
