"""The two candidates of the drop ratio: what each loses, how long rows wait behind it, and when it is followed."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.policies.drop_ratio.budget import OVERDRAFT_ROWS, OVERDRAFT_SHARE, WARM_UP_ROWS, Budget
from eventide.eventtime.policies.drop_ratio.combined import Combined
from eventide.eventtime.policies.drop_ratio.lag_meter import LagMeter
from eventide.eventtime.policies.drop_ratio.policy import DropRatio, DropRatioGenerator
from eventide.profile.reading import Recording

SECOND = 1_000_000


def fed(recording: Recording, ratio: float = 0.01) -> DropRatioGenerator:
    """The generator after a whole recording, row by row."""
    generator = DropRatio(ratio).start()
    for clock, source, time in zip(recording.arrival.tolist(), recording.source, recording.time.tolist(), strict=True):
        generator.observe(Arrivals.of_row(clock, int(source), time))
        generator.heartbeats(clock)
    return generator


def alike(seed: int, rows: int = 4_000, sources: int = 50) -> Recording:
    """Sources that are alike and disordered within themselves: delays have nothing to do with the source."""
    rng = np.random.default_rng(seed)
    time = np.sort(rng.integers(0, rows * SECOND, rows))
    arrival = time + (rng.exponential(60, rows) * SECOND).astype(np.int64)
    order = np.argsort(arrival, kind="stable")
    return Recording.of("alike", time[order], arrival[order], rng.integers(0, sources, rows)[order])


def periodic(seed: int, rows: int, sources: int = 4) -> Recording:
    """Sources in order that speak every four seconds, each with delays of its own."""
    rng = np.random.default_rng(seed)
    time = np.arange(rows) * SECOND
    source = np.arange(rows) % sources
    arrival = time + source * 20 * SECOND + rng.integers(0, SECOND, rows)
    order = np.argsort(arrival, kind="stable")
    return Recording.of("periodic", time[order], arrival[order], source[order])


@given(st.lists(st.tuples(st.integers(1, 500), st.floats(0, 1)), min_size=1, max_size=60), st.floats(0.001, 0.2))
def test_a_budget_that_is_not_overdrawn_has_lost_no_more_than_the_stated_bound(
    rounds: list[tuple[int, float]], ratio: float
) -> None:
    budget = Budget(ratio)
    judged = lost = 0.0
    for rows, share in rounds:
        after_warm_up = not budget.warming_up
        budget.book(rows, share * rows)
        if after_warm_up:
            judged, lost = judged + rows, lost + share * rows
        if not budget.overdrawn and not budget.warming_up:
            bound = ratio * (judged + OVERDRAFT_ROWS + OVERDRAFT_SHARE * budget.judged_rows)
            assert lost <= bound + 1e-6


def test_what_the_warm_up_saved_is_not_spent_and_what_it_owed_beyond_its_credit_is_owed() -> None:
    thrifty, spent = Budget(0.01), Budget(0.01)
    thrifty.book(WARM_UP_ROWS, 0.0)
    spent.book(WARM_UP_ROWS, 100.0)
    assert (thrifty.balance, spent.balance) == (0.0, -40.0)


@pytest.mark.parametrize("rows", [50, 3_000])
def test_the_measured_lag_is_the_mean_wait_of_rows_of_equal_lag(rows: int) -> None:
    meter = LagMeter()
    for clock in range(rows):
        meter.observe(Arrivals.of_row(clock, 0, clock), NEVER)
        meter.release(clock, clock - 40)
    assert meter.mean(rows - 1) == pytest.approx(40, rel=0.5 if rows == 50 else 0.05)


def test_a_candidate_that_stalls_is_seen_to_stall_before_it_releases_anything() -> None:
    meter = LagMeter()
    for clock in range(1_000):
        meter.observe(Arrivals.of_row(clock, 0, clock), NEVER)
        meter.release(clock, min(clock, 500))
    assert meter.mean(1_000) > 100


def test_rows_at_or_below_the_heartbeat_do_not_count_as_waiting() -> None:
    meter = LagMeter()
    meter.observe(Arrivals.of_row(10, 0, 5), shown=5)
    assert meter.mean(clock=1_000) == 0


def test_all_sources_together_lose_the_permitted_share_of_exchangeable_rows() -> None:
    recording = alike(1)
    candidate, lost_before = Combined(0.05), 0.0
    largest = np.full(50, -(10**18))
    for clock, source, time in zip(recording.arrival.tolist(), recording.source, recording.time.tolist(), strict=True):
        largest[source] = max(largest[source], time)
        candidate.observe(Arrivals.of_row(clock, int(source), time), largest)
        candidate.lift(FOREVER)
        if candidate.budget.rows == WARM_UP_ROWS:
            lost_before = candidate.budget.lost
    judged = candidate.budget
    assert 0.5 <= (judged.lost - lost_before) / judged.judged_rows / 0.05 <= 1.1


def test_a_single_clock_that_is_set_forward_moves_no_time() -> None:
    candidate = Combined(0.01)
    largest = np.array([0, 0, 0])
    for clock in range(300):
        source = clock % 3
        largest[source] = clock + (10**9 if source == 2 and clock > 200 else 0)
        candidate.observe(Arrivals.of_row(clock, source, int(largest[source])), largest)
        candidate.lift(FOREVER)
    assert candidate.shown < 300
    assert candidate.budget.lost <= 1


@pytest.mark.slow
def test_no_source_loses_more_than_twice_the_permitted_share_to_the_common_slack() -> None:
    rng = np.random.default_rng(3)
    candidate = Combined(0.05)
    largest = np.array([0, 0, 0])
    for clock in range(12_000):
        # One source in ten rows, and half of its rows are late.
        source = int(rng.choice([0, 1, 2], p=[0.45, 0.45, 0.1]))
        time = clock - (int(rng.integers(0, 200)) if source == 2 and rng.random() < 0.5 else 0)
        largest[source] = max(largest[source], time)
        candidate.observe(Arrivals.of_row(clock, source, time), largest)
        candidate.lift(FOREVER)
    assert candidate.snapshot()["budget"]["lost"] > 0
    assert candidate._lost_by_source[2] / candidate._rows_by_source[2] <= 2 * 0.05 * 1.05


def test_alike_sources_are_judged_together_and_wait_less_than_each_by_itself() -> None:
    generator = fed(alike(2, rows=2_000, sources=300))
    assert generator.together
    alone, together = (meter.mean(generator._clock) for meter in generator._lags)
    assert together < 0.7 * alone
    assert not generator.account.overdrawn
    reason = generator.why(0)
    assert "came later" in reason.text
    assert reason.values["late"] / reason.values["rows"] <= 0.01


@pytest.mark.slow
def test_ordered_sources_that_are_apart_are_judged_each_by_itself() -> None:
    generator = fed(periodic(1, rows=1_200))
    assert not generator.together
    assert not generator.why(0).common


@limits(max_examples=5, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.01, 0.1]))
def test_an_adversary_who_aims_below_the_heartbeat_finds_only_the_lower_candidate_once_the_account_is_overdrawn(
    seed: int, ratio: float
) -> None:
    rng = np.random.default_rng(seed)
    generator = DropRatio(ratio).start()
    clock, shown, hostile = 0, NEVER, False
    for _ in range(150):
        clock += int(rng.integers(1, 20))
        hostile ^= rng.random() < 0.05
        aimed = shown - int(rng.integers(0, 3)) if hostile and shown > NEVER else clock - int(rng.integers(0, 50))
        rows = int(rng.integers(1, 8))
        generator.observe(Arrivals.of_rows(clock, rng.integers(0, 3, rows), np.full(rows, aimed)))
        after = generator.heartbeats(clock).combined
        assert after >= shown
        assert after <= max(shown, *generator.candidates)
        if generator.account.overdrawn:
            assert after <= max(shown, min(generator.candidates))
        shown = after
