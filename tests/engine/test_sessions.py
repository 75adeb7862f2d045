"""Sessions are as brute force finds them: in any order and any rounds, through restarts, late rows and revisions."""

from __future__ import annotations

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
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import SessionWindow
from eventide.report.stopped_run import read_progress
from eventide.report.why import window_words
from tests.engine.scenarios import Scenario, agree, expected, played, scenarios, sessions, trial_of


@st.composite
def stories(draw: st.DrawFn) -> Scenario:
    """A random story whose questions are all about sessions."""
    story = draw(scenarios())
    asked = tuple(draw(sessions(f"q{number}")) for number in range(draw(st.integers(1, 3))))
    return Scenario(asked, story.rounds, story.restarts, story.policy)


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(scenario=stories())
def test_sessions_are_as_brute_force_finds_them(duckdb_executor: DuckDBExecutor, scenario: Scenario) -> None:
    with trial_of(scenario.program, duckdb_executor=duckdb_executor) as trial:
        agree(played(scenario, trial), expected(scenario))


VISITS = Program(
    (Stream("s", columns("t BIGINT, k STRING"), time="t", policy=FixedDelay(0)),),
    (Query("q", "s", SessionWindow(10), named_as(n="count(*)"), named_as("k")),),
)


def visits(*rows: tuple[int, str]) -> dict[str, pa.Table]:
    return {"s": pa.table({"t": [time for time, _ in rows], "k": [key for _, key in rows]})}


def test_an_open_session_says_what_it_waits_for_while_it_runs_and_after(tmp_path: Path) -> None:
    engine = Engine(VISITS, LocalBackend(), str(tmp_path))
    engine.round(visits((1, "a"), (3, "b")), clock=0)
    engine.round(visits((9, "a")), clock=0)
    [status] = engine.status().queries
    assert (status.bound, status.waits_for and status.waits_for["window_start"]) == (10, 3)
    engine.close()
    standing = read_progress(VISITS, str(tmp_path), "q")
    assert [(window.start, window.end) for window in standing.windows("q")] == [(3, 13), (1, 19)]
    found = standing.window("q", 1)
    assert found is not None
    assert window_words(found).startswith("session 1 to 19 waits for stream s (time is at 9)")
    with pytest.raises(DeclarationError, match="no open session of query 'q' starts there"):
        standing.window("q", 2)


def test_many_sessions_that_close_at_once_are_emitted_over_rounds(tmp_path: Path) -> None:
    engine = Engine(VISITS, LocalBackend(), str(tmp_path), flush_rows=3)
    engine.round(visits(*((time, f"k{time}") for time in range(10))), clock=0)
    given = []
    for time in (100, 101, 102, 103):
        work = engine.round(visits((time, "z")), clock=0)
        given.append(0 if work is None else work.results["q"].rows)
    assert given == [3, 3, 3, 1]
    engine.close()
