"""The candidates of the drop ratio: their accounts, lags and slacks, the ceiling, and whom the policy follows."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from eventide.eventtime.arrays import as_plain
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import resumed
from eventide.eventtime.policies.drop_ratio.candidates import Candidates, Digest
from eventide.eventtime.policies.drop_ratio.ceiling import Stakes
from eventide.eventtime.policies.drop_ratio.lag_sample import SAMPLE_ROWS, LagSample
from eventide.eventtime.policies.drop_ratio.loss_account import LossAccount
from eventide.eventtime.policies.drop_ratio.policy import DropRatio
from eventide.eventtime.policies.drop_ratio.residuals import ResidualWindow

residuals = st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 5)), min_size=1, max_size=80)


@given(residuals, st.floats(0, 1), st.integers(1, 40))
def test_the_slack_is_the_least_that_no_more_than_the_share_of_the_last_rows_reached(
    given_residuals: list[tuple[int, int]], share: float, entries: int
) -> None:
    window = ResidualWindow(entries)
    window.add(*np.array(given_residuals, dtype=np.int64).T)
    last = [residual for residual, rows in given_residuals[-entries:] for _ in range(rows)]
    slack = window.slack(share)
    reached = sum(residual >= slack for residual in last)
    assert reached <= share * len(last) + 1e-9
    assert window.exceeded(slack) == (reached, len(last))
    if share * len(last) < len(last):
        assert sum(residual >= slack - 1 for residual in last) > share * len(last) - 1e-9


@limits(max_examples=25)
@given(st.integers(0, 2**32), st.integers(1, 200))
def test_without_thinning_the_lag_is_that_of_every_row(seed: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    time = rng.integers(0, 300, rows)
    sample, shown = LagSample(1), -1
    lags: dict[int, int | None] = {}
    for clock in range(rows):
        sample.observe(clock, time[clock : clock + 1], np.array([1]), np.array([shown]))
        if time[clock] > shown:
            lags[clock] = None
        shown = max(shown, int(rng.integers(0, 300)) - 150)
        sample.release(clock, np.array([shown]))
        for row, lag in lags.items():
            if lag is None and time[row] <= shown:
                lags[row] = clock - row
    expected = [rows - row if lag is None else lag for row, lag in lags.items()]
    assert sample.mean(rows)[0] == pytest.approx(np.mean(expected) if expected else 0.0)


def test_a_thinned_sample_still_estimates_the_lag() -> None:
    sample = LagSample(1)
    for clock in range(20 * SAMPLE_ROWS):
        sample.observe(clock, np.array([clock]), np.array([1]), np.array([-1]))
    assert sample.mean(20 * SAMPLE_ROWS)[0] == pytest.approx(10 * SAMPLE_ROWS, rel=0.05)


stakes = st.lists(
    st.tuples(
        st.integers(0, 1_000),
        st.floats(0.001, 2),
        st.integers(0, 300),
        st.sampled_from([0.01, 0.1, 0.5, 1.0]),
        st.floats(1, 20),
    ),
    min_size=1,
    max_size=8,
)


@given(stakes, st.floats(0, 30))
def test_at_the_ceiling_no_more_rows_are_at_stake_than_the_budget_has(
    sources: list[tuple[int, float, int, float, float]], budget: float
) -> None:
    largest, rate, run, chance, crowd = (np.array(column) for column in zip(*sources, strict=True))
    of = Stakes(largest, rate, run, np.zeros(len(sources), dtype=np.int64), chance, crowd)
    ceiling = of.common(int((largest + of.reach(budget, np.full(len(sources), np.inf))).min()) - 1, budget)
    free = min(1.5, budget)
    at_stake = 0.0
    for low, each, long, odds, together in sources:
        beyond = ceiling - low
        if beyond > 0:
            rows = odds * each * min(beyond, long) + each * max(beyond - long, 0) + odds * (together - 1) - free
            at_stake += max(rows, 0.0)
    assert at_stake <= budget + 1e-6


@given(st.integers(0, 2**32), st.integers(1, 500))
def test_a_digest_loses_no_row_and_says_none_is_earlier_than_its_group(seed: int, cells: int) -> None:
    rng = np.random.default_rng(seed)
    arrivals = Arrivals.of_rows(1_000, rng.integers(0, 200, cells), rng.integers(0, 1_000, cells), cell_width=1)
    digest = Digest.of(arrivals)
    assert int(digest.rows.sum()) == cells
    assert len(digest.rows) <= 64
    for heartbeat in (-1, 0, 500, 1_000):
        late = int(arrivals.rows[arrivals.earliest <= heartbeat].sum())
        assert int(digest.rows[digest.earliest <= heartbeat].sum()) >= late


def test_a_candidate_that_lost_too_much_is_not_followed_however_fast() -> None:
    candidates, account = Candidates(0.01), LossAccount(0.01, places=1)
    account.settle(np.array([0]), np.array([5_000]), np.array([0.0]))
    promised = np.zeros(2 * len(candidates.rungs), dtype=np.int64)
    promised[0] = 1_000
    candidates.heartbeats[0] = 900
    for clock in range(100):
        candidates.observe(Arrivals.of_row(clock, 0, 900), account)
        candidates.advance(promised, np.zeros(2, dtype=np.int64), 10**9, clock, account)
    assert candidates.balance[0] == pytest.approx(-99, abs=1)
    assert candidates.followed != 0
    assert candidates.heartbeat <= 0


def test_no_candidate_goes_beyond_the_ceiling() -> None:
    candidates, account = Candidates(0.01), LossAccount(0.01)
    candidates.advance(np.full(2 * len(candidates.rungs), 10**6), np.full(2, 10**6), 77, 0, account)
    assert candidates.heartbeats.max() == 77


def test_a_snapshot_of_the_candidates_changes_nothing() -> None:
    generator = DropRatio(0.05).start()
    rng = np.random.default_rng(3)
    for clock in range(200):
        generator.observe(Arrivals.of_row(clock, int(rng.integers(3)), clock - int(rng.exponential(5))))
        generator.heartbeats(clock)
    saved = json.loads(json.dumps(generator.candidates.snapshot(), default=as_plain))
    again = resumed(Candidates(0.05), saved)
    assert json.loads(json.dumps(again.snapshot(), default=as_plain)) == saved


@limits(max_examples=8, deadline=None)
@given(st.integers(0, 2**32), st.sampled_from(["behind", "backlog", "flush", "storm"]))
def test_whatever_an_adversary_sends_a_row_is_only_lost_to_a_candidate_that_was_followed(seed: int, kind: str) -> None:
    """So the account of some candidate that was followed has every row that was lost."""
    rng = np.random.default_rng(seed)
    generator = DropRatio(0.05).start()
    followed: set[int] = set()
    shown = -(10**18)
    for clock in range(0, 4_000, 10):
        behind = {
            "behind": 0 if rng.random() < 0.9 else clock - shown,
            "backlog": clock // 3 if clock > 2_000 else 0,
            "flush": (clock % 1_000) if clock % 1_000 > 600 else 0,
            "storm": int(rng.exponential(300)) if (clock // 1_000) % 2 else 0,
        }[kind]
        time = clock - int(behind)
        if time <= shown:
            assert any(generator.candidates.heartbeats[one] >= time for one in followed)
        generator.observe(Arrivals.of_row(clock, int(rng.integers(3)), time))
        shown = generator.heartbeats(clock).combined
        followed.add(generator.candidates.followed)
