"""Engines that run by themselves with an expensive function: they work the queue off, and go on where they were."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet
import pytest

import eventide
from eventide.engine.local.backend import LocalBackend
from eventide.engine.local.engine import LocalEngine
from eventide.engine.operators.placement import state_rows
from eventide.engine.round.engine import Engine
from eventide.engine.scheduling.queue_pace import QueuePace
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.rows import queued
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import Window
from eventide.sinks.sink import Memory
from eventide.sources.local_input import Batches
from eventide.testing.trial import Trial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM = Stream("s", columns("t BIGINT, v INT"), time="t")
ROWS = pa.table({"t": pa.array(range(100), pa.int64()), "v": pa.array([1] * 100, pa.int32())})


def program(room: int | None = None) -> Program:
    query = Query("q", "s", Window(10), named_as(total="sum(v)"))
    queue, query = queued(query, ("s",), "q_queue", room=room)
    return Program((STREAM,), (query,), (queue,))


def totals(memory: Memory) -> list[int]:
    return list(memory.table("q").sort_by("window_end").column("total").to_pylist())


def test_a_bounded_run_works_the_queue_off_before_it_ends(tmp_path: Path) -> None:
    memory = Memory()
    engine = LocalEngine(program(room=7), str(tmp_path), {"q": memory}, {"s": Batches(STREAM, [ROWS])})
    engine.run(bounded=True)
    assert totals(memory) == [10] * 10
    assert engine.engine.state.round > 14, "one round read the rows, and seven at a time went through"


def test_an_engine_goes_on_with_what_waits_in_its_queue(tmp_path: Path) -> None:
    """Stopped with rows in the queue, it works them off after the next start, although no new row comes."""
    memory = Memory()
    inputs = {"s": Batches(STREAM, [ROWS])}
    engine = LocalEngine(program(room=3), str(tmp_path), {"q": memory}, inputs)
    enough = threading.Event()
    engine.on_round(lambda work: enough.set() if work.number == 5 else None)
    engine.start()
    assert enough.wait(60)
    engine.stop()
    held = state_rows(engine.engine.state.operators["q_queue"])
    assert 0 < held < 100
    again = LocalEngine(program(room=9), str(tmp_path), {"q": memory}, {"s": Batches(STREAM, [ROWS])})
    assert state_rows(again.engine.state.operators["q_queue"]) == held
    again.run(bounded=True)
    assert totals(memory) == [10] * 10


def test_a_round_that_is_run_again_lets_as_many_rows_go_as_it_was_meant_to(tmp_path: Path) -> None:
    """It died after it was told how many; the next engine would have chosen another number."""

    class DiedError(Exception):
        pass

    def die(number: int, step: str) -> None:
        if step == "emit":
            raise DiedError

    def started(rows: int, observer: object = None) -> Engine:
        pace = QueuePace(rows=rows)
        return Engine(program(), LocalBackend(), str(tmp_path), {"q": Memory()}, observer, pace=pace)  # type: ignore[arg-type]

    engine = started(4, die)
    with pytest.raises(DiedError):
        engine.round({"s": ROWS}, 0, {"s": 50}, batch=0)
    engine.close()
    engine = started(60)
    engine.round({"s": ROWS}, 9, {"s": 50}, batch=0)
    assert state_rows(engine.state.operators["q_queue"]) == 96
    engine.round({}, 10, {})
    assert state_rows(engine.state.operators["q_queue"]) == 36
    engine.close()


def test_early_answers_do_not_wait_for_what_is_in_the_queue(tmp_path: Path) -> None:
    with Trial(program(room=25), tmp_path) as trial:
        trial.round({"s": ROWS}, 0, {"s": 99})
        early = trial.prod("q").table().sort_by("window_end")
        assert early.column("window_end").to_pylist() == [30], "the first two windows are final"
        assert early.column("total").to_pylist() == [5]


def test_why_tells_of_rows_that_wait(tmp_path: Path) -> None:
    from eventide.report.why import window_words

    with Trial(program(room=25), tmp_path) as trial:
        trial.round({"s": ROWS}, 0, {"s": 99})
        engine = trial._engine
        standing = engine.state.progress(engine.program, engine.scheduling)
        assert standing is not None
        [window] = standing.windows("q")
    assert (window.end, window.closes_at) == (30, None)
    words = window_words(window)
    assert "queue q_queue (75 rows before an expensive function)" in words
    assert "closes when its rows have gone through queue q_queue" in words


def test_a_query_in_python_can_be_queued(tmp_path: Path) -> None:
    numbers = eventide.stream(ROWS, time="t", name="numbers")
    query = numbers.where("v > 0").where("abs(v) = 1").window(10).agg(total="sum(v)").queued("abs", rows=30)
    [queue] = query.plan.operators
    assert (queue.where, query.plan.queries[0].where) == ("v > 0", "ABS(v) = 1")
    assert query.run().column("total").to_pylist() == [10] * 10


@pytest.mark.spark
def test_spark_works_the_queue_off_with_a_function_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    from eventide.engine.spark.engine import SparkEngine

    spark.udf.register("twice", lambda v: 2 * v, "INT")
    query = Query("q", "s", Window(10), named_as(total="sum(twice(v))"))
    queue, query = queued(query, ("s",), "q_queue", ["twice"], room=40)
    (tmp_path / "in").mkdir()
    pa.parquet.write_table(ROWS, tmp_path / "in" / "rows.parquet")
    frame = spark.readStream.schema("t BIGINT, v INT").parquet(str(tmp_path / "in"))
    memory = Memory()
    plan = Program((STREAM,), (query,), (queue,))
    with SparkEngine(spark, plan, str(tmp_path / "state"), {"q": memory}, {"s": frame}) as engine:
        engine.start(bounded=True)
        assert engine.await_end(120)
    assert totals(memory) == [20] * 10
    assert engine.engine.state.round == 3
