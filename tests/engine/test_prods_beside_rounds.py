"""Prods in the middle of rounds have the answers of the last committed one, and rounds take no notice of them."""

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

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.early.prodding import EarlyResults
from eventide.engine.early.state import MOST, EarlyEmission, UnscoredAnswers
from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.engine.round.report import STEPS
from eventide.eventtime.early.prod import Prod
from eventide.eventtime.early.triggers import Moment
from eventide.eventtime.instant import FOREVER
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import Window
from eventide.sinks.sink import Memory
from eventide.testing.trial import RecordingSink
from tests.engine.level_scenarios import Plan, brute_force, in_order, plans, shown
from tests.engine.scenarios import SCHEMA
from tests.engine.small_streams import in_a_thread
from tests.engine.test_early_answers import early_by_brute_force

if TYPE_CHECKING:
    pass

Asked = tuple[int, str, EarlyResults, int]
"""An answer, the query, and the rounds that had been committed before it was asked for and after it came."""


class Rounds:
    """A plan on the local engine, round by round, and whoever asks it; compared with brute force in the end."""

    def __init__(self, plan: Plan, folder: str, duckdb_executor: DuckDBExecutor) -> None:
        self.plan = plan
        self._shown = RecordingSink()
        self._told: list[Asked] = []
        sinks = {question.name: self._shown for question in plan.levels}
        backend = LocalBackend(duckdb_executor)
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


def without_restarts(plan: Plan) -> Plan:
    return replace(plan, story=replace(plan.story, restarts=frozenset()))


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(plans(), st.sets(st.tuples(st.integers(0, 5), st.sampled_from(STEPS)), max_size=6))
def test_in_the_middle_of_a_round_a_prod_has_the_answer_of_the_round_before(
    duckdb_executor: DuckDBExecutor, plan: Plan, moments: set[tuple[int, str]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rounds = Rounds(without_restarts(plan), folder, duckdb_executor)

        def during(round: int, step: str) -> None:
            if (round, step) in moments:
                for question in plan.levels:
                    in_a_thread(partial(rounds.ask, question.name))

        rounds.during = during
        rounds.play()
        rounds.engine.close()
        rounds.check()


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(plans())
def test_whoever_asks_while_rounds_go_by_has_the_answer_of_one_of_them(
    duckdb_executor: DuckDBExecutor, plan: Plan
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        rounds, over, failures = Rounds(without_restarts(plan), folder, duckdb_executor), threading.Event(), []

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


def test_of_very_many_answers_the_last_wait_for_a_round() -> None:
    told = UnscoredAnswers()
    answers = [EarlyEmission(SUMS, 0, pa.table({}), Moment(clock)) for clock in range(MOST + 2)]
    for answer in answers:
        told.add(answer)
    assert told.all() == tuple(answers[2:])
    told.forget(answers[:5])
    assert told.all() == tuple(answers[5:])
