"""Slow flush: the same results and the same late rows as without, a few at a time, whole windows in order."""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.errors import DeclarationError
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.scheduling.options import IdlePolling, Scheduling
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import Window
from eventide.testing.oracle import Round
from eventide.testing.trial import Trial
from tests.engine.scenarios import Outcome, Scenario, played, scenarios

S = Stream("s", columns("t BIGINT, k STRING, v INT"), time="t", policy=FixedDelay(0))
SUMS = Query("sums", "s", Window(10), named_as(total="sum(v)"), named_as("k"))
HOURS = Query("hours", "sums", Window(40), named_as(n="count(*)"))


def outcomes(scenario: Scenario, duckdb_executor: DuckDBExecutor, flush_rows: int | None) -> list[Outcome]:
    with (
        tempfile.TemporaryDirectory() as folder,
        Trial(scenario.program, Path(folder), duckdb_executor=duckdb_executor, flush_rows=flush_rows) as trial,
    ):
        return played(scenario, trial)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(scenario=scenarios(), most=st.integers(1, 4))
def test_the_same_is_told_a_few_results_at_a_time(
    duckdb_executor: DuckDBExecutor, scenario: Scenario, most: int
) -> None:
    # A window that waits takes in what would have revised it, so the two differ where windows are retained.
    questions = tuple(replace(question, retain=0) for question in scenario.questions)
    rounds = (*(one for one in scenario.rounds if not one.end), Round(end=True))
    scenario = replace(scenario, questions=questions, rounds=rounds)
    at_once, slowly = outcomes(scenario, duckdb_executor, None), outcomes(scenario, duckdb_executor, most)
    assert [outcome.late for outcome in slowly] == [outcome.late for outcome in at_once]
    assert sum((o.final for o in slowly), Counter()) == sum((o.final for o in at_once), Counter())
    for question in questions:
        ends = [[result[2] for result in o.final.elements() if result[0] == question.name] for o in slowly]
        for results in ends[:-1]:
            assert len(results) <= most or len(set(results)) == 1
        for before, after in pairwise(filter(None, ends)):
            assert max(before) < min(after), "a window was told in two rounds, or before an earlier one"


def rows(*times: int) -> dict[str, pa.Table]:
    ones = pa.array([1] * len(times), pa.int32())
    return {"s": pa.table({"t": list(times), "k": ["a"] * len(times), "v": ones})}


def ends_of(engine: Engine, clock: int) -> list[int] | None:
    work = engine.tick(clock)
    return None if work is None else work.results["sums"].table().column("window_end").to_pylist()


def test_silent_rounds_tell_what_waits_and_then_there_are_none(tmp_path: Path) -> None:
    engine = Engine(Program((S,), (SUMS, HOURS)), LocalBackend(), str(tmp_path), flush_rows=2)
    first = engine.round(rows(5, 15, 25, 35, 45, 55), clock=0)
    assert first.results["sums"].table().column("window_end").to_pylist() == [10, 20]
    assert engine.status().queries[0].bound == 50
    assert engine.state.operators["sums"].frontier.time == 19
    assert ends_of(engine, 1) == [30, 40]
    assert engine.state.operators["hours"].frontier.time == 39
    assert ends_of(engine, 2) == [50]
    assert ends_of(engine, 3) is None
    engine.close()


def test_a_limit_of_nothing_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DeclarationError, match="would never tell anything"):
        Engine(Program((S,), (SUMS,)), LocalBackend(), str(tmp_path), flush_rows=0)


@pytest.mark.parametrize("asking", [IdlePolling.never(), IdlePolling.every(1_000)], ids=str)
def test_what_waits_is_told_in_silence_also_where_silent_streams_are_not_asked(
    tmp_path: Path, asking: IdlePolling
) -> None:
    engine = Engine(Program((S,), (SUMS,)), LocalBackend(), str(tmp_path), flush_rows=1, scheduling=Scheduling(asking))
    rows = pa.table({"t": [1, 11, 21, 31], "k": ["x"] * 4, "v": pa.array([1] * 4, pa.int32())})
    told = [engine.round({"s": rows}, clock=5)]
    while (more := engine.tick(clock=6)) is not None:
        told.append(more)
    engine.close()
    assert [one.results["sums"].table().column("window_end").to_pylist() for one in told] == [[10], [20], [30]]
