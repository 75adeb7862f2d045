"""Aggregates without a window are as brute force finds them: in any order, any rounds and places, through restarts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.errors import DeclarationError
from eventide.eventtime.instant import EDGE, FOREVER, NEVER
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import LONGEST_GAP, LifeWindow, Window
from eventide.testing.trial import Trial, TrialOutput
from tests.engine.scenarios import trial_of

Row = tuple[int, str | None, int]
"""Time, group and value."""
Shown = tuple[int, int, str | None, int, int, float]
"""Start and end of a life, its group, and its values."""

VALUES = {"sums": "sum(v)", "kept": "percentile(v, 0.5)"}
"""An aggregate of partials, and one that keeps rows."""


def program_of(ttl: int, grouped: bool, value: str = "sums") -> Program:
    groups = named_as("k") if grouped else ()
    asked = named_as(n="count(*)", v=VALUES[value])
    stream = Stream("s", columns("t BIGINT, k STRING, v INT"), time="t", policy=Punctuated())
    return Program((stream,), (Query("q", "s", LifeWindow(ttl), asked, groups, changes=True),))


def table_of(rows: Iterable[Row]) -> pa.Table:
    time, group, value = zip(*rows, strict=True) if (rows := list(rows)) else ((), (), ())
    return pa.table(
        {"t": pa.array(time, pa.int64()), "k": pa.array(group, pa.string()), "v": pa.array(value, pa.int32())}
    )


def shown(tables: Iterable[pa.Table]) -> list[Shown]:
    rows = [row for table in tables for row in table.to_pylist()]
    return [(r["window_start"], r["window_end"], r.get("k"), r["rows"], r["n"], float(r["v"])) for r in rows]


@dataclass
class Oracle:
    """Lives of groups, found by looking at all rows again in every round."""

    ttl: int
    grouped: bool
    value: str
    held: dict[str | None, list[Row]] = field(default_factory=dict)
    passed: int = NEVER

    def round(self, rows: Sequence[Row], heartbeat: int) -> tuple[set[Shown], set[Shown], int]:
        """What a round gives: the lives that end, the values that changed, and how many rows are late."""
        before, self.passed = self.passed, max(self.passed, heartbeat)
        final, changed, late = set[Shown](), set[Shown](), 0
        new: dict[str | None, list[Row]] = {}
        for row in rows:
            new.setdefault(row[1] if self.grouped else None, []).append(row)
        for group in {*self.held, *new}:
            lives = self._lives([*self.held.get(group, []), *new.get(group, [])])
            late += sum(len(life) for life in lives if self._end(life) <= before)
            lives = [life for life in lives if self._end(life) > before]
            over = [life for life in lives if self._end(life) <= self.passed]
            alive = [life for life in lives if self._end(life) > self.passed]
            final |= {self._shown(group, life) for life in over}
            fresh = any(row is one for row in new.get(group, []) for life in lives for one in life)
            if alive and (over or fresh):
                changed.add(self._shown(group, alive[-1]))
            self.held[group] = [row for life in alive for row in life]
        return final, changed, late

    def _end(self, life: list[Row]) -> int:
        return EDGE if self.ttl == LONGEST_GAP else life[-1][0] + self.ttl

    def _lives(self, rows: list[Row]) -> list[list[Row]]:
        found: list[list[Row]] = []
        for row in sorted(rows, key=lambda row: row[0]):
            if found and row[0] <= self._end(found[-1]):
                found[-1].append(row)
            else:
                found.append([row])
        return found

    def _shown(self, group: str | None, life: list[Row]) -> Shown:
        values = sorted(value for *_, value in life)
        middle = (values[(len(values) - 1) // 2] + values[len(values) // 2]) / 2
        value = float(sum(values)) if self.value == "sums" else middle
        return life[0][0], self._end(life), group, len(life), len(life), value


@dataclass(frozen=True)
class Story:
    """Rounds of rows, each with the heartbeat after it, and the rounds before which the engine is restarted."""

    program: Program
    oracle: Oracle
    rounds: tuple[tuple[tuple[Row, ...], int], ...]
    restarts: frozenset[int]


@st.composite
def stories(draw: st.DrawFn) -> Story:
    ttl = draw(st.one_of(st.integers(1, 12), st.just(LONGEST_GAP)))
    grouped, value = draw(st.booleans()), draw(st.sampled_from(sorted(VALUES)))
    row = st.tuples(st.integers(-5, 40), st.sampled_from(["a", "b", None]), st.integers(-9, 9))
    rounds = draw(
        st.lists(st.tuples(st.lists(row, max_size=6).map(tuple), st.integers(-8, 45)), min_size=1, max_size=7)
    )
    restarts = draw(st.frozensets(st.integers(0, len(rounds) - 1), max_size=2))
    return Story(program_of(ttl, grouped, value), Oracle(ttl, grouped, value), tuple(rounds), restarts)


def played(story: Story, trial: Trial) -> Iterator[TrialOutput]:
    for number, (rows, heartbeat) in enumerate(story.rounds):
        if number in story.restarts:
            trial.restart()
        trial.round({"s": table_of(rows)}, number, {"s": heartbeat})
        yield trial.output()
    trial.end(len(story.rounds))
    yield trial.output()


def agree(story: Story, trial: Trial) -> None:
    for number, output in enumerate(played(story, trial)):
        last = number == len(story.rounds)
        final, changed, late = story.oracle.round(*(((), FOREVER) if last else story.rounds[number]))
        found = shown(output.final), shown(output.changed), sum(table.num_rows for table in output.late)
        assert (sorted(found[0], key=repr), sorted(found[1], key=repr)) == (
            sorted(final, key=repr),
            sorted(changed, key=repr),
        ), f"round {number}"
        assert found[2] == late, f"round {number}"


@settings(max_examples=36, suppress_health_check=[HealthCheck.too_slow])
@given(story=stories())
def test_values_that_change_are_as_brute_force_finds_them(duckdb_executor: DuckDBExecutor, story: Story) -> None:
    with trial_of(story.program, duckdb_executor=duckdb_executor) as trial:
        agree(story, trial)


@dataclass(frozen=True)
class Cut:
    """Rows in the order in which they come, and two ways to cut them into rounds."""

    ttl: int
    rows: tuple[Row, ...]
    cuts: tuple[frozenset[int], frozenset[int]]


@st.composite
def cuts(draw: st.DrawFn) -> Cut:
    row = st.tuples(st.integers(0, 30), st.sampled_from("ab"), st.integers(-9, 9))
    rows = tuple(draw(st.lists(row, min_size=1, max_size=14)))
    where = st.frozensets(st.integers(1, len(rows)), max_size=6)
    return Cut(draw(st.integers(1, 10)), rows, (draw(where), draw(where)))


def summed_up(cut: Cut, ends: frozenset[int], executor: DuckDBExecutor) -> tuple[list[Shown], dict[Any, Shown]]:
    """All final rows, and of each group the last row; heartbeats come as far as the rows that follow permit."""
    final: list[Shown] = []
    last: dict[Any, Shown] = {}
    with trial_of(program_of(cut.ttl, True), duckdb_executor=executor) as trial:
        first = 0
        for end in sorted({*ends, len(cut.rows)}):
            rest = [time for time, *_ in cut.rows[end:]]
            # What ends in the last round ends there in each way of cutting.
            beat = {"s": min(rest) - 1} if rest else {}
            trial.round({"s": table_of(cut.rows[first:end])}, end, beat)
            output, first = trial.output(), end
            assert not output.late
            final += shown(output.final)
            last |= {row[2]: row for row in (*shown(output.final), *shown(output.changed))}
        trial.end(99)
        final += shown(trial.output().final)
    return sorted(final, key=repr), last


@settings(max_examples=18, suppress_health_check=[HealthCheck.too_slow])
@given(cut=cuts())
def test_final_rows_and_the_last_of_each_group_are_the_same_under_any_cut(
    duckdb_executor: DuckDBExecutor, cut: Cut
) -> None:
    one, other = (summed_up(cut, ends, duckdb_executor) for ends in cut.cuts)
    assert one == other


def test_state_goes_on_when_its_changes_are_to_be_shown_from_now_on(tmp_path: Path) -> None:
    shown_now = program_of(10, True)
    [query] = shown_now.queries
    with Trial(replace(shown_now, queries=(replace(query, changes=False),)), tmp_path) as trial:
        trial.round({"s": table_of([(1, "a", 1), (2, "b", 2)])}, 0, {"s": 0})
        assert trial.output().changed == ()
        trial.program = shown_now
        trial.restart()
        trial.output()
        trial.round({"s": table_of([(3, "a", 4)])}, 1, {"s": 0})
        assert shown(trial.output().changed) == [(1, 13, "a", 2, 2, 5.0)]


def test_what_is_forgotten_takes_no_room(tmp_path: Path) -> None:
    with Trial(program_of(10, True), tmp_path) as trial:
        trial.round({"s": table_of([(time, f"k{time}", 1) for time in range(100)])}, 0, {"s": 0})
        assert trial.state()["q"]["state_rows"] == 100
        trial.round({"s": table_of([])}, 1, {"s": 99})
        assert trial.state()["q"]["state_rows"] == 10


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "windows": ({"window": Window(10)}, "results of windows come when these are over"),
    "having": ({"having": "n > 1"}, "would stay as it was shown before"),
    "order": ({"limit": 1}, "nothing to choose from"),
    "retain": ({"retain": 5}, "STATE TTL says here how late a row may be"),
}


@pytest.mark.parametrize(("asked", "why"), REFUSED.values(), ids=REFUSED)
def test_what_does_not_go_with_changes_is_refused(asked: dict[str, Any], why: str) -> None:
    given: dict[str, Any] = {"window": LifeWindow(10), "select": named_as(n="count(*)"), "changes": True, **asked}
    with pytest.raises(DeclarationError, match=why):
        Query("q", "s", **given)


def test_who_reads_an_aggregate_that_lives_for_ever_is_refused() -> None:
    program = program_of(LONGEST_GAP, True)
    above = Query("above", "q", Window(10), named_as(n="sum(n)"))
    with pytest.raises(DeclarationError, match="lives for ever, so it has no final results"):
        Program(program.streams, (*program.queries, above))
