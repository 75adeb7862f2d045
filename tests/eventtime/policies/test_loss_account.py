"""What may be lost, staked, and by whom."""

from __future__ import annotations

import json

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventide.eventtime.arrays import as_plain
from eventide.eventtime.heartbeat import resumed
from eventide.eventtime.policies.drop_ratio.loss_account import WARM_UP_ROWS, LossAccount
from eventide.eventtime.policies.drop_ratio.record_ladder import SAFEST

RATIO = 0.01


def after(*rounds: tuple[int, float], ratio: float = RATIO) -> LossAccount:
    """Rounds of one source, of so many rows and so many lost ones."""
    account = LossAccount(ratio, places=1)
    for rows, lost in rounds:
        account.settle(np.array([0]), np.array([rows]), np.array([lost]))
    return account


def test_what_the_warm_up_loses_is_reported_and_starts_no_debt() -> None:
    account = after((WARM_UP_ROWS, 500.0))
    assert (account.rows, account.lost, account.balance) == (1_000, 500.0, 0.0)


def test_what_is_saved_can_be_staked_and_what_is_overdrawn_cannot() -> None:
    assert after((1_000, 0.0), (1_000, 0.0)).budget == 10 + RATIO * (300 + 200)
    assert after((1_000, 0.0), (1_000, 100.0)).budget == 0.0


@given(st.lists(st.tuples(st.integers(1, 500), st.floats(0, 1)), max_size=60))
def test_paying_every_stake_from_the_budget_loses_no_more_than_the_bound(rounds: list[tuple[int, float]]) -> None:
    """An adversary takes any share of what is staked; a stake is lost before the next is made."""
    account = after((WARM_UP_ROWS, 0.0))
    for rows, taken in rounds:
        lost = min(taken * account.budget, rows)
        account.settle(np.array([0]), np.array([rows]), np.array([lost]))
        assert account.lost <= RATIO * (1.1 * account.rows + 300) + 1e-6


def test_a_source_is_read_on_safer_rungs_the_more_it_lost_and_is_forgiven_by_rows() -> None:
    rungs = [int(after((1_000, lost)).extra_rungs()[0]) for lost in (0.0, 13.0, 14.0, 22.0, 500.0)]
    assert rungs == [0, 0, 1, 3, SAFEST]
    assert after((1_000, 22.0), (2_000, 0.0)).extra_rungs().tolist() == [0]


def test_a_source_beyond_its_fair_share_is_overdrawn_unless_it_is_rare() -> None:
    assert after((1_000, 25.0)).left_of()[0] < 0 < after((1_000, 15.0)).left_of()[0]
    assert after((10, 10.0)).left_of()[0] == np.inf


def test_the_rare_sources_are_the_smallest_that_are_together_within_the_share() -> None:
    account = LossAccount(0.1, places=4)
    account.settle(np.arange(4), np.array([900, 30, 10, 60]), np.zeros(4))
    assert account.rare(0.5).tolist() == [False, True, True, False]


def test_a_snapshot_changes_nothing() -> None:
    account = after((1_500, 20.0))
    again = resumed(LossAccount(RATIO), json.loads(json.dumps(account.snapshot(), default=as_plain)))
    assert again.snapshot() == account.snapshot()
