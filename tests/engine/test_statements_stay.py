"""Statements are the same texts round after round: neither engine has to understand them anew."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from eventide.engine.round.engine import Engine
from eventide.language.script import read_script
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Prods, Query, named_as
from eventide.plan.declared.rows import Sideline, queued
from eventide.plan.declared.window import Window
from tests.engine.cluster_here import ClusterHere

STREAMS = """
CREATE STREAM a (t BIGINT, k STRING, v INT) FROM csv 'a' TIMESTAMP BY t SOURCE BY k DELAY 10;
CREATE STREAM b (t BIGINT, k STRING, w INT) FROM csv 'b' TIMESTAMP BY t DELAY 10;
CREATE STREAM c (k STRING, v INT) FROM csv 'c' TIMESTAMP BY ARRIVAL;
"""

QUERIES = {
    "windows": "SELECT k, sum(v) AS total FROM a [RANGE 20] GROUP BY k",
    "windows of rows": "SELECT k, collect_list(v) AS every FROM a [RANGE 20] GROUP BY k",
    "sliding": "SELECT max(v) AS most FROM a [RANGE 40 SLIDE 10]",
    "by source": "SELECT k, sum(v) AS total FROM a [RANGE 20] GROUP BY k CLOSE BY SOURCE",
    "counts": "SELECT sum(v) AS total FROM a [RANGE 6 ROWS SLIDE 2 ROWS]",
    "rows": "SELECT t, k, v * 2 AS twice FROM a WHERE v > 1",
    "merge": "SELECT t, k FROM a UNION ALL SELECT t, k FROM b",
    "ordered": "SELECT t, k FROM a UNION ALL SELECT t, k FROM b ORDER BY t",
    "join": "SELECT a.t, v, w FROM a JOIN b ON a.k = b.k AND abs(a.t - b.t) <= 20",
    "outer join": "SELECT a.t, v, w FROM a FULL JOIN b ON a.k = b.k AND abs(a.t - b.t) <= 20",
    "lookup": "SELECT a.t, v, w FROM a JOIN b FOR SYSTEM_TIME AS OF a.t AS p ON a.k = p.k",
    "broken": "SELECT sum(CAST(k AS INT)) AS total FROM a [RANGE 20]",
    "prods": "SELECT k, sum(v) AS total FROM a [RANGE 20] GROUP BY k PROD EVERY 1",
    "stamped rows": "SELECT k, v FROM c",
    "stamped": "SELECT k, collect_list(v) AS every FROM c [RANGE 1 second] GROUP BY k",
}
LATE = "CREATE QUERY late AS SELECT count(*) AS n FROM a [RANGE 10];"
"""In every program, so that rows are late whatever the others do."""

LEVELS = """
CREATE QUERY below AS SELECT k, sum(v) AS total FROM a [RANGE 10] GROUP BY k;
CREATE QUERY q AS SELECT max(CAST(k AS INT)) AS most FROM below [RANGE 20];
"""


def rows(round: int, value: str) -> pa.Table:
    """Rows of a hundred instants, one that is late, one without a time."""
    times = [100 * round + step for step in range(0, 100, 10)]
    late = [100 * (round - 1) + 15] if round else []
    count = len(times) + len(late) + 1
    keys = ["7" if place % 2 else "x" for place in range(count)]
    return pa.table(
        {"t": pa.array([*times, *late, None], pa.int64()), "k": keys, value: pa.array([5] * count, pa.int32())}
    )


def said_by_round(program: Program, folder: Path) -> list[set[str]]:
    backend = ClusterHere()
    engine = Engine(program, backend, str(folder), driver_memory=0)
    said = []
    for round in range(6):
        backend.said.clear()
        given = {"a": rows(round, "v"), "b": rows(round, "w"), "c": rows(round, "v").drop_columns("t")}
        work = engine.round(given, clock=round * 1_000_000)
        assert round == 0 or work.late, "rows are late"
        assert work.rejected
        said.append(set(backend.said))
    engine.close()
    backend.close()
    return said


def program_of(kind: str) -> Program:
    if kind == "queue":
        read = read_script(STREAMS + LATE).program
        counted = Query("q", "a", Window(20), named_as(n="count(*)"), prods=Prods(every=1_000_000))
        queue, counted = queued(counted, ("a",), "q_queue", room=4, sideline=Sideline(one_in=2, within=1_000_000))
        return Program(read.streams, (counted, *read.queries), (queue,))
    query = f"CREATE QUERY q AS {QUERIES[kind]};" if kind in QUERIES else LEVELS
    return read_script(STREAMS + query + LATE).program


@pytest.mark.parametrize("kind", [*QUERIES, "levels", "queue"])
def test_statements_of_later_rounds_are_those_of_earlier_ones(kind: str, tmp_path: Path) -> None:
    said = said_by_round(program_of(kind), tmp_path)
    assert said[3] == said[4] == said[5]
