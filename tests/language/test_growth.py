"""Reading and binding a script takes as much work for each part of it however many there are.

Work is counted in calls of functions, which no busy machine changes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType

import pytest

from eventide.engine.local.backend import LocalBackend
from eventide.language.script import read_script
from eventide.plan.binding import BoundProgram
from eventide.plan.declared.stream import Stream
from eventide.plan.duckdb.transpile import to_duckdb
from eventide.plan.expressions.columns import columns
from eventide.plan.expressions.parse import parsed
from eventide.plan.expressions.spark_types import SparkTypes

STREAM = "CREATE STREAM S{0} (ts TIMESTAMP, k STRING, v INT) FROM json 'in' SOURCE BY k DELAY 1 s;\n"
SCRIPTS: dict[str, Callable[[int], str]] = {
    "queries": lambda n: STREAM.format("") + "".join(f"SELECT sum(v) FROM S [RANGE {i + 1} s];\n" for i in range(n)),
    "streams": lambda n: "".join(STREAM.format(i) + f"SELECT max(v) FROM S{i} [RANGE 1 s];\n" for i in range(n)),
    "rows": lambda n: STREAM.format("") + "".join(f"SELECT ts, v + {i} AS x FROM S;\n" for i in range(n)),
    "sub-queries": lambda n: STREAM.format("") + "SELECT max(n) FROM (SELECT count(*) AS n FROM S [RANGE 1 s]);\n" * n,
    "joins": lambda n: STREAM.format("") + "SELECT a.ts, a.v FROM S a JOIN S b ON a.ts = b.ts AND a.v = b.v;\n" * n,
    "explained": lambda n: STREAM.format("") + "EXPLAIN SELECT sum(v) FROM S [RANGE 1 s];\n" * n,
    "casts": lambda n: STREAM.format("") + f"SELECT ts, v{'::INT' * n} AS x FROM S;",
    "columns": lambda n: f"CREATE STREAM S (ts TIMESTAMP, {', '.join(f'c{i} INT' for i in range(n))}) FROM json 'in';"
    + f"SELECT {', '.join(f'sum(c{i}) AS s{i}' for i in range(n))} FROM S [RANGE 1 s];",
}  # fmt: skip


def calls_to_read(text: str) -> int:
    """How many functions are called to read a script."""
    return calls_of(lambda: read_script(text))


def calls_of(work: Callable[[], object]) -> int:
    """How many functions are called, Python's and C's."""
    count = 0

    def counted(_frame: FrameType, event: str, _given: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("what", SCRIPTS)
def test_ten_times_as_many_statements_are_about_ten_times_the_work(what: str) -> None:
    few, many = SCRIPTS[what](10), SCRIPTS[what](100)
    read_script(few)
    assert calls_to_read(many) < 12 * calls_to_read(few)


def test_a_struct_in_a_struct_is_read_once_for_each_level() -> None:
    """`struct(` was tried as a type in two ways on every level: twenty of them took minutes to be read."""
    few, many = (f"{STREAM.format('')}SELECT ts, {'struct(' * n}v{')' * n} AS x FROM S;" for n in (4, 8))
    read_script(few)
    assert calls_to_read(many) < 3 * calls_to_read(few)


class Counting(LocalBackend):
    """Counts the questions for types."""

    questions = 0

    def types_of(self, stream: Stream, several: Sequence[str]) -> list[str]:
        self.questions += 1
        return super().types_of(stream, several)


def test_the_types_in_hundreds_of_aggregates_are_one_question() -> None:
    """`check` asked DuckDB for each argument apart: 400 aggregates took eight seconds."""
    named = ", ".join(f"c{i} INT" for i in range(100))
    values = [f"sum(c{i} * 1.5) AS s{i}, max(c{i} + 1) FILTER (WHERE c{i} > 0) AS m{i}" for i in range(100)]
    text = f"CREATE STREAM S (ts TIMESTAMP, {named}) FROM json 'in'; SELECT {', '.join(values)} FROM S [RANGE 1 s];"
    backend = Counting()
    [bound] = BoundProgram.of(read_script(text).program, backend).queries.values()
    backend.close()
    assert bound.types == ("DECIMAL(23, 1)", "INT") * 100
    assert backend.questions <= 3


def test_a_decimal_in_a_decimal_costs_the_same_on_every_level() -> None:
    """The type of each part was asked for twice on each level: with twenty of them that took minutes."""
    types = SparkTypes({"d": "DECIMAL(4, 1)"})
    few, many = (parsed(" + ".join(["d"] * n), "q") for n in (10, 20))
    types.of(few)
    assert calls_of(lambda: types.of(many)) < 3 * calls_of(lambda: types.of(few))


def test_divisions_of_decimals_inside_each_other_name_each_part_once() -> None:
    """A row that broke (a / b) / c took 17 seconds, in which DuckDB bound the inner one hundreds of times."""
    text = to_duckdb("((a / b) / c) / d", columns(", ".join(f"{name} DECIMAL(1, 0)" for name in "abcd")))
    assert [text.count(f"CAST({name} AS DECIMAL") for name in "abcd"] == [1, 1, 1, 1]
