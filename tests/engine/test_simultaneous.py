"""Rows in the order of time alone, against a merge by hand: a row waits only until no earlier one can come."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings

from eventide.duckdb.executor import DuckDBExecutor
from eventide.eventtime.instant import NEVER
from eventide.plan.declared.program import Program
from eventide.plan.declared.rows import Rows
from tests.engine.merge_scenarios import Row, Scenario, scenarios
from tests.engine.scenarios import trial_of


def by_hand(scenario: Scenario) -> list[tuple[list[Row], int]]:
    """For each round the rows that go, by time, and how many are late."""
    beats = [NEVER] * scenario.streams
    waiting: list[Row] = []
    found = []
    for brought, given_beats, _ in scenario.rounds:
        least = min(beats)
        rows = [row for part in brought for row in part]
        waiting += [row for row in rows if row[0] > least]
        late = sum(row[0] <= least for row in rows)
        beats = [max(one, new) if new is not None else one for one, new in zip(beats, given_beats, strict=True)]
        ready = NEVER if min(beats) == NEVER else min(beats) + 1
        found.append((sorted(row for row in waiting if row[0] <= ready), late))
        waiting = [row for row in waiting if row[0] > ready]
    return found


@settings(max_examples=15, suppress_health_check=[HealthCheck.too_slow])
@given(scenario=scenarios())
def test_a_merge_in_the_order_of_time_alone_is_the_one_by_hand(
    duckdb_executor: DuckDBExecutor, scenario: Scenario
) -> None:
    merge = Rows("told", scenario.names, simultaneous=True)
    program = Program(scenario.program.streams, (), (merge,))
    last = NEVER
    with trial_of(program, duckdb_executor=duckdb_executor) as trial:
        for (brought, beats, restart), (rows, late) in zip(scenario.rounds, by_hand(scenario), strict=True):
            if restart:
                trial.restart()
            batch = {
                name: pa.table(
                    {"t": pa.array([t for t, _ in part], pa.int64()), "v": pa.array([v for _, v in part], pa.int32())}
                )
                for name, part in zip(scenario.names, brought, strict=True)
                if part
            }
            given_beats = {n: b for n, b in zip(scenario.names, beats, strict=True) if b is not None}
            trial.round(batch, clock=0, heartbeats=given_beats)
            output = trial.output()
            found = [(row["t"], row["v"]) for table in output.final for row in table.to_pylist()]
            assert found == rows
            assert sum(table.num_rows for table in output.late) == late
            assert all(time >= last for time, _ in found), "a row came after a later one"
            last = max([last, *(time for time, _ in found)])


def test_no_order_at_all_is_not_an_order_of_time() -> None:
    with pytest.raises(Exception, match="has no order of time at all"):
        Rows("told", ("a",), ordered=False, simultaneous=True)
