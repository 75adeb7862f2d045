"""What a frontier promises holds for every later row: of streams, queries, merges and joins, one above the other."""

from __future__ import annotations

import tempfile

import pyarrow as pa
from hypothesis import HealthCheck, given, settings

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.local.backend import LocalBackend
from eventide.engine.operators.frontier import OperatorFrontier
from eventide.engine.round.engine import Engine
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.plan.declared.join import Band, Join, JoinKind, Side
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import RowWindow, SameWindow, Window
from eventide.results.results import Results
from tests.engine.merge_scenarios import Scenario, scenarios


def program(names: tuple[str, ...]) -> Program:
    streams = tuple(Stream(n, columns("t BIGINT, v INT"), time="t", policy=Punctuated()) for n in names)
    count = named_as(n="count(*)")
    tens = Query("tens", "s0", Window(10), count, named_as(ten="t div 10"))
    return Program(
        streams,
        (
            tens,
            Query("sliding", "s1", Window(20, 5), count, named_as(five="t div 5")),
            Query("again", "tens", SameWindow(), count, named_as("ten")),
            Query("wide", "tens", Window(20), count, named_as(hundred="ten div 10", ends="window_end div 10")),
            Query("by_rows", "all", RowWindow(2), count),
        ),
        (
            Rows("all", names),
            Rows("tenths", names, named_as(ten="t div 10", n="CAST(v AS BIGINT)")),
            Rows("mixed", ("tens", "tenths"), named_as("ten", "n"), ordered=False),
            Rows("spans", ("sliding", "wide"), named_as(first="window_start", last="window_end")),
            Join(
                "met",
                Side("tenths", "l"),
                Side("tens", "r"),
                (Band("ten", "ten"),),
                JoinKind.FULL,
                select=named_as(ten="l.ten", other="r.ten + 1"),
            ),
            Join("near", Side("s0"), Side("met"), (Band("t div 10", "other", -1, 1),), select=named_as(t="s0.t")),
        ),
    )


def keeps(promised: OperatorFrontier, results: Results) -> None:
    for row in results.table().to_pylist():
        assert row["window_end"] - 1 > promised.time, (promised, row)
        for name, least in promised.least.items():
            assert row[name] is None or row[name] >= least, (promised, name, row)


@settings(max_examples=8, suppress_health_check=[HealthCheck.too_slow])
@given(scenario=scenarios(rounds=5))
def test_later_rows_keep_what_was_promised(duckdb_executor: DuckDBExecutor, scenario: Scenario) -> None:
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(program(scenario.names), LocalBackend(duckdb_executor), folder, {})
        promised: dict[str, OperatorFrontier] = {}
        for brought, given_beats, _ in scenario.rounds:
            rows = {
                name: pa.table({"t": [t for t, _ in part], "v": pa.array([v for _, v in part], pa.int32())})
                for name, part in zip(scenario.names, brought, strict=True)
            }
            beats = {name: beat for name, beat in zip(scenario.names, given_beats, strict=True) if beat is not None}
            done = engine.round(rows, clock=0, heartbeats=beats)
            for name, results in done.results.items():
                keeps(promised.get(name, OperatorFrontier()), results)
            now = {name: operator.frontier for name, operator in engine.state.operators.items()}
            assert all(promised[name].time <= now[name].time for name in promised)
            promised = now
        for name, results in engine.end(clock=0).results.items():
            keeps(promised.get(name, OperatorFrontier()), results)
        engine.close()
