"""How silences ended, and how likely the next one ends badly."""

from __future__ import annotations

import json

import numpy as np
import pytest

from eventide.eventtime.arrays import as_plain
from eventide.eventtime.heartbeat import resumed
from eventide.eventtime.policies.drop_ratio.silence import Silence


def after(*ends: tuple[int, int, float, float], places: int = 2) -> Silence:
    """Silences of (source, length, rows at stake, how badly each ended)."""
    silence = Silence(places)
    for source, length, stake, badly in ends:
        silence.end(np.array([source]), np.array([length]), np.array([stake]), np.array([badly]))
    return silence


def chances(silence: Silence, length: int, stake: float) -> list[float]:
    places = len(silence.longest)
    found: list[float] = silence.chance(np.full(places, length), np.full(places, stake)).tolist()
    return found


def test_of_the_first_silence_the_worst_is_feared() -> None:
    assert chances(after(), 10, 100.0) == [1.0, 1.0]


def test_silences_that_ended_well_make_trust_and_those_that_ended_badly_take_it() -> None:
    well = after(*[(0, 50, 100.0, 0.0)] * 9)
    assert chances(well, 90, 100.0) == [0.1, 0.1]
    badly = after(*[(0, 50, 100.0, 0.0)] * 8, (0, 50, 100.0, 1.0))
    assert min(chances(badly, 90, 100.0)) > 0.1


def test_silences_with_less_at_stake_say_nothing_of_longer_ones() -> None:
    assert chances(after(*[(0, 50, 20.0, 0.0)] * 98), 500, 200.0)[1] == 1.0


def test_a_source_that_came_back_well_from_so_long_a_silence_is_trusted_before_others_are() -> None:
    assert chances(after((0, 500, 200.0, 0.0)), 400, 200.0) == [0.1, 0.5]


def test_a_source_that_is_held_up_now_and_then_is_judged_by_itself() -> None:
    many_good = [(1, 50, 100.0, 0.0)] * 50
    assert chances(after((0, 50, 100.0, 1.0), *many_good), 50, 100.0)[0] == 0.75


def test_a_silence_of_a_row_or_two_says_nothing() -> None:
    assert chances(after(*[(0, 5, 2.0, 0.0)] * 9), 5, 2.0) == [1.0, 1.0]


@pytest.mark.parametrize("badly", [-3.0, 0.05])
def test_a_row_that_came_in_time_or_nearly_so_is_not_bad(badly: float) -> None:
    assert chances(after(*[(0, 50, 100.0, badly)] * 9), 50, 100.0) == [0.1, 0.1]


def test_no_chance_is_taken_to_be_nothing() -> None:
    assert min(chances(after(*[(0, 50, 100.0, 0.0)] * 500), 60, 100.0)) == 0.01


def test_a_source_is_gone_after_ten_times_its_longest_silence_and_all_the_time_that_it_was_heard() -> None:
    silence = after((0, 7, 9.0, 0.0))
    assert silence.gone_after(np.array([60, 100]), np.array([60, 100])).tolist() == [70, 1000]


def test_a_snapshot_changes_nothing() -> None:
    silence = after((0, 50, 100.0, 0.4), (1, 9, 20.0, 0.0))
    again = resumed(Silence(0), json.loads(json.dumps(silence.snapshot(), default=as_plain)))
    assert again.snapshot() == silence.snapshot()
