from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.grouping import all_partitions, blocks
from eventide.errors import DeclarationError
from eventide.eventtime.policies.skew.bounds import RowBound, TimeBound
from eventide.eventtime.policies.skew.grouping import (
    MOST_ALIKE,
    Rhythm,
    expected_delay,
    mean_delay,
    members_of,
    partition,
)
from eventide.eventtime.policies.skew.matrix import SkewMatrix
from eventide.eventtime.policies.skew.per_source import distributed_sensors
from tests.eventtime.policies.skew_environment import matrices, time_bounds


@settings(max_examples=50)
@given(
    st.lists(st.lists(st.integers(0, 6) | st.just(math.inf), min_size=3, max_size=3), min_size=3, max_size=3),
    st.lists(st.integers(1, 3), min_size=3, max_size=3),
)
def test_the_expected_delay_is_the_integral_of_its_survival(waits: list[list[float]], sizes: list[int]) -> None:
    """Oracle: integrate, in small steps, the probability that no group has spoken early enough."""
    gap, step = 2.0, 0.001
    x = np.arange(0, 60, step) + step / 2
    means = []
    for j in range(3):
        survival = np.ones_like(x)
        for i in range(3):
            survival *= np.exp(-sizes[i] / gap * np.maximum(x - waits[i][j], 0)) if waits[i][j] < math.inf else 1
        means.append(survival.sum() * step if any(waits[i][j] < math.inf for i in range(3)) else math.inf)
    expected = sum(size * mean for size, mean in zip(sizes, means, strict=True)) / sum(sizes)
    latency = np.array([0, 5, 9])
    expected += float((np.array(sizes) * latency).sum() / sum(sizes))
    found = mean_delay(np.array(waits, dtype=np.float64), latency, np.array(sizes, dtype=np.float64), Rhythm(gap))
    assert found == pytest.approx(expected, rel=1e-3)


@settings(max_examples=100)
@given(st.data(), matrices(time_bounds, most=4))
def test_grouping_never_makes_heartbeats_earlier(data: st.DataObject, skew: SkewMatrix) -> None:
    assignment = data.draw(st.sampled_from(list(all_partitions(len(skew.latency), len(skew.latency)))))
    alone, together = expected_delay(skew, gap=3), expected_delay(skew, gap=3, assignment=assignment)
    assert together >= alone - 1e-9


@settings(max_examples=50)
@given(matrices(time_bounds, most=4), st.integers(1, 5))
def test_a_partition_numbers_at_most_as_many_groups_as_asked_and_leaves_out_no_source(
    skew: SkewMatrix, groups: int
) -> None:
    assignment = partition(skew, groups, gap=5)
    assert len(assignment) == len(skew.latency)
    assert len(members_of(assignment)) <= groups
    assert assignment[0] == 0


def test_on_few_sources_it_stays_near_the_optimum_and_far_from_chance() -> None:
    """Thirty fixed systems of six sensors, every grouping tried."""
    found, least, chance = [], [], []
    for seed in range(30):
        random = np.random.default_rng(seed)
        deviation, latency = (random.exponential(100, 6).astype(int).tolist() for _ in range(2))
        skew = distributed_sensors(deviation, latency)
        alone = expected_delay(skew, gap=20)
        added = [expected_delay(skew, gap=20, assignment=a) - alone for a in all_partitions(6, 2)]
        found.append(expected_delay(skew, gap=20, assignment=partition(skew, 2, gap=20)) - alone)
        least.append(min(added))
        chance.append(np.mean(added))
    assert all(here >= best - 1e-9 for here, best in zip(found, least, strict=True))
    assert sum(found) <= 1.05 * sum(least)
    assert sum(found) <= 0.8 * sum(chance)


def test_as_many_groups_as_sources_add_no_delay() -> None:
    skew = distributed_sensors([5, 1, 9], latency=[2, 2, 2])
    assert partition(skew, 3, gap=1) == (0, 1, 2)
    assert partition(skew, 7, gap=1) == (0, 1, 2)


def test_sources_of_two_kinds_are_told_apart_however_many() -> None:
    n = MOST_ALIKE + 12
    kinds = tuple(k * 7 % 3 % 2 for k in range(n))
    skew = distributed_sensors([(10, 5000)[kind] for kind in kinds], latency=[(500, 20)[kind] for kind in kinds])
    assert partition(skew, 2, gap=100) == kinds
    assert expected_delay(skew, 100, assignment=kinds) < expected_delay(skew, 100, assignment=blocks(n, 2)) / 1.5


def test_a_source_that_nothing_bounds_is_kept_apart() -> None:
    near = [TimeBound(0, 10)]
    by_rows = [RowBound(3, 0)]
    skew = SkewMatrix.of([[near, by_rows, near], [near, by_rows, near], [near, by_rows, near]], latency=[1, 1, 1])
    assert partition(skew, 2, gap=5) == (0, 1, 0)
    assert expected_delay(skew, gap=5) == math.inf


def test_what_cannot_hold_is_refused() -> None:
    skew = distributed_sensors([1], latency=[0])
    with pytest.raises(DeclarationError, match="0 groups"):
        partition(skew, 0, gap=1)
    with pytest.raises(DeclarationError, match="gap -1"):
        partition(skew, 1, gap=-1)
