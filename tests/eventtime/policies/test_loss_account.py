"""The loss account: its bound on any stream, its warm-up, what it forgets, what each source may lose."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from eventide.eventtime.arrays import as_plain
from eventide.eventtime.heartbeat import resumed
from eventide.eventtime.policies.drop_ratio.loss_account import (
    BOLDER_RUNGS,
    CREDIT_ROWS,
    DEBT_ROWS_PER_RUNG,
    RESERVE_ROWS,
    ROWS_PER_RUNG,
    WARM_UP_ROWS,
    LossAccount,
)
from eventide.eventtime.policies.drop_ratio.record_ladder import SAFEST

_SPEND = 0.85  # Of what rows earn, the part that rungs may spend.

RATIO = st.sampled_from([1e-4, 0.001, 0.01, 0.05, 0.3, 0.9])

Round = tuple[int, float]
"""Rows of a round, and the share of them that a stream would like to make late."""

ROUND = st.tuples(st.sampled_from([1, 10, 200, 1_000, 7_000]), st.sampled_from([0.0, 0.01, 0.2, 1.0]))


def settle(account: LossAccount, rows: int, lost: float, source: int = 0) -> None:
    account.settle(np.array([source]), np.array([rows]), np.array([float(lost)]))


def warmed_up(drop_ratio: float, places: int = 1) -> LossAccount:
    account = LossAccount(drop_ratio, places)
    settle(account, WARM_UP_ROWS, 0)
    return account


def common_rung(account: LossAccount) -> int:
    """The rung of a source so rich that its own balance asks for no care."""
    rich = len(account.by_source)
    account.grow(rich + 1)
    account.by_source[rich] = np.inf
    rung = int(account.rungs()[rich])
    account.by_source = account.by_source[:rich]
    return rung


@limits(max_examples=250)
@given(RATIO, st.lists(ROUND, max_size=60))
def test_over_any_stretch_no_more_is_lost_than_the_law_allows(drop_ratio: float, stream: list[Round]) -> None:
    """The stream is an adversary that sees the rung; only at the safest one can it do nothing."""
    account = warmed_up(drop_ratio)
    rows, lost, largest = [0], [0], 0
    for size, share in stream:
        gone = 0 if common_rung(account) == SAFEST else math.ceil(size * share)
        settle(account, size, gone)
        rows.append(rows[-1] + size)
        lost.append(lost[-1] + gone)
        largest = max(largest, gone)
    slack = ROWS_PER_RUNG * BOLDER_RUNGS + DEBT_ROWS_PER_RUNG * (SAFEST + math.log2(drop_ratio))
    for begin in range(len(rows)):
        for end in range(begin, len(rows)):
            allowed = drop_ratio * (rows[end] - rows[begin] + slack) + largest
            assert lost[end] - lost[begin] <= allowed + 1e-6


@pytest.mark.parametrize("drop_ratio", [0.001, 0.01, 0.05])
def test_an_adversary_who_takes_what_he_can_gets_no_more_than_the_ratio(drop_ratio: float) -> None:
    account = warmed_up(drop_ratio)
    lost = 0
    for _ in range(3_000):
        gone = 100 if common_rung(account) < SAFEST else 0
        settle(account, 100, gone)
        lost += gone
    assert 0.5 * drop_ratio < lost / 300_000 <= drop_ratio * (1 + 20 * ROWS_PER_RUNG / 300_000) + 100 / 300_000


@limits(max_examples=100)
@given(RATIO, st.lists(st.tuples(st.integers(1, 500), st.integers(0, 500)), max_size=40))
def test_the_rung_follows_the_balance_of_plain_arithmetic(drop_ratio: float, rounds: list[tuple[int, int]]) -> None:
    """Between the ends of the ladder the rung is the integral of what was permitted less what was lost."""
    account = warmed_up(drop_ratio)
    turn = drop_ratio * ROWS_PER_RUNG
    balance = _SPEND * turn
    for rows, lost in rounds:
        balance = min(balance + _SPEND * drop_ratio * rows, BOLDER_RUNGS * turn) - lost
        settle(account, rows, lost)
        exact = -math.log2(drop_ratio) - balance / (turn if balance >= 0 else drop_ratio * DEBT_ROWS_PER_RUNG)
        if exact > SAFEST + 1:
            return  # Beyond the safest rung, what is owed is no longer followed to the row.
        assert common_rung(account) == pytest.approx(min(max(exact + 0.5, 0), SAFEST), abs=0.5 + 1e-6)


@limits(max_examples=100)
@given(RATIO, st.integers(0, 10**6), st.integers(0, 200))
def test_more_loss_never_makes_anyone_bolder(drop_ratio: float, rows: int, lost: int) -> None:
    calm, hurt = warmed_up(drop_ratio, places=2), warmed_up(drop_ratio, places=2)
    settle(calm, rows, 0)
    settle(hurt, rows, lost)
    assert (hurt.rungs() >= calm.rungs()).all()


@pytest.mark.parametrize("drop_ratio", [0.001, 0.01, 0.1])
def test_a_calm_year_buys_no_more_than_three_rungs(drop_ratio: float) -> None:
    account = LossAccount(drop_ratio, places=1)
    for _ in range(100):
        settle(account, 1_000_000, 0)
    assert common_rung(account) == math.ceil(-math.log2(drop_ratio) - BOLDER_RUNGS)
    assert account.reserve == pytest.approx(drop_ratio * account.rows / 10)


def test_what_is_lost_at_the_safest_rung_is_not_paid_for_twice() -> None:
    """An outage that nothing could have saved must not keep the policy at its safest for the rest of the day."""
    account = warmed_up(0.01)
    for _ in range(1_000):
        settle(account, 100, 100)
    assert common_rung(account) == SAFEST
    for _ in range(100):
        settle(account, 100, 0)
    assert common_rung(account) < SAFEST


def test_losses_of_the_warm_up_start_no_debt() -> None:
    account = LossAccount(0.01, places=1)
    settle(account, WARM_UP_ROWS - 1, 500)
    assert common_rung(account) == SAFEST
    settle(account, 1, 1)
    assert common_rung(account) == math.ceil(-math.log2(0.01))
    assert account.lost == 501
    assert account.reserve == pytest.approx(0.01 * WARM_UP_ROWS)


def test_the_warm_up_ends_with_the_round_that_brings_its_last_row() -> None:
    account = LossAccount(0.01, places=1)
    settle(account, 5_000, 5_000)
    assert common_rung(account) == math.ceil(-math.log2(0.01))
    settle(account, 1, 1)
    settle(account, 1_000, 100)
    assert common_rung(account) > math.ceil(-math.log2(0.01))


@limits(max_examples=100)
@given(RATIO, st.lists(st.tuples(st.integers(1, 3_000), st.integers(0, 100)), max_size=30))
def test_the_reserve_lies_between_the_earnings_of_1000_and_of_10000_rows_or_a_tenth_of_all(
    drop_ratio: float, rounds: list[tuple[int, int]]
) -> None:
    account = LossAccount(drop_ratio, places=1)
    assert account.reserve == 0
    for rows, lost in rounds:
        settle(account, rows, lost)
        least = drop_ratio * min(account.rows, WARM_UP_ROWS)
        most = drop_ratio * max(RESERVE_ROWS, account.rows / 10)
        assert least <= account.reserve <= most + 1e-9


def test_a_source_that_loses_more_than_its_share_becomes_careful_alone() -> None:
    account = LossAccount(0.01, places=2)
    for _ in range(100):
        account.settle(np.array([0, 1]), np.array([1_000, 100]), np.array([0.0, 5.0]))
    honest, greedy = account.rungs()
    assert greedy == SAFEST
    assert honest < math.ceil(-math.log2(0.01))


@limits(max_examples=60)
@given(RATIO, st.lists(st.tuples(st.integers(1, 300), st.integers(0, 300)), max_size=60))
def test_a_source_that_can_lose_nothing_at_the_safest_rung_loses_its_fair_share_at_most(
    drop_ratio: float, rounds: list[tuple[int, int]]
) -> None:
    account = warmed_up(drop_ratio, places=2)
    rows = lost = largest = 0
    for size, wish in rounds:
        gone = 0 if account.rungs()[1] == SAFEST else min(size, wish)
        # Enough rows of a calm source that the common balance never asks for more care.
        account.settle(np.array([0, 1]), np.array([10**7, size]), np.array([0.0, float(gone)]))
        rows, lost, largest = rows + size, lost + gone, max(largest, gone)
    rungs = BOLDER_RUNGS + SAFEST + math.log2(drop_ratio)
    assert lost <= 1.3 * drop_ratio * (rows + ROWS_PER_RUNG * rungs) + largest + 1e-6


def test_a_new_source_has_a_small_credit() -> None:
    account = warmed_up(0.01)
    account.grow(2)
    credit = 1.3 * 0.01 * CREDIT_ROWS
    settle(account, 1, credit - 1, source=1)
    assert account.by_source[1] > 0
    settle(account, 1, 2, source=1)
    assert account.by_source[1] < 0


@pytest.mark.parametrize("drop_ratio", [1e-12, 1e-6, 0.5, 0.999999])
def test_rungs_stay_on_the_ladder_for_any_ratio(drop_ratio: float) -> None:
    account = LossAccount(drop_ratio, places=1)
    for rows, lost in [(1, 0), (10**6, 0), (10**6, 10**6), (10**9, 0), (1, 1)]:
        settle(account, rows, lost)
        assert 0 <= account.rungs()[0] <= SAFEST


@limits(max_examples=60)
@given(
    RATIO,
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 900), st.integers(0, 20)), min_size=2, max_size=20),
    st.data(),
)
def test_a_snapshot_through_json_changes_nothing(
    drop_ratio: float, rounds: list[tuple[int, int, int]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(rounds)))
    account = LossAccount(drop_ratio, places=3)
    for source, rows, lost in rounds[:cut]:
        settle(account, rows, lost, source)
    restored = resumed(LossAccount(drop_ratio), json.loads(json.dumps(account.snapshot(), default=as_plain)))
    for source, rows, lost in rounds[cut:]:
        settle(account, rows, lost, source)
        settle(restored, rows, lost, source)
    assert restored.snapshot() == account.snapshot()
    assert restored.rungs().tolist() == account.rungs().tolist()


def test_boldness_grows_by_one_rung_for_each_allowance_of_1000_rows_saved() -> None:
    account = warmed_up(0.01)
    settle(account, 1, 11)
    rungs = []
    for _ in range(8):
        rungs.append(common_rung(account))
        settle(account, math.ceil(ROWS_PER_RUNG / _SPEND), 0)
    assert rungs == [8, 6, 5, 4, 4, 4, 4, 4]
