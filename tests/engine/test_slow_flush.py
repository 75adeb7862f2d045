"""Slow flush: results a few at a time, whole windows in order; a window counts what comes before it is told."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.local.backend import LocalBackend
from eventide.engine.operators.join import JoinOperator
from eventide.engine.operators.merge import Merge
from eventide.engine.relations.executor import Executor
from eventide.engine.round.engine import Engine
from eventide.errors import DeclarationError
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.scheduling.options import IdlePolling, Scheduling
from eventide.plan.bound.rows import bind_rows
from eventide.plan.declared.join import JoinKind
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import RowWindow, Window
from eventide.testing.oracle import OracleAnswer, Round, answers
from eventide.testing.questions import Question
from tests.engine.join_oracle import Row
from tests.engine.operators_alone import came, emitted, in_files, inputs, restarted
from tests.engine.scenarios import Outcome, Scenario, outcome_of, plain, play_round, scenarios, trial_of
from tests.engine.test_joins import BANDS, bound_join, came_to, emitted_rows, of
from tests.engine.test_joins import rows as joined_rows

S = Stream("s", columns("t BIGINT, k STRING, v INT"), time="t", policy=FixedDelay(0))
SUMS = Query("sums", "s", Window(10), named_as(total="sum(v)"), named_as("k"))
HOURS = Query("hours", "sums", Window(40), named_as(n="count(*)"))


class Played(NamedTuple):
    """What a scenario gave, and up to where the windows of each question had been emitted after each round."""

    outcomes: list[Outcome]
    emitted: list[dict[str, int]]


def play(scenario: Scenario, duckdb_executor: DuckDBExecutor, flush_rows: int | None) -> Played:
    found = Played([], [])
    with trial_of(scenario.program, duckdb_executor=duckdb_executor, flush_rows=flush_rows) as trial:
        for number in range(len(scenario.rounds)):
            play_round(scenario, number, trial)
            found.outcomes.append(outcome_of(scenario, trial.output()))
            found.emitted.append(
                {question.name: trial.emitted_before(question.name) for question in scenario.questions}
            )
    return found


def answered_when_emitted(scenario: Scenario, question: Question, emitted: list[dict[str, int]]) -> list[OracleAnswer]:
    """Brute force that is given when each window was emitted: until then the window counts what comes for it.

    The end emits what waits for its turn: first what heartbeats had closed, empty windows up to there too.
    """
    promised = scenario.promised()
    *rounds, end = [
        replace(one, heartbeat=None if to[question.name] in (NEVER, FOREVER) else to[question.name] - 1)
        for one, to in zip(promised, emitted, strict=True)
    ]
    reached = Round(heartbeat=max(NEVER if one.heartbeat is None else one.heartbeat for one in promised))
    *found, waiting, last = answers(question, "t", [*rounds, reached, end])
    return [*found, OracleAnswer(waiting.final + last.final, late=last.late)]


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(scenario=scenarios(), most=st.integers(1, 4))
def test_windows_are_told_a_few_results_at_a_time_and_count_what_comes_before_they_are(
    duckdb_executor: DuckDBExecutor, scenario: Scenario, most: int
) -> None:
    # A window that waits takes in what would have revised it, so the two differ where windows are retained.
    questions = tuple(replace(question, retain=0) for question in scenario.questions)
    rounds = (*(one for one in scenario.rounds if not one.end), Round(end=True))
    scenario = replace(scenario, questions=questions, rounds=rounds)
    slowly = play(scenario, duckdb_executor, most)
    at_once = play(replace(scenario, restarts=frozenset()), duckdb_executor, None).outcomes
    for question in questions:
        told = [[row for row in o.final.elements() if row[0] == question.name] for o in slowly.outcomes]
        late = [Counter({row: n for row, n in o.late.items() if row[0] == question.name}) for o in slowly.outcomes]
        if isinstance(question.window, RowWindow):
            # Windows over a count of rows go by the order of time, whatever waits.
            whole = sum((o.final for o in at_once), Counter())
            assert Counter(row for rows in told for row in rows) == Counter(
                {row: n for row, n in whole.items() if row[0] == question.name}
            )
        else:
            expected = answered_when_emitted(scenario, question, slowly.emitted)
            assert [Counter(rows) for rows in told] == [
                Counter(plain(question, result) for result in answer.final) for answer in expected
            ]
            assert late == [Counter((question.name, *row.values()) for row in answer.late) for answer in expected]
        ends = [[row[2] for row in rows] for rows in told]
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


@settings(max_examples=40, deadline=None)
@given(
    kind=st.sampled_from([kind for kind in JoinKind if kind not in (JoinKind.INNER, JoinKind.SEMI)]),
    band=st.sampled_from(sorted(BANDS)),
    given_rows=st.lists(joined_rows, max_size=14),
    heartbeats=st.tuples(st.integers(-5, 45), st.integers(-5, 45)),
    most=st.integers(1, 4),
    restarts=st.booleans(),
)
def test_rows_alone_of_a_join_go_a_few_at_a_time_and_are_those_that_go_at_once(
    executor: Executor,
    kind: JoinKind,
    band: str,
    given_rows: list[Row],
    heartbeats: tuple[int, int],
    most: int,
    restarts: bool,
) -> None:
    bound = bound_join(BANDS[band], kind=kind)
    start = JoinOperator.start(bound, executor)
    for side, port in enumerate(bound.ports):
        start, _ = start.ingest(port.query.name, came_to(start, side, given_rows))
    at_once, slowly = [], []
    run = start
    for reached in (heartbeats, (FOREVER, FOREVER)):
        run, output = run.advance(of(bound, left=reached[0], right=reached[1]))
        at_once.append(Counter(tuple(row.values()) for row in emitted_rows(output)))
    run, times = start, len(given_rows) + 2
    for reached in (heartbeats, (FOREVER, FOREVER)):
        inputs = of(bound, left=reached[0], right=reached[1])
        found: Counter[tuple[object, ...]] = Counter()
        while run.would_emit(inputs):
            promised, times = run.frontier.time, times - 1
            run, output = run.advance(inputs, most)
            told = emitted_rows(output)
            assert all(row["window_end"] - 1 > promised for row in told)
            found += Counter(tuple(row.values()) for row in told)
            assert times >= 0, "a round let nothing go"
            if restarts:
                run = restarted(JoinOperator.start(bound, executor), in_files(run))
        run, _ = run.advance(inputs, most)
        slowly.append(found)
    assert slowly == at_once


def test_rows_alone_wait_for_the_next_rounds_and_take_partners_until_then(executor: Executor) -> None:
    bound = bound_join(BANDS["equal"], kind=JoinKind.LEFT)
    run = JoinOperator.start(bound, executor)
    run, _ = run.ingest("j__left", came_to(run, 0, [Row(0, at, None, at) for at in range(1, 7)]))
    reached = of(bound, left=9, right=9)
    run, output = run.advance(reached, 2)
    assert [row["a_t"] for row in emitted_rows(output)] == [1, 2]
    assert run.frontier.time == 2
    run, ingested = run.ingest("j__right", came_to(run, 1, [Row(1, 2, None, 8), Row(1, 3, None, 9)]))
    assert ingested.late_rows == 1
    run, output = run.advance(reached, 2)
    assert [(row["a_t"], row["b_t"]) for row in emitted_rows(output)] == [(3, 3), (4, None)]


@settings(max_examples=40, deadline=None)
@given(
    times=st.lists(st.integers(0, 9), max_size=20),
    heartbeat=st.integers(-1, 12),
    most=st.integers(1, 5),
    simultaneous=st.booleans(),
    restarts=st.booleans(),
)
def test_rows_of_a_merge_go_a_few_at_a_time_whole_instants_in_order(
    executor: Executor, times: list[int], heartbeat: int, most: int, simultaneous: bool, restarts: bool
) -> None:
    rows = Rows("m", ("s",), simultaneous=simultaneous)
    bound = bind_rows(rows, (S,), LocalBackend().type_of)
    run = Merge.start(bound, executor)
    [port] = bound.ports
    table = pa.table(
        {
            "t": pa.array(times, pa.int64()),
            "k": pa.nulls(len(times), pa.string()),
            "v": pa.nulls(len(times), pa.int32()),
        }
    )
    run, _ = run.ingest(port.query.name, came(run, port, table))
    reached, told = inputs(**{port.query.name: heartbeat}), []
    new = True
    while new or run.would_emit(reached):
        run, output = run.advance(reached, most)
        some = [row["t"] for row in emitted(output).to_pylist()]
        assert some or new, "a round let nothing go"
        new = False
        # The last instant goes as a whole, however many rows it has.
        assert sum(at < max(some) for at in some) < most
        told += some
        if restarts:
            run = restarted(Merge.start(bound, executor), in_files(run))
    last = heartbeat + 1 if simultaneous else heartbeat
    assert told == sorted(at for at in times if at <= last)
