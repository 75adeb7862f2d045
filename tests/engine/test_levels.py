"""Queries over queries: as brute force says, through restarts and deaths, and while queries come and go."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.local.backend import LocalBackend
from eventide.engine.local.engine import LocalEngine
from eventide.engine.operators.placement import DRIVER_MEMORY
from eventide.engine.round.engine import Engine
from eventide.engine.round.reduce import Reducer
from eventide.errors import DeclarationError
from eventide.eventtime.policies.clock_skew import ClockSkew
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as, order_by
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import RowWindow, SameWindow, Window
from eventide.plan.duckdb.transpile import same_answer
from eventide.sinks.sink import Memory
from eventide.sources.local_input import Batches
from eventide.testing.trial import Trial
from tests.engine.level_scenarios import Plan, brute_force, in_order, plans, played
from tests.engine.scenarios import agree, trial_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@settings(max_examples=100)
@given(plan=plans())
def test_a_result_is_never_late_for_the_query_above(plan: Plan) -> None:
    assert brute_force(plan)[1] == 0


@settings(max_examples=20, suppress_health_check=[HealthCheck.too_slow])
@given(plan=plans())
def test_local_engine_answers_plans_as_brute_force_does(duckdb_executor: DuckDBExecutor, plan: Plan) -> None:
    with trial_of(plan.program, duckdb_executor=duckdb_executor) as trial:
        agree(in_order(plan, played(plan, trial)), in_order(plan, brute_force(plan)[0]))


@pytest.mark.spark
@settings(max_examples=4, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck))
@given(plan=plans(), on_the_cluster=st.booleans())
def test_spark_engine_answers_plans_as_brute_force_does(spark: SparkSession, plan: Plan, on_the_cluster: bool) -> None:
    driver_memory = 0 if on_the_cluster else DRIVER_MEMORY
    with trial_of(plan.program, "spark", spark, driver_memory=driver_memory) as trial:
        agree(in_order(plan, played(plan, trial)), in_order(plan, brute_force(plan)[0]))


STREAM = Stream("s", columns("t BIGINT, k STRING, v INT"), time="t", policy=ClockSkew(0))
SUMS = Query("sums", "s", Window(10), named_as(total="sum(v)"), named_as("k"))
MOST = Query("most", "sums", SameWindow(), named_as(most="max(total)", n="count(*)"))


def rows(*times: int) -> dict[str, pa.Table]:
    return {"s": pa.table({"t": times, "k": ["a"] * len(times), "v": pa.array([1] * len(times), pa.int32())})}


def ends(sink: Memory, query: str) -> list[int]:
    return [row["window_end"] for row in sink.rows(query)]


def test_queries_above_come_and_go_while_it_runs(tmp_path: Path) -> None:
    sink = Memory()
    engine = Engine(Program((STREAM,), (SUMS,)), LocalBackend(), str(tmp_path), {"sums": sink})
    engine.round(rows(1, 12, 25), clock=0, heartbeats={"s": 15})
    engine.add(MOST, sink)
    moving = Query("moving", "sums", Window(20), named_as(n="count(*)"))
    last = Query("last", "moving", RowWindow(1), named_as(n="max(n)"))
    for query in (moving, last):
        engine.add(query, sink)
    # No window that ended before it was added is for the query above; the one that ends next is.
    engine.round(rows(31, 38, 55), clock=0, heartbeats={"s": 49})
    assert ends(sink, "sums") == [10, 20, 30, 40]
    assert ends(sink, "most") == [20, 30, 40]
    assert [(row["window_end"], row["n"]) for row in sink.rows("moving")] == [(40, 2)]
    with pytest.raises(DeclarationError, match="query 'sums' cannot go: most, moving would have nothing to read"):
        engine.remove("sums")
    engine.remove("most")
    engine.round({}, clock=0, heartbeats={"s": 59})
    engine.close()
    now = Program((STREAM,), (last, moving, SUMS))
    again = Engine(now, LocalBackend(), str(tmp_path), {"moving": sink, "last": sink})
    again.end(clock=0)
    again.close()
    assert [(row["window_end"], row["n"]) for row in sink.rows("moving")] == [(40, 2), (60, 1)]
    assert [(row["window_start"], row["n"]) for row in sink.rows("last")] == [(0, 2), (1, 1)]


def test_the_clock_alone_closes_what_waits_on_any_level(tmp_path: Path) -> None:
    sink = Memory()
    big = Query("big", "s", Window(10), named_as(total="sum(v)"), having="total > 1")
    rare = Query("rare", "big", Window(10), named_as(n="count(*)"), where="n > 5")
    hour = Query("hour", "big", Window(60), named_as(n="count(*)"))
    program = Program((STREAM,), (hour, big, Query("day", "hour", SameWindow(), named_as(n="sum(n)"))))
    with pytest.raises(DeclarationError, match="query 'rare', stream 'big' has no column 'n'"):
        Engine(program.with_query(rare), LocalBackend(), str(tmp_path / "refused"))
    engine = Engine(program, LocalBackend(), str(tmp_path / "checkpoint"), dict.fromkeys(("big", "hour", "day"), sink))
    engine.round(rows(1, 2), clock=9)
    assert ends(sink, "big") == []
    assert engine.tick(clock=30) is not None
    assert ends(sink, "big") == [10]
    # Nothing is open below, but time below holds back what is above.
    assert engine.tick(clock=59) is None
    assert engine.tick(clock=61) is not None
    assert (ends(sink, "hour"), ends(sink, "day")) == ([60], [60])
    assert engine.tick(clock=200) is None
    engine.close()


def test_more_empty_windows_than_a_round_tells_are_never_late_above(tmp_path: Path) -> None:
    sink = Memory()
    below = Query("below", "s", Window(1, empty=True), named_as(n="count(*)"))
    above = Query("above", "below", Window(50_000), named_as(windows="count(*)", n="sum(n)"))
    engine = Engine(Program((STREAM,), (below, above)), LocalBackend(), str(tmp_path), {"above": sink})
    with closing(engine):
        engine.round(rows(0, 249_999), clock=0, heartbeats={"s": 249_999})
        assert ends(sink, "above") == [50_000, 100_000]
        for _ in range(2):
            engine.round({}, clock=0)
    told = [(row["windows"], row["n"]) for row in sink.rows("above")]
    assert told == [(50_000, 1), (50_000, 0), (50_000, 0), (50_000, 0), (50_000, 1)]


def test_a_bounded_run_tells_every_empty_window_however_many_there_are(tmp_path: Path) -> None:
    """Of 250,001 windows 100,001 were told: no round follows the end, in which the others could be."""
    sink = Memory()
    query = Query("q", "s", Window(1, empty=True), named_as(n="count(*)"))
    inputs = {"s": Batches(STREAM, [rows(0, 250_000)["s"]])}
    LocalEngine(Program((STREAM,), (query,)), str(tmp_path), {"q": sink}, inputs).run(bounded=True)
    told = sink.table("q")
    assert told.column("window_start").to_pylist() == list(range(250_001))
    assert sum(told.column("n").to_pylist()) == 2


def test_results_are_reduced_in_duckdb_where_it_says_the_same_as_spark(tmp_path: Path) -> None:
    some = Query("some", "sums", Window(60), named_as(mean="avg(total)"), named_as("k"), where="total > 1", sample=0.5)
    top = Query(
        "top", "sums", Window(60, 20), named_as(most="max(total)"), named_as("k"), order=order_by("most"), limit=1
    )
    engine = Engine(Program((STREAM,), (SUMS, MOST, some, top)), LocalBackend(), str(tmp_path))
    stream = engine.bound["sums"].results
    reducer = Reducer.of(stream, [engine.bound[name] for name in ("most", "some", "top")])
    engine.close()
    assert same_answer(reducer.text.sql, stream.columns)
    assert all(engine.bound[name].driver_exact for name in ("most", "some", "top"))


@pytest.mark.spark
@pytest.mark.parametrize("driver_memory", [DRIVER_MEMORY, 0], ids=["slices on the driver", "slices on the cluster"])
def test_what_duckdb_cannot_say_is_reduced_by_spark(spark: SparkSession, tmp_path: Path, driver_memory: int) -> None:
    times = Stream("s", columns("t TIMESTAMP, k STRING, v INT"), time="t")
    below = Query("below", "s", Window(3_600_000_000), named_as(total="sum(v)"), named_as("k"))
    days = named_as(day="date_format(window_start, 'EEEE')", number="CAST(k AS INT)")
    above = Query("above", "below", Window(86_400_000_000), named_as(total="sum(total)"), days)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    table = pa.table(
        {
            "t": pa.array([start + timedelta(hours=hours) for hours in (1, 1, 2, 2, 30)], pa.timestamp("us", "UTC")),
            "k": ["1", "x", "1", "2", "1"],
            "v": pa.array([1, 2, 4, 8, 16], pa.int32()),
        }
    )
    with Trial(Program((times,), (below, above)), tmp_path, "spark", spark, driver_memory=driver_memory) as trial:
        trial.round({"s": table.slice(0, 3)}, clock=0, heartbeats={})
        trial.restart()
        trial.round({"s": table.slice(3)}, clock=0, heartbeats={})
        trial.end(clock=0)
        taken = trial.output()
    told = [row for shown in taken.final for row in shown.to_pylist() if row["query"] == "above"]
    assert sorted((row["day"], row["number"], row["total"]) for row in told) == [
        ("Friday", 1, 16),
        ("Thursday", 1, 5),
        ("Thursday", 2, 8),
    ]
    [rejected] = taken.rejected
    assert (rejected.column("k").to_pylist(), rejected.column("total").to_pylist()) == (["x"], [2])
    assert "query 'above': CAST(k AS INT) fails" in rejected.column("_reason")[0].as_py()
