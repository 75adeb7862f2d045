"""Who goes through a queue: the laws of a turn, and of many turns one after the other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from eventide.eventtime.scheduling.expensive import QueueShare

COUNTS = st.integers(0, 40)


@given(COUNTS, COUNTS, COUNTS, COUNTS, st.none() | st.integers(1, 6), st.integers(0, 6))
def test_nothing_idles_and_nobody_goes_who_is_not_there(
    room: int, new: int, aside: int, overdue: int, one_in: int | None, credit: int
) -> None:
    turn = QueueShare.of(room, new, aside, min(overdue, aside), one_in, credit)
    assert 0 <= turn.new <= new
    assert 0 <= turn.aside <= aside
    assert turn.new + turn.aside == min(room, new + aside)
    assert turn.aside >= min(room, overdue, aside), "overdue rows go before all others"


@given(COUNTS, COUNTS, COUNTS)
def test_without_more_said_set_aside_rows_go_in_lulls_alone(room: int, new: int, aside: int) -> None:
    turn = QueueShare.of(room, new, aside)
    assert turn.new == min(room, new)
    assert turn.aside == min(room - turn.new, aside)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=60), st.integers(1, 6))
def test_one_in_k_gets_its_share_in_rounds_of_any_size(rooms: list[int], one_in: int) -> None:
    """Busy all the time: a round may have less room than one_in + 1, and the share is kept all the same."""
    new = aside = credit = 0
    for room in rooms:
        turn = QueueShare.of(room, 1_000, 1_000, 0, one_in, credit)
        new, aside, credit = new + turn.new, aside + turn.aside, turn.credit
    assert aside == sum(rooms) // (one_in + 1)
    assert new + aside == sum(rooms)
