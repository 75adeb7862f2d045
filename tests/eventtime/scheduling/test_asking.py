"""When silent sources are asked."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.scheduling.options import IdlePolling


@given(st.integers(1, 50), st.lists(st.integers(-200, 200), min_size=2, max_size=30))
def test_each_interval_of_the_clock_asks_in_its_first_round_and_in_no_other(interval: int, clocks: list[int]) -> None:
    clocks = sorted(clocks)
    asked = [clocks[0], *(now for before, now in itertools.pairwise(clocks) if due(interval, before, now))]
    assert [one // interval for one in asked] == sorted({clock // interval for clock in clocks})


def due(interval: int, before: int, clock: int) -> bool:
    return IdlePolling.every(interval).is_due(before, clock)


@given(st.integers(1, 50), st.integers(-200, 200))
def test_the_next_round_that_asks_is_the_first_that_is_due(interval: int, before: int) -> None:
    following = IdlePolling.every(interval).next_due(before)
    assert due(interval, before, following)
    assert not any(due(interval, before, one) for one in range(before, following))


def test_before_the_first_round_everything_is_due_and_elsewhere_nothing_ever_is() -> None:
    assert IdlePolling.every(10).is_due(NEVER, -5)
    assert IdlePolling.every(10).next_due(NEVER) == NEVER
    for mode in (IdlePolling.on_demand(), IdlePolling.never()):
        assert not mode.is_due(NEVER, 5)
        assert mode.next_due(5) == FOREVER
