"""Early results that discard tell each row once, as brute force finds them, through restarts and late rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.errors import DeclarationError
from eventide.eventtime.instant import NEVER
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Prods, Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import GrowingWindow, RowWindow, Window
from tests.engine.scenarios import trial_of

Row = tuple[int, str]
"""Time and group."""
STREAM = Stream("s", columns("t BIGINT, k STRING"), time="t", policy=Punctuated())
WINDOWS = (Window(10), Window(12, 4), Window(5, 8), GrowingWindow(12, 4))


def query_of(window: Window, rows: int) -> Query:
    prods = Prods(every_rows=rows, discarding=True)
    return Query("q", "s", window, named_as(n="count(*)", last="max(t)"), named_as("k"), prods=prods)


@dataclass(frozen=True)
class Story:
    """Rounds of rows, each with the heartbeat after it, and the rounds before which the engine is restarted."""

    window: Window
    every: int
    rounds: tuple[tuple[tuple[Row, ...], int], ...]
    restarts: frozenset[int]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    row = st.tuples(st.integers(-4, 30), st.sampled_from("ab"))
    one = st.tuples(st.lists(row, max_size=5).map(tuple), st.integers(-8, 34))
    rounds = draw(st.lists(one, min_size=1, max_size=7))
    restarts = draw(st.frozensets(st.integers(0, len(rounds) - 1), max_size=2))
    return Story(draw(st.sampled_from(WINDOWS)), draw(st.integers(1, 6)), tuple(rounds), restarts)


Told = set[tuple[int, int, str, int, int]]
"""Start and end of a window, the group, how many rows, and the last of their times."""


def results_of(window: Window, rows: Sequence[Row], answered: int, to: int | None = None) -> Told:
    """The results of windows that end after one time, and by another, over some rows."""
    held: dict[tuple[int, int, str], list[int]] = {}
    for time, group in rows:
        end = window.first_end_after(time)
        while window.start_of(end) <= time < end and end <= window.last_end(time):
            if end > answered and (to is None or end <= to):
                held.setdefault((int(window.start_of(end)), int(end), group), []).append(time)
            end += window.slide
    return {(*key, len(times), max(times)) for key, times in held.items()}


def expected(story: Story) -> list[tuple[Told, Told]]:
    """Final and early results of every round."""
    held: list[tuple[Row, int]] = []
    new: list[tuple[Row, int]] = []
    count, passed, found = 0, NEVER, list[tuple[Told, Told]]()
    for rows, heartbeat in story.rounds:
        before, passed = passed, max(passed, heartbeat)
        answered, to = (NEVER if beat == NEVER else beat + 1 for beat in (before, passed))
        # A row is late for the windows that were answered when it came.
        held += [(row, answered) for row in rows]
        new += [(row, answered) for row in rows]
        final = _merged(story.window, held, answered, to)
        wanted = sum(bool(results_of(story.window, [row], NEVER)) for row in rows)
        due = (count + wanted) // story.every > count // story.every
        count += wanted
        early = _merged(story.window, new, to) if due else set()
        new = [] if due else new
        found.append((final, early))
    return found


def _merged(window: Window, rows: Sequence[tuple[Row, int]], answered: int, to: int | None = None) -> Told:
    """The results over rows, each of which only counts in windows that end after a time of its own."""
    every: dict[tuple[int, int, str], list[int]] = {}
    for row, after in rows:
        for start, end, group, _, time in results_of(window, [row], max(after, answered), to):
            every.setdefault((start, end, group), []).append(time)
    return {(*key, len(times), max(times)) for key, times in every.items()}


def told(tables: Sequence[pa.Table]) -> Told:
    rows = [row for table in tables for row in table.to_pylist()]
    return {(row["window_start"], row["window_end"], row["k"], row["n"], row["last"]) for row in rows}


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(story=stories())
def test_early_results_that_discard_tell_each_row_once(duckdb_executor: DuckDBExecutor, story: Story) -> None:
    program = Program((STREAM,), (query_of(story.window, story.every),))
    with trial_of(program, duckdb_executor=duckdb_executor) as trial:
        for number, ((rows, heartbeat), (final, early)) in enumerate(zip(story.rounds, expected(story), strict=True)):
            if number in story.restarts:
                trial.restart()
            times, groups = [time for time, _ in rows], [group for _, group in rows]
            table = pa.table({"t": pa.array(times, pa.int64()), "k": pa.array(groups, pa.string())})
            trial.round({"s": table}, number, {"s": heartbeat})
            output = trial.output()
            assert (told(output.final), told(output.early)) == (final, early), f"round {number}"


def test_a_query_that_is_to_discard_from_now_on_begins_with_what_comes(duckdb_executor: DuckDBExecutor) -> None:
    whole = Query("q", "s", Window(10), named_as(n="count(*)"), prods=Prods(every_rows=1))
    with trial_of(Program((STREAM,), (whole,)), duckdb_executor=duckdb_executor) as trial:
        trial.round({"s": pa.table({"t": [1], "k": ["a"]})}, 0, {})
        trial.program = Program((STREAM,), (Query("q", "s", Window(10), whole.select, prods=DISCARDING),))
        trial.restart()
        trial.output()
        trial.round({"s": pa.table({"t": [2], "k": ["a"]})}, 1, {})
        assert [table.column("n").to_pylist() for table in trial.output().early] == [[1]]


DISCARDING = Prods(every_rows=1, discarding=True)
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "points": (lambda: Prods(points=(0.5,), discarding=True), "goes with PROD EVERY alone"),
    "estimates": (lambda: Prods(every=5, estimate=True, discarding=True), "have no errors"),
    "rows": (lambda: Query("q", "s", RowWindow(3), named_as(n="count(*)"), prods=DISCARDING), "windows of time"),
    "empty": (lambda: Query("q", "s", Window(3, empty=True), named_as(n="count(*)"), prods=DISCARDING), "empty"),
    "a query": (
        lambda: Program(
            (STREAM,),
            (query_of(Window(5), 1), Query("up", "q", Window(10), named_as(n="sum(n)"), prods=DISCARDING)),
        ),
        "for queries that read a stream themselves",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_told_in_parts_is_refused(name: str) -> None:
    declare, why = REFUSED[name]
    with pytest.raises(DeclarationError, match=why):
        declare()
