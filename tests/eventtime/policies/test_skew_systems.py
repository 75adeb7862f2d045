from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import DeclarationError
from eventide.eventtime.instant import NEVER
from eventide.eventtime.policies.skew.bounds import RowBound, TimeBound
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.eventtime.policies.skew.matrix import Skew, timeout_needed
from eventide.eventtime.policies.skew.per_source import distributed_sensors, global_counter
from tests.eventtime.policies.skew_environment import Row, drive, round_clocks


def assert_no_row_is_late(skew: Skew, rows: list[Row]) -> None:
    rows.sort(key=lambda row: row.arrived)
    before = np.full(len(skew.latency), NEVER)
    for _, here, heartbeats in drive(DeclaredSkew(skew, 1).start(), rows, round_clocks(rows, [1], 0)):
        assert all(row.time > before[row.source] for row in here)
        before = heartbeats.by_source


def test_a_global_counter_has_the_bounds_of_section_4_1() -> None:
    skew = global_counter(fastest=[2, 5, 1], slowest=[4, 6, 30], latency=[1, 2, 3])
    assert skew.bounds(0, 2) == (TimeBound(28, 0), RowBound(1, 0))
    assert skew.bounds(0, 1) == (TimeBound(4, 0), RowBound(1, 0))
    assert skew.bounds(1, 0) == (TimeBound(0, 0),), "4 < 5: source 0 can never come after a later token of source 1"
    assert [skew.bounds(i, i) for i in range(3)] == [(TimeBound(0, 0),)] * 3
    assert not timeout_needed(skew)


def test_sensors_have_the_bounds_of_section_4_2_and_need_a_timeout() -> None:
    skew = distributed_sensors(deviation=[1, 4], latency=[9, 9])
    assert skew.bounds(0, 1) == skew.bounds(1, 0) == (TimeBound(0, 5),)
    assert [skew.bounds(i, i) for i in range(2)] == [(TimeBound(0, 1),), (TimeBound(0, 4),)]
    assert timeout_needed(skew)


def test_sensors_of_known_rate_need_no_timeout() -> None:
    skew = distributed_sensors(deviation=[1, 4], latency=[0, 0], rate=[2, 3])
    assert skew.bounds(0, 1) == (TimeBound(0, 5), TimeBound(2, 0)), "5 / 3, rounded up"
    assert skew.bounds(1, 0) == (TimeBound(0, 5), TimeBound(3, 0)), "5 / 2, rounded up"
    assert skew.bounds(1, 1) == (TimeBound(0, 4), TimeBound(2, 0)), "4 / 3, rounded up"
    assert not timeout_needed(skew)


@st.composite
def counter_runs(draw: st.DrawFn) -> tuple[Skew, list[Row]]:
    """Sources that fetch tokens in order, work on each within their limits, and send."""
    n = draw(st.integers(1, 4))
    fastest = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    slowest = [low + draw(st.integers(0, 8)) for low in fastest]
    latency = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    issued, free, rows = 0, [0] * n, []
    for token in range(draw(st.integers(1, 25))):
        source = draw(st.integers(0, n - 1))
        issued = max(issued, free[source]) + draw(st.integers(0, 2))
        emitted = free[source] = issued + draw(st.integers(fastest[source], slowest[source]))
        rows.append(Row(source, emitted, token, emitted + draw(st.integers(0, latency[source]))))
    return global_counter(fastest, slowest, latency), rows


@settings(max_examples=200)
@given(counter_runs())
def test_no_row_of_a_global_counter_is_late(run: tuple[Skew, list[Row]]) -> None:
    assert_no_row_is_late(*run)


@st.composite
def sensor_runs(draw: st.DrawFn) -> tuple[Skew, list[Row]]:
    """Sensors whose clocks run at their own pace and are set right before they are off by the deviation."""
    n = draw(st.integers(1, 4))
    deviation = draw(st.lists(st.integers(1, 6), min_size=n, max_size=n))
    latency = draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    rate = draw(st.none() | st.just([2] * n))
    slowest = 1 if rate is None else rate[0]
    common, local, rows = 0, [0] * n, []
    for now in range(draw(st.integers(1, 15))):
        common += draw(st.integers(slowest, slowest + 2))
        for source in range(n):
            reading = local[source] + draw(st.integers(slowest, slowest + 2))
            if abs(reading - common) >= deviation[source] or draw(st.integers(0, 5)) == 0:
                reading = common
            local[source] = reading
            if draw(st.booleans()):
                rows.append(Row(source, now, reading, now + draw(st.integers(0, latency[source]))))
    return distributed_sensors(deviation, latency, rate), rows


@settings(max_examples=200)
@given(sensor_runs().filter(lambda run: run[1]))
def test_no_row_of_sensors_with_bounded_deviation_is_late(run: tuple[Skew, list[Row]]) -> None:
    assert_no_row_is_late(*run)


def test_impossible_systems_are_refused() -> None:
    with pytest.raises(DeclarationError, match="swap them"):
        global_counter(fastest=[5], slowest=[4], latency=[0])
    with pytest.raises(DeclarationError, match="give one per source"):
        global_counter(fastest=[1], slowest=[4, 4], latency=[0])
    with pytest.raises(DeclarationError, match="values of 2 sources, there are 1 latencies"):
        distributed_sensors(deviation=[1, 2], latency=[0])
    with pytest.raises(DeclarationError, match="rate 0"):
        distributed_sensors(deviation=[1], latency=[0], rate=[0])
