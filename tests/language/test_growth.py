"""Reading a script takes as much work for each statement however many there are.

Work is counted in calls of functions, which no busy machine changes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from eventide.language.script import read_script

STREAM = "CREATE STREAM S{0} (ts TIMESTAMP, k STRING, v INT) FROM json 'in' SOURCE BY k DELAY 1 s;\n"
SCRIPTS: dict[str, Callable[[int], str]] = {
    "queries": lambda n: STREAM.format("") + "".join(f"SELECT sum(v) FROM S [RANGE {i + 1} s];\n" for i in range(n)),
    "streams": lambda n: "".join(STREAM.format(i) + f"SELECT max(v) FROM S{i} [RANGE 1 s];\n" for i in range(n)),
    "rows": lambda n: STREAM.format("") + "".join(f"SELECT ts, v + {i} AS x FROM S;\n" for i in range(n)),
    "sub-queries": lambda n: STREAM.format("") + "SELECT max(n) FROM (SELECT count(*) AS n FROM S [RANGE 1 s]);\n" * n,
    "joins": lambda n: STREAM.format("") + "SELECT a.ts, a.v FROM S a JOIN S b ON a.ts = b.ts AND a.v = b.v;\n" * n,
    "explained": lambda n: STREAM.format("") + "EXPLAIN SELECT sum(v) FROM S [RANGE 1 s];\n" * n,
    "columns": lambda n: f"CREATE STREAM S (ts TIMESTAMP, {', '.join(f'c{i} INT' for i in range(n))}) FROM json 'in';"
    + f"SELECT {', '.join(f'sum(c{i}) AS s{i}' for i in range(n))} FROM S [RANGE 1 s];",
}  # fmt: skip


def calls_to_read(text: str) -> int:
    """How many functions are called, Python's and C's."""
    count = 0

    def counted(_frame: FrameType, event: str, _given: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        read_script(text)
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
