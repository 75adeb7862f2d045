"""Automatic earliness: its law on any stream, and where it comes to rest on the thesis' streams."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import SnapshotError
from eventide.eventtime.early.prod import WindowEnds
from eventide.eventtime.early.triggers import Earliness
from tests.eventtime.prodded_streams import SECOND, Windows, uniform_stream

ERRORS = st.lists(st.floats(0, 3), min_size=1, max_size=80)
POLICIES = st.builds(
    Earliness,
    error=st.sampled_from([0.01, 0.05, 0.3]),
    earliest=st.sampled_from([0.0, 0.3]),
    latest=st.sampled_from([0.9, 1.0, 1.5]),
    speed=st.sampled_from([0.01, 0.05, 0.5]),
    memory=st.just(10_000),
)


@given(POLICIES, ERRORS, st.integers(0, 3), st.data())
@settings(max_examples=200)
def test_the_mean_error_of_any_stretch_keeps_to_the_law(
    policy: Earliness, wild: list[float], delay: int, data: st.DataObject
) -> None:
    """Whatever the stream does where the point is not the latest, also when answers are scored some windows later."""
    control = policy.start()
    asked: list[float] = []
    scored: list[float] = []
    for error in wild:
        asked.append(error if control.point < policy.latest else min(error, policy.error))
        if len(asked) > delay:
            scored.append(asked[len(scored)])
            control.score(scored[-1])
    start = data.draw(st.integers(0, max(0, len(scored) - 1)))
    stretch = scored[start:]
    if stretch:
        n, worst = len(stretch), max(stretch)
        bound = policy.error * (1 + (policy.latest - policy.earliest) / policy.speed / n) + worst * (1 + delay) / n
        assert np.mean(stretch) <= bound + 1e-9


@given(POLICIES, ERRORS)
def test_the_point_stays_within_its_bounds_and_moves_against_the_error(policy: Earliness, errors: list[float]) -> None:
    control = policy.start()
    for error in errors:
        before = control.point
        after = control.score(error)
        assert policy.earliest <= after <= policy.latest
        assert after <= before if error <= policy.error else after >= before


@given(POLICIES, ERRORS, st.lists(st.integers(0, 20), min_size=1, max_size=80))
def test_every_window_is_asked_for_once_however_the_point_moves(
    policy: Earliness, errors: list[float], steps: list[int]
) -> None:
    control, ends, now, last = policy.start(), WindowEnds(10, 3), 0, None
    for error, step in zip(errors, steps, strict=False):
        now += step
        prod = control.due(ends, now)
        if prod is not None:
            assert last is None or prod.after == last
            assert (prod.up_to + 1 - ends.anchor) % ends.slide == 0
            last = prod.up_to
        control.score(error)


@given(POLICIES, ERRORS, ERRORS)
def test_a_control_continues_from_its_snapshot_unchanged(
    policy: Earliness, before: list[float], after: list[float]
) -> None:
    control = policy.start()
    for error in before:
        control.score(error)
    again = policy.resume(control.snapshot())
    assert [control.score(error) for error in after] == [again.score(error) for error in after]
    assert control.running_error == again.running_error


def test_a_snapshot_of_something_else_is_refused() -> None:
    with pytest.raises(SnapshotError, match="not of 'earliness'"):
        Earliness(error=0.1).resume({"kind": "slack", "version": 1})


def prodded(policy: Earliness, stream: Windows, aggregate: str) -> tuple[list[float], list[float]]:
    """Points and errors, window by window, with a final answer half a second after the end of each."""
    control = policy.start()
    points, errors = [], []
    for end in range(30 * SECOND, int(stream.times[-1]), stream.slide):
        points.append(control.point)
        errors.append(stream.errors(end, control.point)[aggregate])
        control.score(errors[-1])
    return points, errors


@pytest.mark.parametrize("aggregate", ["sum", "count"])
@pytest.mark.parametrize("permitted", [0.05, 0.1, 0.2])
def test_sums_and_counts_come_to_rest_where_the_permitted_share_is_missing(aggregate: str, permitted: float) -> None:
    """A third of a window of 30 s every 10 s lies in its last slide; so a tenth is missing at 70 % of the slide."""
    points, errors = prodded(Earliness(error=permitted), uniform_stream(1, 4000), aggregate)
    assert np.mean(errors[100:]) == pytest.approx(permitted, rel=0.1)
    assert np.mean(points[100:]) == pytest.approx(1 - 3 * permitted, abs=0.06)


@pytest.mark.parametrize("aggregate", ["average", "max"])
def test_averages_and_maxima_are_asked_for_as_early_as_can_be(aggregate: str) -> None:
    """They are good enough from the first rows of the slide on, as figure 4.6 of the thesis shows."""
    points, errors = prodded(Earliness(error=0.02), uniform_stream(2, 4000), aggregate)
    assert np.mean(errors) < 0.02
    assert np.mean(points[100:]) < 0.1


def test_the_point_backs_off_when_the_rows_become_slow() -> None:
    """From the 200th window on, rows are up to 5 s on their way: what was right is too early."""
    calm, slow = uniform_stream(3, 2000), uniform_stream(4, 2000, delay=5.0)
    shift = 2000 * SECOND
    both = Windows(
        np.concatenate([calm.times, slow.times + shift]),
        np.concatenate([calm.arrivals, slow.arrivals + shift]),
        np.concatenate([calm.values, slow.values]),
    )
    policy = Earliness(error=0.05, latest=1.5)
    points, errors = prodded(policy, both, "count")
    half = 2000 // 10
    assert np.mean(points[half + 60 :]) > np.mean(points[half - 60 : half]) + 0.1
    assert np.mean(errors[half + 60 :]) == pytest.approx(0.05, rel=0.25)
    assert np.mean(errors) < 0.06


def test_one_wild_window_is_forgiven_in_the_end() -> None:
    control = Earliness(error=0.02, speed=0.05, memory=5).start()
    control.score(1000.0)
    assert [round(control.score(0.0), 6) for _ in range(6)] == [1.0, 1.0, 1.0, 1.0, 1.0, 0.95]
