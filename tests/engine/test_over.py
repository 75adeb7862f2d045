"""Window functions: as brute force says, however rows are cut into rounds, through restarts, wherever state is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.operators import over as over_operator
from eventide.engine.operators.placement import DRIVER_MEMORY
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.plan.declared.over import Over, named_as
from eventide.plan.declared.program import Program
from eventide.plan.declared.stream import Stream, columns
from eventide.testing.trial import Trial
from tests.engine.scenarios import agree, trial_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STREAM = Stream("s", columns("t BIGINT, k STRING, v INT"), time="t", policy=Punctuated())
WIDTH = 5

Row = tuple[int, "str | None", "int | None"]
Value = Callable[[list[Row], int], Any]
"""What a function says of a row: all rows of its group up to the end of time, in order, and its place among them."""


def _values(rows: list[Row]) -> list[int]:
    return [row[2] for row in rows if row[2] is not None]


def _sum(rows: list[Row]) -> int | None:
    return sum(_values(rows)) if _values(rows) else None


def _rows(back: int, ahead: int = 0) -> Callable[[list[Row], int], list[Row]]:
    return lambda group, i: group[max(0, i - back) : i + ahead + 1]


def _range(back: float, ahead: int = 0) -> Callable[[list[Row], int], list[Row]]:
    return lambda group, i: [row for row in group if group[i][0] - back <= row[0] <= group[i][0] + ahead]


ALWAYS = float("inf")
BY_K = "OVER (PARTITION BY k ORDER BY t"
IN_TIME: dict[str, tuple[str, Value]] = {
    "n": (f"row_number() {BY_K})", lambda g, i: i + 1),
    "within": (
        f"row_number() {BY_K} RANGE BETWEEN 4 PRECEDING AND CURRENT ROW)",
        lambda g, i: sum(row[0] >= g[i][0] - 4 for row in g[: i + 1]),
    ),
    "before": (f"lag(v, 2, -1) {BY_K})", lambda g, i: g[i - 2][2] if i > 1 else -1),
    "total": (f"sum(v) {BY_K})", lambda g, i: _sum(_range(ALWAYS)(g, i))),
    "least": (f"min(v) {BY_K} ROWS UNBOUNDED PRECEDING)", lambda g, i: min(_values(g[: i + 1]), default=None)),
    "mean": (
        f"avg(v) {BY_K} ROWS 2 PRECEDING)",
        lambda g, i: sum(x) / len(x) if (x := _values(_rows(2)(g, i))) else None,
    ),
    "near": (
        f"count(v) {BY_K} RANGE BETWEEN 6 PRECEDING AND 1 PRECEDING)",
        lambda g, i: len(_values([row for row in _range(6)(g, i) if row[0] < g[i][0]])),
    ),
    "last": (
        f"last_value(v, true) {BY_K} RANGE BETWEEN 6 PRECEDING AND CURRENT ROW)",
        lambda g, i: max(((row[0], row[2]) for row in _range(6)(g, i) if row[2] is not None), default=(0, None))[1],
    ),
}
AHEAD: dict[str, tuple[str, Value]] = {
    "after": (f"lead(v) {BY_K})", lambda g, i: g[i + 1][2] if i + 1 < len(g) else None),
    "around": (
        f"sum(v) {BY_K} RANGE BETWEEN 3 PRECEDING AND 4 FOLLOWING)",
        lambda g, i: _sum(_range(3, 4)(g, i)),
    ),
    "middle": (f"count(*) {BY_K} ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING)", lambda g, i: len(_rows(1, 2)(g, i))),
    "so_far": (f"count(*) {BY_K})", lambda g, i: len(_range(ALWAYS)(g, i))),
}
FOLLOWING: dict[str, tuple[str, Value]] = {"around": AHEAD["around"]}
BY_STRETCH = f"OVER (PARTITION BY floor(t / {WIDTH}), k ORDER BY v DESC"
WHOLE: dict[str, tuple[str, Value]] = {
    "place": (f"row_number() {BY_STRETCH})", lambda g, i: sorted(g, key=_by_value).index(g[i]) + 1),
    "rank": (f"rank() {BY_STRETCH})", lambda g, i: 1 + sum(_down(row) < _down(g[i]) for row in g)),
    "dense": (f"dense_rank() {BY_STRETCH})", lambda g, i: len({_down(row) for row in g if _down(row) <= _down(g[i])})),
    "share": (f"sum(v) OVER (PARTITION BY floor(t / {WIDTH}), k)", lambda g, i: _sum(g)),
    "next": (
        f"lead(v) {BY_STRETCH})",
        lambda g, i: _next(sorted(g, key=_by_value), g[i]),
    ),
}
"""Rows are different from each other here: of equal ones, each has a place of its own."""


def _next(group: list[Row], row: Row) -> int | None:
    place = group.index(row) + 1
    return group[place][2] if place < len(group) else None


def _down(row: Row) -> tuple[bool, int]:
    return (row[2] is None, -(row[2] or 0))


def _by_value(row: Row) -> tuple[object, ...]:
    return (_down(row), *_total(row))


def _total(row: Row) -> tuple[object, ...]:
    return (row[0], row[1] is not None, row[1] or "", row[2] is not None, row[2] or 0)


@dataclass(frozen=True)
class Scenario:
    """For each round the rows, how far the heartbeat goes, and whether the engine is restarted before."""

    rounds: tuple[tuple[tuple[Row, ...], int | None, bool], ...]


@st.composite
def scenarios(draw: st.DrawFn, rounds: int = 5) -> Scenario:
    """Few times, groups and values, so that rows are simultaneous, late and on the edges of frames."""
    row = st.tuples(st.integers(-6, 30), st.sampled_from(["a", "b", None]), st.none() | st.integers(0, 3))
    beat, found, seen = -8, [], set[Row]()
    for _ in range(draw(st.integers(1, rounds))):
        brought = tuple(one for one in draw(st.lists(row, max_size=6, unique=True)) if one not in seen)
        seen.update(brought)
        step = draw(st.none() | st.integers(0, 14))
        beat += step or 0
        found.append((brought, None if step is None else beat, draw(st.integers(0, 3)) == 0))
    return Scenario(tuple(found))


Outcome = tuple[list[tuple[object, ...]], list[Row]]
"""Of a round: rows with their values, and those that are late."""


def brute_force(
    scenario: Scenario, asked: dict[str, tuple[str, Value]], ahead: tuple[int, int], width: int = 1
) -> list[Outcome]:
    """Row by row. `ahead`: how many rows, and how much time, a row waits for; groups lie in stretches of `width`."""
    passed = beat = NEVER
    every: list[Row] = []
    told: set[Row] = set()
    found: list[Outcome] = []
    rounds: list[tuple[tuple[Row, ...], int | None]] = [(rows, to) for rows, to, _ in scenario.rounds]
    for rows, to in [*rounds, ((), FOREVER)]:
        late = [row for row in rows if passed != NEVER and row[0] <= passed]
        every += [row for row in rows if row not in late]
        beat = max(beat, NEVER if to is None else to)
        passed = beat if beat in (NEVER, FOREVER) else max(passed, (beat + 1) // width * width - 1)
        there = sorted((row for row in every if row[0] <= passed), key=_total)
        groups: dict[object, list[Row]] = {}
        for row in there:
            groups.setdefault((row[1], row[0] // width if width > 1 else 0), []).append(row)
        answers = []
        for group in groups.values():
            for i, row in enumerate(group):
                enough = len(group) - 1 - i >= ahead[0] and row[0] + ahead[1] <= passed
                if row not in told and (enough or passed == FOREVER):
                    told.add(row)
                    answers.append((*row, *(value(group, i) for _, value in asked.values())))
        found.append((sorted(answers, key=repr), sorted(late, key=repr)))
    return found


def played(scenario: Scenario, trial: Trial, asked: dict[str, tuple[str, Value]]) -> list[Outcome]:
    """What the engine makes of it."""
    found = []
    for rows, to, restart in scenario.rounds:
        if restart:
            trial.restart()
        t, k, v = zip(*rows, strict=True) if rows else ((), (), ())
        table = pa.table({"t": pa.array(t, pa.int64()), "k": pa.array(k, pa.string()), "v": pa.array(v, pa.int32())})
        trial.round({"s": table} if rows else {}, clock=0, heartbeats={} if to is None else {"s": to})
        found.append(_outcome(trial, asked))
    trial.end(clock=0)
    return [*found, _outcome(trial, asked)]


def _outcome(trial: Trial, asked: dict[str, tuple[str, Value]]) -> Outcome:
    output = trial.output()
    rows = [row for table in output.final for row in table.to_pylist()]
    assert [row["t"] for row in rows] == sorted(row["t"] for row in rows)
    answers = [tuple(row[name] for name in ("t", "k", "v", *asked)) for row in rows]
    late = [(row["t"], row["k"], row["v"]) for table in output.late for row in table.to_pylist()]
    return sorted(answers, key=repr), sorted(late, key=repr)


def program_of(asked: dict[str, tuple[str, Value]]) -> Program:
    return Program((STREAM,), (), (Over("o", ("s",), values=named_as(**{n: sql for n, (sql, _) in asked.items()})),))


KINDS = {
    "in time": (IN_TIME, (0, 0), 1),
    "ahead": (AHEAD, (2, 4), 1),
    "following": (FOLLOWING, (0, 4), 1),
    "whole": (WHOLE, (0, 0), WIDTH),
}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=12, suppress_health_check=list(HealthCheck))
@given(scenario=scenarios())
def test_local_engine_computes_window_functions_as_brute_force_does(
    duckdb_executor: DuckDBExecutor, monkeypatch: pytest.MonkeyPatch, kind: str, scenario: Scenario
) -> None:
    # Rows out of reach go at once, or hardly ever.
    monkeypatch.setattr(over_operator, "FEW", len(scenario.rounds) % 2 * 1000)
    asked, ahead, width = KINDS[kind]
    with trial_of(program_of(asked), duckdb_executor=duckdb_executor) as trial:
        agree(played(scenario, trial, asked), brute_force(scenario, asked, ahead, width))


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["in time", "ahead", "whole"])
@settings(max_examples=2, phases=(Phase.explicit, Phase.generate), suppress_health_check=list(HealthCheck))
@given(scenario=scenarios(rounds=3), on_the_cluster=st.booleans())
def test_spark_engine_computes_window_functions_as_brute_force_does(
    spark: SparkSession, kind: str, scenario: Scenario, on_the_cluster: bool
) -> None:
    asked, ahead, width = KINDS[kind]
    driver_memory = 0 if on_the_cluster else DRIVER_MEMORY
    with trial_of(program_of(asked), "spark", spark, driver_memory=driver_memory) as trial:
        agree(played(scenario, trial, asked), brute_force(scenario, asked, ahead, width))


def test_what_no_frame_reaches_is_let_go(duckdb_executor: DuckDBExecutor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_operator, "FEW", 0)
    asked = {name: IN_TIME[name] for name in ("before", "total")}
    with trial_of(program_of(asked), duckdb_executor=duckdb_executor) as trial:
        for number in range(60):
            rows = pa.table({"t": [number, number], "k": ["a", "b"], "v": pa.array([1, 1], pa.int32())})
            trial.round({"s": rows}, clock=0, heartbeats={"s": number})
        # Two rows of each of the two groups, and as many again.
        assert trial._engine.state.operators["o"].state["past"].rows <= 10
        trial.end(clock=0)
        assert trial.output().final[-1].column("total").to_pylist()[-1] == 60
