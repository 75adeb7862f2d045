"""Prods are answered while a round is under way, from the last one that was committed; and rounds take no notice."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.engine.garbage import Garbage
from eventide.engine.local_backend import LocalBackend
from eventide.engine.local_engine import LocalEngine
from eventide.engine.prodding import EarlyResults
from eventide.engine.rounds import Engine
from eventide.engine.running import Running
from eventide.engine.storage import Storage
from eventide.engine.workbench import Workbench
from eventide.errors import EngineError
from eventide.eventtime.fixed_delay import FixedDelay
from eventide.eventtime.instant import FOREVER
from eventide.eventtime.prod import Prod
from eventide.plan.program import Program
from eventide.plan.query import Query, named_as
from eventide.plan.stream import Stream, columns
from eventide.plan.window import SameWindow, Window
from eventide.results.results import Results
from eventide.sinks.memory import Memory
from eventide.testing.trial import Shown
from tests.engine.level_scenarios import Plan, brute_force, in_order, plans, shown
from tests.engine.scenarios import SCHEMA
from tests.engine.small_streams import PATIENCE, made, put, stream, tumbling, wait_until
from tests.engine.test_early_answers import early_by_brute_force

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STEPS = ("reduce", "promise", "advance", "prod", "emit", "commit")
Asked = tuple[int, str, EarlyResults, int]
"""An answer, the query, and the rounds that had been committed before it was asked for and after it came."""


@pytest.fixture(autouse=True)
def folder_of_files(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()


@pytest.fixture(params=["local", pytest.param("spark", marks=pytest.mark.spark)])
def session(request: pytest.FixtureRequest) -> SparkSession | None:
    """Each test on both engines: None is the local one."""
    found: SparkSession | None = request.getfixturevalue("spark") if request.param == "spark" else None
    return found


class Rounds:
    """A plan on the local engine, round by round, and whoever asks it; compared with brute force in the end."""

    def __init__(self, plan: Plan, folder: str, workbench: Workbench) -> None:
        self.plan = plan
        self._shown = Shown()
        self._told: list[Asked] = []
        sinks = {question.name: self._shown for question in plan.levels}
        backend = LocalBackend(workbench)
        self.engine = Engine(plan.program, backend, folder, sinks, lambda round, step: self.during(round, step))
        self.during: Callable[[int, str], None] = lambda round, step: None

    def play(self) -> None:
        for one in self.plan.story.rounds:
            if one.end:
                self.engine.end(0)
            else:
                batch = {"s": pa.Table.from_pylist([dict(row) for row in one.rows], schema=SCHEMA)}
                self.engine.round(batch, 0, {} if one.heartbeat is None else {"s": one.heartbeat})

    def ask(self, query: str) -> None:
        before = self.engine.status().round
        answer = self.engine.prod(query, Prod())
        self._told.append((before, query, answer, self.engine.status().round))

    def check(self) -> None:
        plan = self.plan
        expected = in_order(plan, brute_force(plan)[0])
        for number, wanted in enumerate(expected):
            found = [
                row for question in plan.levels for row in shown(question, self._shown.tables[question.name, number])
            ]
            assert in_order(plan, [found])[0] == wanted, f"final of round {number}"
        ends = [number for number, one in enumerate(plan.story.rounds) if one.end]
        early: dict[int, list[tuple[Any, ...]]] = {}
        for before, query, answer, after in self._told:
            assert before <= answer.round <= after
            if answer.round not in early:
                over = bool(ends) and answer.round >= ends[0]
                early[answer.round] = [] if over else early_by_brute_force(plan, answer.round, FOREVER)
            [question] = (one for one in plan.levels if one.name == query)
            found = in_order(plan, [shown(question, answer.table())])[0]
            assert found == [row for row in early[answer.round] if row[0] == query], f"early after {answer.round}"


def in_a_thread(function: Callable[[], Any]) -> Any:
    """Call it in another thread; what it returns or raises."""
    found: list[Any] = []

    def call() -> None:
        try:
            found.append(function())
        except BaseException as failure:
            found.append(failure)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert found, "it did not come back"
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


def without_restarts(plan: Plan) -> Plan:
    return replace(plan, story=replace(plan.story, restarts=frozenset()))


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(plans(), st.sets(st.tuples(st.integers(0, 5), st.sampled_from(STEPS)), max_size=6))
def test_in_the_middle_of_a_round_a_prod_has_the_answer_of_the_round_before(
    workbench: Workbench, plan: Plan, moments: set[tuple[int, str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rounds = Rounds(without_restarts(plan), folder, workbench)

        def during(round: int, step: str) -> None:
            if (round, step) in moments:
                for question in plan.levels:
                    in_a_thread(partial(rounds.ask, question.name))

        rounds.during = during
        rounds.play()
        rounds.engine.close()
        rounds.check()


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(plans())
def test_whoever_asks_while_rounds_go_by_has_the_answer_of_one_of_them(workbench: Workbench, plan: Plan) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rounds, over, failures = Rounds(without_restarts(plan), folder, workbench), threading.Event(), []

        def keep_asking() -> None:
            try:
                while not over.is_set():
                    for question in plan.levels:
                        rounds.ask(question.name)
            except BaseException as failure:
                failures.append(failure)

        askers = [threading.Thread(target=keep_asking) for _ in range(3)]
        for asker in askers:
            asker.start()
        try:
            rounds.play()
        finally:
            over.set()
            for asker in askers:
                asker.join()
            rounds.engine.close()
        assert failures == []
        rounds.check()


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


@pytest.mark.parametrize("driver_bytes", [None, 0], ids=["driver", "cluster"])
def test_a_round_that_is_held_up_keeps_no_early_answer_back(
    session: SparkSession | None, tmp_path: Path, driver_bytes: int | None
) -> None:
    if session is None and driver_bytes is not None:
        pytest.skip("the local engine has no cluster")
    held = Held()
    sink = HeldSink(held)
    most = Query("most", "q", SameWindow(), named_as(n="max(n)"))
    program = Program((stream(tmp_path / "in"),), (tumbling("q"), most))
    options = {} if driver_bytes is None else {"driver_bytes": driver_bytes}
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
    assert not list((tmp_path / "checkpoint" / "slices").glob("_early*"))


@pytest.mark.parametrize("driver_bytes", [None, 0], ids=["driver", "cluster"])
def test_rounds_that_are_committed_while_an_answer_is_made_take_nothing_from_it(
    session: SparkSession | None, tmp_path: Path, driver_bytes: int | None
) -> None:
    if session is None and driver_bytes is not None:
        pytest.skip("the local engine has no cluster")
    files, over, failures, answers = 10, threading.Event(), list[BaseException](), list[EarlyResults]()
    most = Query("most", "q", SameWindow(), named_as(n="max(n)"))
    program = Program((stream(tmp_path / "in"),), (tumbling("q"), most))
    options = {} if driver_bytes is None else {"driver_bytes": driver_bytes}
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
    assert not list((tmp_path / "checkpoint" / "slices").glob("_early*"))


def test_an_expensive_function_in_a_round_keeps_no_early_answer_back(tmp_path: Path) -> None:
    held = Held()

    def slowly(v: int) -> int:
        held.pass_by()
        return v

    backend = LocalBackend()
    backend.workbench.connection.create_function("slowly", slowly, ["INTEGER"], "INTEGER")
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
    backend.workbench.connection.create_function("slowly", slowly, ["BIGINT"], "BIGINT")
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


@pytest.mark.parametrize("step", STEPS)
def test_early_answers_are_scored_whenever_in_a_round_they_were_told(tmp_path: Path, step: str) -> None:
    program = Program((Stream("s", columns("t BIGINT, v INT"), time="t", policy=FixedDelay(0)),), (SUMS,))
    answers: list[EarlyResults] = []

    def during(round: int, ended: str) -> None:
        if (round, ended) in ((1, step), (2, step)):
            answers.append(in_a_thread(lambda: engine.prod("sums")))

    engine = Engine(program, LocalBackend(), str(tmp_path / "checkpoint"), {"sums": Memory()}, during)
    for number, batch in enumerate((numbers(1, 2), numbers(3, 4), numbers(5, 14), numbers(21), numbers(31))):
        engine.round(batch, number)
    summary = engine.early.states["sums"].accuracy.summary()
    engine.close()
    assert [answer.round for answer in answers] == [0, 1]
    assert summary.vanished == 0
    # The window closes in the second of these rounds; told after its end, there is nothing left to score it by.
    assert (summary.windows, summary.worst) == (1 if step == "commit" else 2, 0.6)


def test_a_query_in_the_place_of_another_of_its_name_is_not_scored_by_what_that_one_told(tmp_path: Path) -> None:
    program = Program((Stream("s", columns("t BIGINT, v INT"), time="t", policy=FixedDelay(0)),), (SUMS,))
    engine = Engine(program, LocalBackend(), str(tmp_path / "checkpoint"))
    engine.round(numbers(1, 2), 0)
    assert engine.prod("sums").rows == 1
    engine.remove("sums")
    engine.add(Query("sums", "s", Window(10), named_as(n="count(*)"), named_as("v")))
    engine.round(numbers(11, 12), 1)
    engine.round(numbers(31), 2)
    engine.close()
    assert "sums" not in engine.early.states or engine.early.states["sums"].accuracy.summary().windows == 0


def test_garbage_that_someone_reads_goes_after_they_have_let_it_go(tmp_path: Path) -> None:
    storage = Storage.at(tmp_path / "checkpoint")
    names = ("slices/q/1.parquet", "slices/q/2.parquet", "slices/_early-7/q/1.parquet")
    for name in names:
        storage.write(name, b"")
    garbage = Garbage(storage)
    garbage.add(names)
    with garbage.holding(frozenset({"slices/q/1.parquet"}), "slices/_early-7"):
        garbage.remove(live=frozenset())
        assert storage.list("slices", hidden=True) == ["slices/_early-7/q/1.parquet", "slices/q/1.parquet"]
    garbage.remove(live=frozenset())
    assert storage.list("slices", hidden=True) == []
