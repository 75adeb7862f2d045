"""The ladder of records against plain lists, its law against chance, and what digestion by rounds does to it."""

from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st
from numpy.typing import NDArray

from eventide.eventtime.arrays import as_plain
from eventide.eventtime.heartbeat import resumed
from eventide.eventtime.policies.drop_ratio.record_ladder import ABSENT, RUNGS, SAFEST, UNKNOWN, RecordLadder

EVERY_RUNG = range(SAFEST + 1)
RESIDUAL = st.integers(-50, 50)
EDGE_RESIDUAL = st.sampled_from([-4 * 10**18, -(10**18), -1, 0, 1, 10**18, 4 * 10**18])


def brute_answer(residuals: list[int], rung: int) -> int:
    """What rung `rung` says after these rows, from the rows themselves."""
    filled = [k for k in range(RUNGS) if len(residuals) >= 3 * 2**k]
    highest = filled[-1] if filled else -1
    if rung >= SAFEST:
        return worst_remembered(residuals) if residuals else UNKNOWN
    if rung <= highest:
        return median_record(residuals, rung)
    if highest < 1:
        return UNKNOWN
    top, below = median_record(residuals, highest), median_record(residuals, highest - 1)
    extrapolated = top + max(top - below, 0) * (rung - highest)
    return min(extrapolated, worst_remembered(residuals))


def median_record(residuals: list[int], rung: int) -> int:
    """The median of the records of the last three full blocks; no less than the second largest of the last eight."""
    size = 2**rung
    full = len(residuals) // size
    records = sorted(max(residuals[block * size : (block + 1) * size]) for block in range(full - 3, full))
    recent = sorted(residuals[-8:])
    return max(records[1], recent[-2])


def worst_remembered(residuals: list[int]) -> int:
    """The largest of the last three full blocks of the longest kind, and of what came after them."""
    size = 2 ** (RUNGS - 1)
    return max(residuals[max(len(residuals) // size - 3, 0) * size :])


def add(ladder: RecordLadder, rows: list[int], place: int = 0) -> None:
    """One round at one place."""
    two = sorted(rows)[-2:]
    second = two[0] if len(two) == 2 else ABSENT
    ladder.add(np.array([place]), np.array([len(rows)]), np.array([two[-1]]), np.array([second]))


def answers(ladder: RecordLadder, place: int = 0) -> list[int]:
    """What every rung says at one place."""
    found: list[int] = ladder.rung(np.arange(SAFEST + 1)[None, :, None], np.array([place]))[0, :, 0].tolist()
    return found


def ladder_of(residuals: list[int]) -> RecordLadder:
    ladder = RecordLadder(places=1)
    for residual in residuals:
        add(ladder, [residual])
    return ladder


@limits(max_examples=100)
@given(st.one_of(st.lists(RESIDUAL, max_size=120), st.lists(EDGE_RESIDUAL, max_size=40)))
def test_row_by_row_every_rung_says_what_the_plain_lists_say(residuals: list[int]) -> None:
    assert answers(ladder_of(residuals)) == [brute_answer(residuals, rung) for rung in EVERY_RUNG]


def test_the_longest_blocks_are_kept_too_and_what_lies_before_them_is_forgotten() -> None:
    rng = np.random.default_rng(4)
    residuals = rng.exponential(1000, 16_384).astype(int).tolist()
    residuals[100] = 10**6  # outside the last three blocks of 4,096 rows once 16,384 have come
    ladder = RecordLadder(places=1)
    for count, residual in enumerate(residuals, start=1):
        add(ladder, [residual])
        if count in (12_287, 12_288, 16_383, 16_384):
            assert answers(ladder) == [brute_answer(residuals[:count], rung) for rung in EVERY_RUNG]
    assert answers(ladder)[SAFEST] < 10**6


@limits(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), RESIDUAL), max_size=80))
def test_places_do_not_hear_each_other(rows: list[tuple[int, int]]) -> None:
    ladder = RecordLadder(places=4)
    for place, residual in rows:
        add(ladder, [residual], place)
    for place in range(4):
        alone = [residual for at, residual in rows if at == place]
        assert answers(ladder, place) == [brute_answer(alone, rung) for rung in EVERY_RUNG]


@limits(max_examples=60)
@given(st.lists(st.tuples(RESIDUAL, RESIDUAL), max_size=60))
def test_kinds_of_residual_are_ladders_of_their_own(pairs: list[tuple[int, int]]) -> None:
    both = RecordLadder(places=1, kinds=2)
    for pair in pairs:
        both.add(np.array([0]), np.array([1]), np.array(pair)[:, None], np.full((2, 1), ABSENT))
    found = both.rung(np.arange(SAFEST + 1)[None, :, None], np.array([0]))
    for kind in (0, 1):
        assert found[kind, :, 0].tolist() == answers(ladder_of([pair[kind] for pair in pairs]))


def test_all_places_at_once_are_as_one_after_the_other() -> None:
    rng = np.random.default_rng(11)
    together, apart = RecordLadder(places=5), RecordLadder(places=5)
    for _ in range(200):
        place = np.flatnonzero(rng.random(5) < 0.7)
        if len(place) == 0:
            continue
        rounds = [rng.integers(-9, 99, rng.integers(1, 7)).tolist() for _ in place]
        largest = np.array([max(rows) for rows in rounds])
        second = np.array([sorted(rows)[-2] if len(rows) > 1 else ABSENT for rows in rounds])
        together.add(place, np.array([len(rows) for rows in rounds]), largest, second)
        for at, rows in zip(place.tolist(), rounds, strict=True):
            add(apart, rows, at)
    assert [answers(together, place) for place in range(5)] == [answers(apart, place) for place in range(5)]


ROUNDS = st.lists(st.lists(RESIDUAL, min_size=1, max_size=12), min_size=1, max_size=30)


@limits(max_examples=150)
@given(ROUNDS)
def test_digested_by_rounds_no_record_is_below_that_of_the_rows(rounds: list[list[int]]) -> None:
    digested = RecordLadder(places=1)
    rows: list[int] = []
    for one in rounds:
        add(digested, one)
        rows += one
    found = answers(digested)
    filled = [rung for rung in range(RUNGS) if len(rows) >= 3 * 2**rung]
    for rung in [*filled, SAFEST]:
        assert found[rung] >= brute_answer(rows, rung), f"rung {rung}"


@limits(max_examples=100)
@given(ROUNDS)
def test_digestion_changes_nothing_on_rungs_that_the_rounds_fit_into(rounds: list[list[int]]) -> None:
    """Rounds of exactly two rows cut no block of two or more: rung 1 and above see the same records."""
    pairs = [(one * 2)[:2] for one in rounds]
    digested = RecordLadder(places=1)
    for pair in pairs:
        add(digested, pair)
    rows = [residual for pair in pairs for residual in pair]
    expected = [brute_answer(rows, rung) for rung in EVERY_RUNG if rung >= 1]
    assert answers(digested)[1:] == expected


@limits(max_examples=60)
@given(st.lists(st.tuples(st.integers(0, 3), RESIDUAL), max_size=80), st.integers(0, 2**32), st.integers(0, 8))
def test_each_place_may_ask_for_rungs_of_its_own(rows: list[tuple[int, int]], seed: int, safe_from: int) -> None:
    ladder = RecordLadder(places=4, safe_from=safe_from)
    for place, residual in rows:
        add(ladder, [residual], place)
    rng = np.random.default_rng(seed)
    places = np.sort(rng.permutation(4)[: rng.integers(1, 5)])
    wanted = rng.integers(0, SAFEST + 1, (1, 5, len(places)))
    found = ladder.rung(wanted, places)
    for index, at in enumerate(places.tolist()):
        assert found[0, :, index].tolist() == [answers(ladder, at)[rung] for rung in wanted[0, :, index]]


def test_one_outlier_moves_no_rung_but_the_safest() -> None:
    before = ladder_of([5] * 100)
    after = ladder_of([5] * 99 + [1000] + [5])
    assert answers(after)[:6] == answers(before)[:6] == [5] * 6
    assert answers(after)[SAFEST] == 1000


def test_two_rows_of_a_storm_are_believed_at_every_rung() -> None:
    assert min(answers(ladder_of([5] * 100 + [1000, 1000]))) == 1000


DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, tuple[int, int]], NDArray[np.float64]]] = {
    "uniform": lambda rng, shape: rng.uniform(-1e6, 1e6, shape),
    "normal": lambda rng, shape: rng.normal(0, 1e6, shape),
    "exponential": lambda rng, shape: rng.exponential(1e6, shape),
    "so heavy a tail that it has no mean": lambda rng, shape: np.minimum(1e6 * rng.pareto(0.7, shape), 1e18),
    "two far heaps": lambda rng, shape: rng.normal(0, 1e3, shape) + 1e9 * (rng.random(shape) < 0.1),
}


@pytest.mark.parametrize("distribution", DISTRIBUTIONS.values(), ids=DISTRIBUTIONS.keys())
def test_the_chance_to_exceed_a_rung_is_the_same_for_every_distribution(
    distribution: Callable[[np.random.Generator, tuple[int, int]], NDArray[np.float64]],
) -> None:
    """The law: the chance to beat the median of three records of m rows is 3/(2m + 1) - 2/(3m + 1), about 5/6m."""
    places, rows = 300, 1_200
    residuals = distribution(np.random.default_rng(2024), (rows, places)).astype(np.int64)
    ladder, everyone = RecordLadder(places), np.arange(places)
    one, absent = np.ones(places, dtype=np.int64), np.full(places, ABSENT)
    rungs = np.arange(4, 9)
    exceeded = np.zeros(len(rungs))
    for number, residual in enumerate(residuals):
        if number >= 3 * 2**8:
            exceeded += np.count_nonzero(residual > ladder.rung(rungs[None, :, None], everyone)[0], axis=1)
        ladder.add(everyone, one, residual, absent)
    size = 2.0**rungs
    law = 3 / (2 * size + 1) - 2 / (3 * size + 1)
    found = exceeded / ((rows - 3 * 2**8) * places)
    # The floor under all rungs lowers the chance a little, most where blocks are short.
    assert (found < 1.15 * law).all()
    assert (found > [0.6 * law[0], *(0.8 * law[1:])]).all()


@limits(max_examples=60)
@given(st.lists(RESIDUAL, max_size=60), st.lists(RESIDUAL, max_size=60))
def test_a_snapshot_through_json_changes_nothing(past: list[int], future: list[int]) -> None:
    ladder = ladder_of(past)
    restored = resumed(RecordLadder(0), json.loads(json.dumps(ladder.snapshot(), default=as_plain)))
    for residual in future:
        add(ladder, [residual])
        add(restored, [residual])
    assert answers(restored) == answers(ladder)


@limits(max_examples=60)
@given(st.lists(RESIDUAL, max_size=40), st.lists(RESIDUAL, max_size=40), st.integers(1, 3))
def test_a_ladder_that_grows_forgets_nothing_and_starts_new_places_empty(
    past: list[int], future: list[int], more: int
) -> None:
    ladder = ladder_of(past)
    ladder.grow(1 + more)
    assert answers(ladder, place=more) == [UNKNOWN] * (SAFEST + 1)
    for residual in future:
        add(ladder, [residual])
        add(ladder, [residual], place=more)
    assert answers(ladder) == [brute_answer(past + future, rung) for rung in EVERY_RUNG]
    assert answers(ladder, place=more) == [brute_answer(future, rung) for rung in EVERY_RUNG]


def test_growing_to_fewer_places_changes_nothing() -> None:
    ladder = RecordLadder(places=3)
    add(ladder, [7], place=2)
    ladder.grow(1)
    assert answers(ladder, place=2)[SAFEST] == 7
