"""Engines at work are asked while a round is held up, while rounds go by, and while they end."""

from __future__ import annotations

import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from eventide.engine.checkpoint.garbage import Garbage
from eventide.engine.early.prodding import EarlyEvaluation, EarlyResults
from eventide.engine.local.backend import LocalBackend
from eventide.engine.local.engine import LocalEngine
from eventide.engine.round.engine import Engine
from eventide.engine.running import Running
from eventide.errors import EngineError
from eventide.eventtime.early.prod import Prod
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import RowWindow, SameWindow, Window
from eventide.results.results import Results
from eventide.sinks.sink import Memory
from eventide.storage.storage import Storage
from tests.engine.small_streams import PATIENCE, in_a_thread, made, put, stream, tumbling, wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(autouse=True)
def folder_of_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    """Each test on both engines: None is the local one."""
    found: SparkSession | None = request.getfixturevalue("spark") if request.param == "spark" else None
    return found


class Held:
    """Something that stops whoever comes by while it is set up to, and lets them go."""

    def __init__(self) -> None:
        self.closed, self.reached, self._open = False, threading.Event(), threading.Event()

    def pass_by(self) -> None:
        if self.closed:
            self.reached.set()
            assert self._open.wait(PATIENCE), "nobody let it go"

    def let_go(self) -> None:
        self.closed = False
        self._open.set()


class HeldSink(Memory):
    """A sink that takes its time with one round."""

    def __init__(self, held: Held) -> None:
        super().__init__()
        self._held = held

    def emit(self, results: Results) -> None:
        self._held.pass_by()
        super().emit(results)


def held_in_a_round(running: Running, held: Held, folder: Path) -> None:
    """Let two rounds go by, and hold the third."""
    running.start()
    put(folder, 0, [1, 2])
    put(folder, 1, [3, 12])
    wait_until(lambda: running.status().round == 1, running)
    held.closed = True
    put(folder, 2, [13, 31])
    assert held.reached.wait(PATIENCE)


def told(answer: pa.Table) -> list[tuple[int, int]]:
    return [(row["window_end"], row["n"]) for row in answer.to_pylist()]


@pytest.mark.parametrize("driver_memory", [None, 0], ids=["driver", "cluster"])
def test_a_round_that_is_held_up_keeps_no_early_answer_back(
    session: SparkSession | None, tmp_path: Path, driver_memory: int | None
) -> None:
    if session is None and driver_memory is not None:
        pytest.skip("the local engine has no cluster")
    held = Held()
    sink = HeldSink(held)
    most = Query("most", "q", SameWindow(), named_as(n="max(n)"))
    program = Program((stream(tmp_path / "in"),), (tumbling("q"), most))
    options = {} if driver_memory is None else {"driver_memory": driver_memory}
    with made(session, program, tmp_path / "checkpoint", {"q": sink}, **options) as running:
        held_in_a_round(running, held, tmp_path / "in")
        for query in ("q", "most"):
            answer = in_a_thread(partial(running.prod, query))
            assert answer.round == 1
            assert told(answer.table()) == [(20, 1)]
        held.let_go()
        wait_until(lambda: running.status().round == 2, running)
        assert told(running.prod("q").table()) == [(40, 1)]
        assert told(sink.table("q")) == [(10, 3), (20, 2)]
    assert not list((tmp_path / "checkpoint" / "slices").glob("_apart*"))


@pytest.mark.parametrize("driver_memory", [None, pytest.param(0, marks=pytest.mark.slow)], ids=["driver", "cluster"])
def test_rounds_that_are_committed_while_an_answer_is_made_take_nothing_from_it(
    session: SparkSession | None, tmp_path: Path, driver_memory: int | None
) -> None:
    if session is None and driver_memory is not None:
        pytest.skip("the local engine has no cluster")
    files, over, failures, answers = 10, threading.Event(), list[BaseException](), list[EarlyResults]()
    most = Query("most", "q", SameWindow(), named_as(n="max(n)"))
    program = Program((stream(tmp_path / "in"),), (tumbling("q"), most))
    options = {} if driver_memory is None else {"driver_memory": driver_memory}
    with made(session, program, tmp_path / "checkpoint", {"q": Memory()}, **options) as running:

        def keep_asking(query: str) -> None:
            try:
                while not over.is_set():
                    answers.append(running.prod(query))
            except BaseException as failure:
                failures.append(failure)

        running.start()
        askers = [threading.Thread(target=keep_asking, args=(query,)) for query in ("q", "most")]
        for asker in askers:
            asker.start()
        for number in range(files):
            # Two files for each window.
            put(tmp_path / "in", number, [10 * (number // 2) + 3 * (number % 2) + place for place in (1, 2)])
            wait_until(lambda number=number: running.status().round == number, running)  # type: ignore[misc]
        over.set()
        for asker in askers:
            asker.join()
    assert failures == []
    assert {answer.query for answer in answers} == {"q", "most"}
    for answer in answers:
        open_now = [(10 * (answer.round // 2) + 10, 2 + 2 * (answer.round % 2))] if answer.round >= 0 else []
        assert told(answer.table()) == open_now
    assert not list((tmp_path / "checkpoint" / "slices").glob("_apart*"))


def test_an_expensive_function_in_a_round_keeps_no_early_answer_back(tmp_path: Path) -> None:
    held = Held()

    def slowly(v: int) -> int:
        held.pass_by()
        return v

    backend = LocalBackend()
    backend.duckdb_executor.connection.create_function("slowly", slowly, ["INTEGER"], "INTEGER")
    query = Query("q", "s", Window(10), named_as(n="count(*)", total="sum(slowly(v))"))
    program = Program((stream(tmp_path / "in"),), (query,))
    with LocalEngine(program, str(tmp_path / "checkpoint"), {"q": Memory()}, backend=backend) as running:
        held_in_a_round(running, held, tmp_path / "in")
        assert told(in_a_thread(lambda: running.prod("q")).table()) == [(20, 1)]
        held.let_go()
        wait_until(lambda: running.status().round == 2, running)


def test_the_end_waits_for_the_answer_that_is_being_made_and_refuses_the_next(tmp_path: Path) -> None:
    held = Held()

    def slowly(n: int) -> int:
        held.pass_by()
        return n

    backend = LocalBackend()
    backend.duckdb_executor.connection.create_function("slowly", slowly, ["BIGINT"], "BIGINT")
    above = Query("above", "q", SameWindow(), named_as(n="max(slowly(n))"))
    program = Program((stream(tmp_path / "in"),), (tumbling("q"), above))
    running = LocalEngine(program, str(tmp_path / "checkpoint"), {"above": Memory()}, backend=backend)
    running.start()
    put(tmp_path / "in", 0, [1, 2])
    wait_until(lambda: running.status().round == 0, running)
    held.closed = True
    answers: list[EarlyResults] = []
    asker = threading.Thread(target=lambda: answers.append(running.prod("above")))
    asker.start()
    assert held.reached.wait(PATIENCE)
    end = threading.Thread(target=running.stop)
    end.start()
    wait_until(running.stopping.is_set)
    with pytest.raises(EngineError, match="cannot prod query 'above': the engine has ended"):
        running.prod("above")
    assert not running.await_end(0.1)
    held.let_go()
    asker.join(PATIENCE)
    end.join(PATIENCE)
    assert told(answers[0].table()) == [(10, 2)]
    assert running.await_end(0.0)


def test_queries_come_and_go_while_others_are_asked(session: SparkSession | None, tmp_path: Path) -> None:
    program = Program((stream(tmp_path / "in"),), (tumbling("q"),))
    over, failures = threading.Event(), list[BaseException]()
    with made(session, program, tmp_path / "checkpoint", {"q": Memory()}) as running:
        running.start()
        put(tmp_path / "in", 0, [1, 2, 12])
        wait_until(lambda: running.status().round == 0, running)

        def keep_asking() -> None:
            try:
                while not over.is_set():
                    assert told(running.prod("q").table()) == [(20, 1)]
            except BaseException as failure:
                failures.append(failure)

        asker = threading.Thread(target=keep_asking)
        asker.start()
        for length in (5, 20, 10):
            running.add(tumbling("other", length))
            assert running.prod("other").rows == 0
            running.remove("other")
        over.set()
        asker.join()
    assert failures == []


SUMS = Query("sums", "s", Window(10), named_as(total="sum(v)"))


def numbers(*times: int) -> dict[str, pa.Table]:
    return {"s": pa.table({"t": list(times), "v": pa.array([1] * len(times), pa.int32())})}


@pytest.mark.spark
def test_slices_on_the_cluster_stay_until_they_were_read_and_then_go(spark: SparkSession, tmp_path: Path) -> None:
    from eventide.engine.spark.backend import SparkBackend

    program = Program((Stream("s", columns("t BIGINT, v INT"), time="t", policy=FixedDelay(0)),), (SUMS,))
    engine = Engine(program, SparkBackend(spark), str(tmp_path / "checkpoint"), {"sums": Memory()}, driver_memory=0)
    slices = tmp_path / "checkpoint" / "slices"
    for clock, times in enumerate(((1, 2), (3,))):
        engine.round(numbers(*times), clock)
    snapshot = engine.early.snapshot
    before = {slices.parent / name for name in snapshot.files(frozenset({"sums"}))}
    with engine.executor.files.apart(snapshot.files(frozenset({"sums"}))) as files:
        for clock, time in enumerate((11, 21, 31, 41), start=2):
            engine.round(numbers(time), clock)
        assert before <= set(slices.rglob("*.parquet"))
        answer = EarlyEvaluation(snapshot, engine.executor.apart(files)).answer("sums", Prod())
    engine.round(numbers(51), 6)
    engine.close()
    engine.backend.close()
    assert answer.table().column("total").to_pylist() == [3]
    assert before
    assert not before & set(slices.rglob("*.parquet"))


@pytest.mark.spark
def test_queries_on_the_cluster_are_asked_one_above_the_other(spark: SparkSession, tmp_path: Path) -> None:
    from eventide.engine.spark.backend import SparkBackend

    lower = Query("lower", "s", RowWindow(2, 2), named_as(total="sum(v)"))
    upper = Query("upper", "lower", Window(10), named_as(most="max(total)"))
    program = Program((Stream("s", columns("t BIGINT, v INT"), time="t", policy=FixedDelay(0)),), (lower, upper))
    engine = Engine(program, SparkBackend(spark), str(tmp_path / "checkpoint"), driver_memory=0)
    engine.round(numbers(1, 2, 3, 4, 5), 0)
    assert [one.placement for one in engine.status().queries] == ["cluster", "cluster"]
    assert [engine.prod(name).rows for name in ("lower", "upper")] == [1, 1]
    engine.close()
    engine.backend.close()


def test_garbage_that_someone_reads_goes_after_they_have_let_it_go(tmp_path: Path) -> None:
    storage = Storage.at(tmp_path / "checkpoint")
    names = ("slices/q/1.parquet", "slices/q/2.parquet", "slices/_apart-7/q/1.parquet")
    for name in names:
        storage.write(name, b"")
    garbage = Garbage(storage)
    garbage.add(names)
    with garbage.holding(frozenset({"slices/q/1.parquet"}), "slices/_apart-7"):
        garbage.remove(live=frozenset())
        assert storage.list("slices", hidden=True) == ["slices/_apart-7/q/1.parquet", "slices/q/1.parquet"]
    garbage.remove(live=frozenset())
    assert storage.list("slices", hidden=True) == []
