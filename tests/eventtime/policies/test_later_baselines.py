"""Baselines of later work: each against its law, written out row by row over all rows seen."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import NEVER
from eventide.eventtime.policies.adaptive_window import AdaptiveWindow
from eventide.eventtime.policies.delay_quantile import DelayQuantile
from eventide.eventtime.policies.quality_driven import QualityDriven
from tests.eventtime.policies.test_simple_policies import Row, after_each_row, rows


def slack_by_the_book(times: list[int], ratio: float, interval: int, window: int) -> list[int]:
    """The heartbeats of a quality-driven slack, with every lateness kept and everything computed anew."""
    shown, largest, slack, share, error, heartbeat = [], NEVER, 0, 1 - ratio, 0.0, NEVER
    lateness: list[int] = []
    lost: list[bool] = []
    for count, time in enumerate(times, start=1):
        lateness.append(max(0, largest - time) if count > 1 else 0)
        lost.append(time <= heartbeat)
        largest = max(largest, time)
        if count % interval == 0:
            now = sum(lost[-interval:]) / interval - ratio
            if count > interval:
                share = min(1.0, max(0.0, share + 0.5 * now + 0.25 * (now - error)))
            error = now
            known = sorted(lateness[-window:])
            slack = known[min(max(1, math.ceil(share * len(known))), len(known)) - 1]
        elif count < interval:
            slack = max(slack, lateness[-1])
        heartbeat = max(heartbeat, largest - slack - 1)
        shown.append(heartbeat)
    return shown


@given(rows, st.sampled_from([0.05, 0.3, 0.9]), st.integers(1, 7), st.integers(1, 30))
def test_quality_driven_slack_follows_what_was_lost(
    stream: list[Row], ratio: float, interval: int, window: int
) -> None:
    expected = slack_by_the_book([time for _, _, time in stream], ratio, interval, window)
    assert after_each_row(QualityDriven(ratio, interval, window), stream) == expected


@given(rows)
def test_before_its_first_block_an_adaptive_window_holds_all_rows(stream: list[Row]) -> None:
    assert after_each_row(AdaptiveWindow(0.9), stream) == after_each_row(DelayQuantile(0.9, 1000), stream)


def test_an_adaptive_window_keeps_what_only_chance_moves_and_forgets_what_has_changed() -> None:
    rng = np.random.default_rng(5)
    generator = AdaptiveWindow(0.9).start()
    held = []
    for clock in range(6400):
        delay = int(rng.integers(0, 100)) + (0 if clock < 3200 else 60)
        generator.observe(Arrivals.of_row(clock, 0, clock - delay))
        held.append(generator.rows)
    assert held[:3200] == list(range(1, 3201)), "nothing changed, and rows were forgotten"
    shrinking = [after for before, after in pairwise(held) if after < before]
    assert len(shrinking) == 1
    assert held[-1] == 3200, "the window does not begin about where delays changed"


def test_an_adaptive_window_is_bounded() -> None:
    generator = AdaptiveWindow(0.5).start()
    for clock in range(300):
        generator.observe(Arrivals.of_rows(clock, [0] * 64, range(clock, clock + 64)))
    assert 9_900 <= generator.rows <= 10_000


@pytest.mark.parametrize(
    "declare",
    [
        lambda: AdaptiveWindow(0),
        lambda: AdaptiveWindow(1.0),
        lambda: QualityDriven(0),
        lambda: QualityDriven(0.1, interval_rows=0),
        lambda: QualityDriven(0.1, window_rows=0),
    ],
)
def test_impossible_declarations_are_refused(declare: object) -> None:
    with pytest.raises(DeclarationError):
        declare()  # type: ignore[operator]
