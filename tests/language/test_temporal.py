"""Temporal attributes against brute force: direction, heartbeats and stretches, on expressions made up at random."""

from __future__ import annotations

from fractions import Fraction
from math import floor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.plan.declared.stream import TimeKind
from eventide.plan.declared.temporal import Temporal, carried, temporal
from eventide.plan.expressions.parse import parsed

NUMBERS = st.integers(1, 90)
CONSTANTS = st.integers(-90, 90)


def evaluated(steps: list[tuple[str, int]], time: int) -> Fraction:
    """What Spark gives for the expression, step by step; `div` and casts cut towards 0."""
    value = Fraction(time)
    for name, number in steps:
        if name == "+":
            value += number
        elif name == "-":
            value -= number
        elif name == "minus":
            value = number - value
        elif name == "*":
            value *= number
        elif name == "/":
            value /= number
        elif name == "div":
            value = Fraction(int(value / number))
        elif name == "floor":
            value = Fraction(floor(value))
        elif name == "cast":
            value = Fraction(int(value))
        else:
            value = -value
    return value


def written(steps: list[tuple[str, int]]) -> str:
    sql = "time"
    for name, number in steps:
        if name in ("+", "-", "*", "/", "div"):
            sql = f"({sql}) {name} ({number})"
        elif name == "minus":
            sql = f"{number} - ({sql})"
        elif name == "floor":
            sql = f"floor({sql})"
        elif name == "cast":
            sql = f"cast(({sql}) AS BIGINT)"
        else:
            sql = f"-({sql})"
    return sql


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["+", "-", "minus"]), CONSTANTS),
        st.tuples(st.sampled_from(["*", "/", "div"]), CONSTANTS.filter(bool)),
        st.tuples(st.sampled_from(["floor", "cast", "negative"]), st.just(0)),
    ),
    max_size=5,
)


def of(sql: str) -> Temporal:
    found = temporal(parsed(sql, "a test"), "time", TimeKind.SEQUENCE)
    assert found is not None
    return found


@given(STEPS, st.lists(st.integers(-5000, 5000), min_size=2, max_size=30))
def test_values_and_direction_are_those_of_brute_force(steps: list[tuple[str, int]], times: list[int]) -> None:
    found = of(written(steps))
    values = [evaluated(steps, time) for time in sorted(times)]
    assert [found.value(time) for time in sorted(times)] == values
    assert values == sorted(values, reverse=not found.increasing)
    if found.whole:
        assert all(value.denominator == 1 for value in values)


@given(STEPS, st.integers(-500, 500), st.lists(st.integers(1, 800), min_size=1, max_size=30))
def test_no_later_row_is_behind_the_heartbeat_of_the_output(
    steps: list[tuple[str, int]], heartbeat: int, later: list[int]
) -> None:
    found = of(written(steps))
    least, values = found.least_later(heartbeat), [evaluated(steps, heartbeat + ahead) for ahead in later]
    for value in values:
        assert value >= least if found.increasing else value <= least
        if found.whole:
            told = found.heartbeat(heartbeat)
            assert value > told if found.increasing else value < told


@given(STEPS, st.integers(-500, 500))
def test_the_heartbeat_of_the_output_is_as_far_as_it_can_be(steps: list[tuple[str, int]], heartbeat: int) -> None:
    found = of(written(steps))
    nearest = evaluated(steps, heartbeat + 1)
    assert found.least_later(heartbeat) == nearest
    if found.whole:
        assert found.heartbeat(heartbeat) == (nearest - 1 if found.increasing else nearest + 1)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("+"), st.integers(0, 90)),
            st.tuples(st.sampled_from(["*", "/", "div"]), NUMBERS),
            st.tuples(st.just("floor"), st.just(0)),
        ),
        max_size=4,
    ),
    st.integers(0, 4000),
)
def test_a_stretch_is_exactly_the_times_of_one_value(steps: list[tuple[str, int]], time: int) -> None:
    found = of(written(steps))
    if found.bucket is None:
        return
    start = time - (time - found.bucket.offset) % found.bucket.width
    if start < 0:
        return
    value = evaluated(steps, time)
    assert evaluated(steps, start) == evaluated(steps, start + found.bucket.width - 1) == value
    assert evaluated(steps, start + found.bucket.width) != value
    assert start == 0 or evaluated(steps, start - 1) != value


@pytest.mark.parametrize(
    "sql", ["time % 60", "time + v", "abs(time)", "v", "time * time", "time / 0", "hash(time)", "60 / time"]
)
def test_what_does_not_follow_time_is_not_said_to(sql: str) -> None:
    assert temporal(parsed(sql, "a test"), "time", TimeKind.SEQUENCE) is None


@pytest.mark.parametrize(
    ("sql", "width"),
    [
        ("date_trunc('minute', ts)", 60),
        ("date_trunc('WEEK', ts)", 7 * 86_400),
        ("cast(ts AS DATE)", 86_400),
        ("to_date(ts)", 86_400),
        ("cast(ts AS BIGINT) div 300", 300),
        ("unix_seconds(ts) div 300", 300),
        ("date_trunc('hour', ts - INTERVAL '90' SECONDS)", 3600),
        ("date_trunc('month', ts)", None),
        ("hour(ts)", "not temporal"),
        ("date_format(ts, 'HH')", "not temporal"),
    ],
)
def test_stretches_of_the_calendar(sql: str, width: object) -> None:
    found = temporal(parsed(sql, "a test"), "ts", TimeKind.TIMESTAMP)
    if width == "not temporal":
        assert found is None
        return
    assert found is not None
    assert found.increasing
    assert (found.bucket.width // 1_000_000 if found.bucket else None) == width


@given(st.sampled_from(["minute", "hour", "day", "week", "month", "quarter", "year"]), st.integers(0, 4 * 10**15))
def test_a_cut_instant_never_lies_ahead_and_never_falls(unit: str, instant: int) -> None:
    found = temporal(parsed(f"date_trunc('{unit}', ts)", "a test"), "ts", TimeKind.TIMESTAMP)
    assert found is not None
    assert found.value(instant) <= instant
    assert found.value(instant) == found.value(int(found.value(instant)))
    assert found.value(instant) <= found.value(instant + 10**9)


def test_the_outputs_of_a_projection_that_carry_time_are_named() -> None:
    outputs = [(name, parsed(sql, "a test")) for name, sql in (("m", "ts div 60"), ("v", "v"), ("back", "-ts"))]
    found = carried(outputs, "ts", TimeKind.SEQUENCE)
    assert {name: one.increasing for name, one in found.items()} == {"m": True, "back": False}
    assert carried(outputs, None, TimeKind.TIMESTAMP) == {}
