"""The loss account: its bound against every adversary, its warm-up, and that it does not hoard."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eventide.eventtime.loss_account import TUNING, LossAccount

RATIO = 0.05


def warmed_up() -> LossAccount:
    account = LossAccount(RATIO)
    account.settle(TUNING.warm_up_rows, lost=TUNING.warm_up_rows // 2)
    return account


@given(st.lists(st.tuples(st.integers(1, 40), st.floats(0, 1)), max_size=300))
def test_an_adversary_who_takes_rows_while_the_level_is_above_nothing_stays_within_the_bound(
    rounds: list[tuple[int, float]],
) -> None:
    """At level 0 nothing is lost; before that the adversary takes any share of any round."""
    account = warmed_up()
    rows = lost = most = 0
    for arrived, share in rounds:
        taken = round(share * arrived) if account.level(fairness=1.0) > 0 else 0
        account.settle(arrived, taken)
        rows, lost, most = rows + arrived, lost + taken, max(most, arrived)
        assert lost <= TUNING.spend * RATIO * rows + account.margin + most + 1e-6


def test_the_warm_up_starts_no_debt_and_is_reported() -> None:
    account = warmed_up()
    assert (account.balance, account.lost, account.warm) == (0.0, TUNING.warm_up_rows // 2, True)


def test_a_calm_year_does_not_buy_a_reckless_hour() -> None:
    account = warmed_up()
    for _ in range(100):
        account.settle(1_000, 0)
    assert account.balance <= account.margin
    assert account.level(fairness=1.0) <= 2 * RATIO


def test_a_source_at_twice_its_share_brings_the_level_to_nothing() -> None:
    assert warmed_up().level(fairness=0.0) == 0.0
