"""What the benchmarks of scheduling measure is what they say, on a few rows. Times are not tested."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from benchmarks import gigascope, idle_waiting, operator_heartbeats
from benchmarks.idle_waiting_records import PASSING, lines, play
from benchmarks.virtual_time import SECOND, Held, Played
from eventide.eventtime.scheduling.labels import HeartbeatScope
from eventide.eventtime.scheduling.options import IdlePolling


@pytest.mark.slow
def test_on_demand_waits_as_little_as_latent_timestamps_and_without_any_the_union_waits_to_the_end(
    tmp_path: Path,
) -> None:
    found = idle_waiting.virtual(0.5, (), tmp_path)
    assert sum(found["C"].waits) == sum(found["D"].waits) == 0
    assert found["C"].waiting_share == found["D"].waiting_share == 0
    assert found["C"].peak_rows == 1
    told = len(found["A"].waits)
    assert 10 < told == len(found["C"].waits)
    assert found["A"].peak_rows == told + 1
    assert found["A"].latency(1.0) > 100 > found["C"].latency(1.0) == 1.0
    numbers = idle_waiting.report(found)
    assert numbers["c_over_d"] == 1.0
    assert numbers["a_over_c"] > 1


def test_row_by_row_timestamps_on_demand_let_every_row_go_and_without_any_the_union_waits_for_the_slow_stream() -> None:
    rows = idle_waiting.poisson(30.0, seed=3)
    last_slow = max(clock for clock, name, _ in rows if name == "slow")
    passing = [row for row in rows if row[2] < PASSING]
    without, injected, on_demand, latent = (play(line, rows) for line in lines((10.0,)))
    assert on_demand.rows == latent.rows == len(passing)
    assert without.rows == sum(clock <= last_slow for clock, *_ in passing)
    # In A a row waits for the slow one behind it, in B for a tenth of a second at most, by the clock of arrivals.
    next_slow = [min((c for c, n, _ in rows if n == "slow" and c >= clock), default=0) for clock, *_ in passing]
    waits = [after - clock for (clock, *_), after in zip(passing, next_slow, strict=True) if after]
    assert without.latency_ms >= sum(waits) / len(waits) / 1000
    assert injected.latency_ms >= 20
    assert without.peak_rows > 20 * injected.peak_rows > 0
    assert without.waiting_share > 0.9 > 0.5 > on_demand.waiting_share


def test_arrivals_are_poisson_at_both_rates() -> None:
    rows = idle_waiting.poisson(2_000.0, seed=1)
    counts = {name: sum(one[1] == name for one in rows) for name in ("fast", "slow")}
    assert 98_000 < counts["fast"] < 102_000
    assert 60 < counts["slow"] < 140
    assert all(before < after for (before, *_), (after, *_) in itertools.pairwise(rows))


@pytest.mark.slow
def test_memory_of_a_merge_grows_with_the_interval_and_on_demand_needs_no_more_than_the_shortest(
    tmp_path: Path,
) -> None:
    size = gigascope.Size(rate=20, flows=5, seconds=13, round=SECOND)
    peaks = [
        gigascope.peak(gigascope.merge_query(), size, asking, tmp_path / str(number))
        for number, asking in enumerate(
            (IdlePolling.every(12 * SECOND), IdlePolling.every(2 * SECOND), IdlePolling.on_demand())
        )
    ]
    assert peaks[0] > 2 * peaks[1] >= 2 * peaks[2] > 0


def test_the_full_outer_join_of_flows_is_told_in_the_benchmark(tmp_path: Path) -> None:
    size = gigascope.Size(rate=10, flows=5, seconds=4, round=SECOND)
    assert gigascope.peak(gigascope.join_query(), size, IdlePolling.on_demand(), tmp_path) > 0


@pytest.mark.slow
def test_memory_aware_heartbeats_hold_back_a_join_that_proliferates_and_the_results_are_the_same(
    tmp_path: Path,
) -> None:
    case = operator_heartbeats.Case(keys=3, rate=32, behind=1, seconds=2)
    found = operator_heartbeats.run(case, tmp_path)
    answers = [operator_heartbeats.rows_told(played) for played in found.values()]
    assert answers[0] == answers[1] == answers[2] != []
    assert found[HeartbeatScope.MEMORY].peak_rows < found[HeartbeatScope.OPERATOR].peak_rows


def test_the_share_of_waiting_is_that_of_the_clock() -> None:
    played = Played(held=[Held(0, 0, 0), Held(10, 3, 9), Held(30, 0, 0)], until=40)
    assert (played.waiting_share, played.peak_rows, played.peak_bytes) == (0.5, 3, 9)
