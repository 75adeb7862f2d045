"""Every kind of query is asked over HTTP as it is asked in its own process: the same rows for the same prod."""

from __future__ import annotations

import json
import queue
import time
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from eventide.api.inputs import ArrowRows
from eventide.endpoint.client import Client
from eventide.endpoint.lifecycle import listen
from eventide.engine.local.engine import LocalEngine
from eventide.eventtime.early.prod import Prod
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.language.script import read_script
from eventide.sinks.lines import LineWriter
from eventide.sinks.sink import Memory

SCRIPT = """
CREATE STREAM a (at TIMESTAMP, k STRING, d DECIMAL(6,2), day DATE, v INT) TIMESTAMP BY at SOURCE BY k DELAY 1 hour;
CREATE QUERY typed AS SELECT d, day, k, sum(v) AS s FROM a [RANGE 1 minute] GROUP BY d, day, k;
CREATE QUERY picked AS SELECT k, v FROM a WHERE v > 1;
CREATE QUERY counted AS SELECT sum(v) AS s FROM a [RANGE 3 ROWS];
CREATE QUERY own AS SELECT k, sum(v) AS s FROM a [RANGE 1 minute] GROUP BY k CLOSE BY SOURCE;
CREATE QUERY at_once AS SELECT at, count(*) AS n FROM a [RANGE 1 minute] GROUP BY at;
"""
SECOND = 1_000_000
ROWS = pa.table(
    {
        "at": pa.array([0, 10 * SECOND, 70 * SECOND], pa.timestamp("us", "UTC")),
        "k": ["x", "y", "x"],
        "d": pa.array([Decimal("1.50"), Decimal("2.25"), None], pa.decimal128(6, 2)),
        "day": pa.array([date(2026, 1, 1), date(2026, 1, 2), None]),
        "v": pa.array([1, 2, 3], pa.int32()),
    }
)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalEngine, Client]]:
    state = tmp_path_factory.mktemp("kinds") / "state"
    coming: queue.Queue[pa.RecordBatch | None] = queue.Queue()
    coming.put(ROWS.to_batches()[0])
    program = read_script(SCRIPT).program
    rows = ArrowRows(program.stream("a"), iter(coming.get, None), waits=True)
    with LocalEngine(program, str(state), {"picked": Memory()}, {"a": rows}) as engine:
        engine.start()
        while engine.status().round < 0:
            assert not engine.ended.is_set(), engine.failure
            time.sleep(0.01)
        listen(engine)
        yield engine, Client.of_checkpoint(state)
        coming.put(None)


@pytest.mark.parametrize("query", ["typed", "picked", "counted", "own", "at_once"])
@pytest.mark.parametrize(
    ("more", "prod"),
    [
        ({}, Prod()),
        ({"up_to": "1970-01-01 00:01:00"}, Prod(60 * SECOND)),
        ({"up_to": "1970-01-01T01:01:00+01:00"}, Prod(60 * SECOND)),
        ({"up_to": 5, "after": "-3"}, Prod(5, -3)),
        ({"after": "1970-01-01 00:01"}, Prod(FOREVER, 60 * SECOND)),
        ({"up_to": FOREVER, "after": NEVER}, Prod()),
    ],
)
def test_the_same_prod_has_the_same_answer(
    both: tuple[LocalEngine, Client], query: str, more: dict[str, Any], prod: Prod
) -> None:
    engine, client = both
    table = engine.prod(query, prod).table().drop_columns(["rows", "heartbeat"])
    lines = LineWriter("json", table.schema).of(table).decode().splitlines()
    told = client.prod(query, **more)["rows"]
    assert sorted(json.dumps(row) for row in told) == sorted(json.dumps(json.loads(line)) for line in lines)


@pytest.mark.parametrize(
    ("query", "groups", "told"),
    [
        ("typed", {"d": "1.5"}, [1]),
        ("typed", {"d": 1.5}, [1]),
        ("typed", {"d": None}, [3]),
        ("typed", {"day": "2026-01-02", "k": "y"}, [2]),
        ("typed", {"day": "2026-01-02", "k": "x"}, []),
        ("own", {"k": "y"}, [2]),
        ("at_once", {"at": "1970-01-01 00:00:10"}, [1]),
        ("at_once", {"at": "1970-01-01T00:00:10.000000Z"}, [1]),
        ("at_once", {"at": 11 * SECOND}, []),
    ],
)
def test_groups_of_every_type_are_named(
    both: tuple[LocalEngine, Client], query: str, groups: dict[str, Any], told: list[int]
) -> None:
    rows = both[1].prod(query, groups)["rows"]
    assert [row.get("s", row.get("n")) for row in rows] == told


def test_why_and_queries_are_told_of_every_kind(both: tuple[LocalEngine, Client]) -> None:
    client = both[1]
    known = client.ask("GET", "/queries")["queries"]
    assert [one["query"] for one in known] == ["at_once", "counted", "own", "picked", "typed"]
    assert {one["times"] for one in known} == {"timestamp"}
    assert known[-1]["groups"] == {"d": "DECIMAL(6, 2)", "day": "DATE", "k": "STRING"}
    for one in known:
        why = client.ask("GET", f"/why?query={one['query']}")
        assert why["query"] == one["query"]
        assert "windows" in why or "waits_for" in why
