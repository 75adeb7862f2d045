"""Queues before expensive functions: every row counts once, whatever waits, is set aside, or dies in between."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.errors import DeclarationError
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Prods, Query, named_as
from eventide.plan.declared.rows import Sideline, queued
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import RowWindow, SameWindow, Window
from eventide.testing.trial import Trial
from tests.engine.scenarios import trial_of

SECOND = 1_000_000
STREAM = Stream("s", columns("ts TIMESTAMP, k STRING, v BIGINT"), time="ts", policy=Punctuated())


@dataclass(frozen=True)
class Step:
    """A round: rows by second and group, how far the heartbeat goes, whether the engine is started anew before it."""

    rows: list[tuple[int, str]]
    heartbeat: int
    restart: bool
    prod: bool


STEPS = st.lists(
    st.builds(
        Step,
        st.lists(st.tuples(st.integers(0, 40), st.sampled_from("ab")), max_size=8),
        st.integers(-5, 45),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=10,
)
SIDELINES = st.none() | st.builds(
    Sideline, st.none() | st.integers(1, 3), st.none() | st.integers(1, 4).map(lambda seconds: seconds * SECOND)
)
WINDOWS = st.sampled_from([Window(10 * SECOND), Window(20 * SECOND, 10 * SECOND), Window(15 * SECOND, 10 * SECOND)])


def program(window: Window, room: int, sideline: Sideline | None) -> Program:
    query = Query(
        "q", "s", window, named_as(n="count(*)", total="sum(v)"), named_as("k"), prods=Prods(every=2 * SECOND)
    )
    queue, query = queued(query, ("s",), "q_queue", room=room, sideline=sideline)
    return Program((STREAM,), (query,), (queue,))


def batch(rows: list[tuple[int, str, int]], window: Window) -> dict[tuple[int, str], tuple[int, int]]:
    """By the end of each window and group: how many rows, and their sum."""
    counts, sums = Counter[tuple[int, str]](), Counter[tuple[int, str]]()
    for second, group, value in rows:
        for start in window.starts_covering(window.pane_of(second * SECOND)):
            counts[start + window.range, group] += 1
            sums[start + window.range, group] += value
    return {key: (counts[key], sums[key]) for key in counts}


@settings(max_examples=12)
@given(STEPS, st.integers(1, 5), SIDELINES, WINDOWS)
def test_every_row_counts_once_whatever_waits_or_is_set_aside(
    duckdb_executor: DuckDBExecutor, steps: list[Step], room: int, sideline: Sideline | None, window: Window
) -> None:
    """Finals are the batch query over all rows that were not late, each once; `Trial` checks the grammar on the way."""
    given: list[tuple[int, str, int]] = []
    late: list[int] = []
    finals: list[tuple[int, str, int, int]] = []
    with trial_of(program(window, room, sideline), duckdb_executor=duckdb_executor) as trial:

        def take() -> None:
            taken = trial.output()
            for table in taken.final:
                ends = table.column("window_end").cast(pa.int64()).to_pylist()
                rest = (table.column(name).to_pylist() for name in ("k", "n", "total"))
                finals.extend(zip(ends, *rest, strict=True))
            late.extend(value for table in taken.late for value in table.column("v").to_pylist())

        beat = -10 * SECOND
        for clock, step in enumerate(steps):
            if step.restart:
                trial.restart()
            rows = [(second, group, len(given) + place) for place, (second, group) in enumerate(step.rows)]
            given += rows
            beat = max(beat, step.heartbeat * SECOND)
            table = pa.table(
                {
                    "ts": pa.array([second * SECOND for second, *_ in rows], pa.timestamp("us", "UTC")),
                    "k": pa.array([group for _, group, _ in rows], pa.string()),
                    "v": pa.array([value for *_, value in rows], pa.int64()),
                }
            )
            trial.round({"s": table} if rows else {}, clock * SECOND, {"s": beat})
            if step.prod:
                trial.prod("q")
            take()
            if window.range == window.slide:
                # An early answer has every row that has gone through, and none that waits.
                held = trial.state()["q_queue"]["state_rows"]
                early = sum(sum(early.column("n").to_pylist()) for early in _early(trial))
                assert early + sum(n for *_, n, _ in finals) == len(given) - len(late) - held
        trial.end(len(steps) * SECOND)
        take()
    in_time = [row for row in given if row[2] not in late]
    assert {(end, group): (n, total) for end, group, n, total in finals} == batch(in_time, window)
    assert len(finals) == len({(end, group) for end, group, *_ in finals}), "each once"


def _early(trial: Trial) -> tuple[pa.Table, ...]:
    trial.prod("q")
    return trial.output().early


def rounds_of_finals(
    executor: DuckDBExecutor, counts: list[int], room: int, window: Window, sideline: Sideline | None
) -> dict[int, tuple[int, int]]:
    """By the end of a window: its count, and the round of its final answer, where each round is a second."""
    finals: dict[int, tuple[int, int]] = {}
    with trial_of(program(window, room, sideline), duckdb_executor=executor) as trial:
        for second in range(len(counts) + sum(counts) // room + 2):
            times = [second * SECOND + place for place in range(counts[second] if second < len(counts) else 0)]
            table = pa.table({"ts": pa.array(times, pa.timestamp("us", "UTC"))})
            table = table.append_column("k", pa.array(["a"] * len(times), pa.string()))
            table = table.append_column("v", pa.array(times, pa.int64()))
            over = (min(second, len(counts)) + 1) * SECOND
            trial.round({"s": table} if times else {}, (second + 1) * SECOND, {"s": over - 1})
        trial.end((len(counts) + sum(counts) + 4) * SECOND)
        for one in trial.output().final:
            ends = one.column("window_end").cast(pa.int64()).to_pylist()
            finals |= dict(
                zip(ends, zip(*(one.column(c).to_pylist() for c in ("n", "round")), strict=True), strict=True)
            )
    return finals


@settings(max_examples=10)
@given(
    st.lists(st.one_of(st.integers(0, 4), st.integers(5, 20)), min_size=2, max_size=10),
    st.integers(2, 5),
    st.builds(Sideline, st.none() | st.integers(1, 3), st.none() | st.just(3 * SECOND)),
    st.sampled_from([Window(SECOND), Window(3 * SECOND, SECOND), Window(2 * SECOND), Window(3 * SECOND, 2 * SECOND)]),
)
def test_a_window_without_a_burst_is_never_later_because_bursts_are_set_aside(
    duckdb_executor: DuckDBExecutor, counts: list[int], room: int, sideline: Sideline, window: Window
) -> None:
    """A burst is a pane with more rows than go in its length; windows that are merely behind one wait no longer."""
    waiting = rounds_of_finals(duckdb_executor, counts, room, window, None)
    aside = rounds_of_finals(duckdb_executor, counts, room, window, sideline)
    assert {end: n for end, (n, _) in aside.items()} == {end: n for end, (n, _) in waiting.items()}
    panes = Counter[int]()
    for second, count in enumerate(counts):
        panes[window.pane_of(second * SECOND)] += count
    bursts = [pane for pane, count in panes.items() if count * SECOND > room * window.pane]
    holding = {start + window.range for pane in bursts for start in window.starts_covering(pane)}
    later = {end for end, (_, number) in aside.items() if number > waiting[end][1]}
    assert later <= holding


def test_queues_are_refused_where_they_could_not_work() -> None:
    windowed = Query("q", "s", Window(10), named_as(n="count(*)"))
    same = Query("q", "s", SameWindow(), named_as(n="count(*)"))
    with pytest.raises(DeclarationError, match="it needs no queue"):
        queued(same, ("s",), "q_queue")
    counted = Query("q", "s", RowWindow(10), named_as(n="count(*)"))
    with pytest.raises(DeclarationError, match="only windows of time can be set aside"):
        queued(counted, ("s",), "q_queue", sideline=Sideline())
    revised = Query("q", "s", Window(10), named_as(n="count(*)"), retain=10)
    with pytest.raises(DeclarationError, match="windows that are revised"):
        queued(revised, ("s",), "q_queue", sideline=Sideline())
    assert queued(revised, ("s",), "q_queue")[1].stream == "q_queue"
    with pytest.raises(DeclarationError, match="no row would go through"):
        queued(windowed, ("s",), "q_queue", room=0)
