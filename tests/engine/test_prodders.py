"""Queries that declare prods: no final answer changes, whatever fails; silence does not keep early answers back."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.eventtime.early.prod import Prod
from eventide.eventtime.early.triggers import Earliness
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Prods, Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import RowWindow, SameWindow, Window
from eventide.sinks.sink import Memory
from tests.engine.level_scenarios import Plan, brute_force, in_order, plans, played
from tests.engine.scenarios import trial_of

SECOND = 1_000_000
STREAM = Stream("s", columns("ts TIMESTAMP, k STRING, v INT"), time="ts", policy=FixedDelay(2 * SECOND))
SUMS = Query("sums", "s", Window(10 * SECOND), named_as(total="sum(v)", n="count(*)"), named_as("k"))
EVERY, HALF, WITHIN = Prods(every=SECOND), Prods(points=(0.5,), estimate=True), Prods(within=Earliness(0.1, first=0.5))
ROWS = Prods(every_rows=3)


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(plan=plans(), prods=st.sampled_from([Prods(every=5), ROWS, Prods(points=(0.3, 1.0), estimate=True), WITHIN]))
def test_declared_prods_change_no_final_answer(duckdb_executor: DuckDBExecutor, plan: Plan, prods: Prods) -> None:
    over_rows = any(isinstance(question.window, RowWindow) for question in plan.levels)
    prods = Prods(every=5) if over_rows and prods != ROWS else prods
    prodded = replace(plan.program, queries=tuple(replace(q, prods=prods) for q in plan.program.queries))
    with trial_of(prodded, duckdb_executor=duckdb_executor) as trial:
        assert in_order(plan, played(plan, trial)) == in_order(plan, brute_force(plan)[0])


def rows(*given: tuple[float, str, int]) -> dict[str, pa.Table]:
    stamps = pa.array([round(t * SECOND) for t, _, _ in given]).cast(pa.timestamp("us", "UTC"))
    return {
        "s": pa.table({"ts": stamps, "k": [k for _, k, _ in given], "v": pa.array([v for *_, v in given], pa.int32())})
    }


def engine(folder: Path, prods: Prods, sink: Memory, **given: Any) -> Engine:
    most = Query("most", "sums", SameWindow(), named_as(most="max(total)"), prods=prods)
    program = Program((STREAM,), (replace(SUMS, prods=prods), most))
    return Engine(program, LocalBackend(), str(folder), {"sums": sink, "most": sink}, **given)


STORY: list[tuple[float, dict[str, pa.Table]]] = [
    (3.0, rows((1, "a", 1), (2, "b", 2))),
    (6.0, rows((5, "a", 4))),
    (8.0, rows((7, "a", 8), (7.5, "b", 16))),
    (13.0, rows((12, "a", 32), (9, "b", 64))),
    (17.0, rows((16, "b", 5), (11, "a", 5))),
    (24.0, rows((23, "a", 7))),
]


def told(sink: Memory) -> list[dict[str, Any]]:
    return sorted((row for query in ("sums", "most") for row in sink.rows(query)), key=repr)


@pytest.mark.parametrize("prods", [EVERY, HALF, WITHIN, ROWS], ids=["every", "half", "within", "rows"])
@pytest.mark.parametrize("dies_after", ["advance", "prod", "emit"])
def test_a_round_that_dies_is_told_again_as_it_was(tmp_path: Path, prods: Prods, dies_after: str) -> None:
    calm = Memory()
    unhurt = engine(tmp_path / "calm", prods, calm)
    for clock, batch in STORY:
        unhurt.round(batch, round(clock * SECOND))
    unhurt.close()

    deaths = iter([2, 4])
    dying = {"at": next(deaths)}

    def die(number: int, step: str) -> None:
        if step == dies_after and number == dying["at"]:
            dying["at"] = next(deaths, -1)
            raise RuntimeError("dead")

    hurt = Memory()
    running = engine(tmp_path / "hurt", prods, hurt, observer=die)
    for clock, batch in STORY:
        try:
            running.round(batch, round(clock * SECOND))
        except RuntimeError:
            running.round(batch, round(clock * SECOND))
    running.close()
    assert dying["at"] == -1
    assert told(hurt) == told(calm)
    assert any(row["kind"] == "early" for row in told(calm))


def test_a_silent_stream_is_prodded_when_its_window_comes_to_the_point(tmp_path: Path) -> None:
    sink = Memory()
    running = engine(tmp_path, HALF, sink)
    running.round(rows((1, "a", 1)), 2 * SECOND)
    assert running.tick(4 * SECOND) is None
    assert running.tick(5 * SECOND) is not None
    assert [(row["kind"], row["total"], row["point"]) for row in sink.rows("sums")] == [("early", 1, 0.5)]
    assert [row["most"] for row in sink.rows("most")] == [1]
    assert running.tick(6 * SECOND) is None
    running.close()


def test_the_clock_does_not_ask_twice_for_what_has_not_changed(tmp_path: Path) -> None:
    sink = Memory()
    running = engine(tmp_path, EVERY, sink)
    running.round(rows((1, "a", 1)), round(2.5 * SECOND))
    assert running.tick(4 * SECOND) is None
    running.round(rows((3, "a", 1)), round(4.2 * SECOND))
    running.close()
    assert [row["total"] for row in sink.rows("sums")] == [1, 2]


def test_whoever_asks_between_rounds_is_scored_too(tmp_path: Path) -> None:
    running = Engine(Program((STREAM,), (SUMS,)), LocalBackend(), str(tmp_path))
    running.round(rows((1, "a", 10), (3, "b", 10)), 4 * SECOND)
    early = running.prod("sums", Prod(groups={"k": "a"}))
    assert early.table().column("total").to_pylist() == [10]
    running.round(rows((6, "a", 30), (13, "a", 1)), 14 * SECOND)
    summary = running.early.states["sums"].accuracy.summary()
    assert (summary.windows, summary.worst) == (1, 0.75)
    assert summary.gain == 10 * SECOND
    [status] = running.status().queries
    assert status.early is not None
    assert status.early["error"] == 0.75
    running.close()


@pytest.mark.parametrize("later", [WITHIN, EVERY, None], ids=["within", "every", "none"])
def test_prods_may_change_from_one_start_to_the_next(tmp_path: Path, later: Prods | None) -> None:
    sink = Memory()
    for prods, part in ((HALF, STORY[:3]), (later, STORY[3:])):
        program = Program((STREAM,), (replace(SUMS, prods=prods),))
        running = Engine(program, LocalBackend(), str(tmp_path), {"sums": sink})
        for clock, batch in part:
            running.round(batch, round(clock * SECOND))
        running.close()
    final = {(row["window_end"].second, row["k"]): row["total"] for row in sink.rows("sums") if row["kind"] == "final"}
    assert final == {(10, "a"): 13, (10, "b"): 82, (20, "a"): 37, (20, "b"): 5}


def test_groups_alone_and_groups_of_any_type_can_be_prodded(tmp_path: Path) -> None:
    """SELECT DISTINCT has no values to score; arrays cannot be compared as columns."""
    whole = Query("whole", "s", Window(10 * SECOND), (), named_as(pair="array(k, k)"), prods=HALF)
    sink = Memory()
    running = Engine(Program((STREAM,), (whole,)), LocalBackend(), str(tmp_path), {"whole": sink})
    for clock, batch in STORY:
        running.round(batch, round(clock * SECOND))
    running.close()
    kinds = [row["kind"] for row in sink.rows("whole")]
    assert kinds.count("early") >= 2
    state = running.early.states["whole"].accuracy.summary()
    assert (state.error, state.vanished) == (0.0, 0)
