"""The generated systems of the papers keep what they declare."""

from __future__ import annotations

import numpy as np
import pytest

from eventide.testing.building import MILLISECOND, SECOND
from eventide.testing.systems import counter_system, kim_experiment, sensor_system


@pytest.mark.parametrize("seed", range(5))
def test_tokens_are_given_once_and_each_worker_sends_them_in_order(seed: int) -> None:
    recording = counter_system(seed, sources=4, rows=3_000).recording
    assert sorted(recording.time.tolist()) == list(range(3_000))
    for source in range(4):
        assert (np.diff(recording.time[recording.source == source]) > 0).all()


@pytest.mark.parametrize("seed", range(5))
def test_after_the_declared_delay_no_worker_sends_an_older_token(seed: int) -> None:
    """STREAM 4.1: once i's token is out, j can still be busy with an older one, but not for longer than the skew."""
    system = counter_system(seed, sources=4, rows=3_000)
    recording = system.recording
    for j in range(4):
        of_j = np.flatnonzero(recording.source == j)
        smallest_to_come = np.minimum.accumulate(recording.time[of_j][::-1])[::-1]
        for i in range(4):
            of_i = np.flatnonzero(recording.source == i)
            # j's row left at least its latency bound before this instant, or after i's row plus the skew.
            safe = recording.arrival[of_i] + max(system.slowest[j] - system.fastest[i], 0) + system.latency[j]
            next_of_j = np.searchsorted(recording.arrival[of_j], safe, side="right")
            there = next_of_j < len(of_j)
            assert (smallest_to_come[next_of_j[there]] > recording.time[of_i][there]).all()


@pytest.mark.parametrize("seed", range(5))
def test_no_sensor_is_further_behind_another_than_both_deviations(seed: int) -> None:
    """STREAM 4.2, at arrival: what j sends later than its latency after i's row is above i's time minus both."""
    system = sensor_system(seed, sources=5, seconds=200)
    recording = system.recording
    for j in range(5):
        of_j = np.flatnonzero(recording.source == j)
        smallest_to_come = np.minimum.accumulate(recording.time[of_j][::-1])[::-1]
        for i in range(5):
            of_i = np.flatnonzero(recording.source == i)
            skew = system.deviation[i] + system.deviation[j] if i != j else system.deviation[i]
            next_of_j = np.searchsorted(
                recording.arrival[of_j], recording.arrival[of_i] + system.latency[j], side="right"
            )
            there = next_of_j < len(of_j)
            assert (smallest_to_come[next_of_j[there]] > recording.time[of_i][there] - skew).all()


def test_sensor_clocks_run_ahead_and_behind_and_are_set_back() -> None:
    system = sensor_system(0)
    delay = system.recording.arrival - system.recording.time
    assert delay.min() < 0
    assert delay.max() > max(system.latency)


def test_kims_sensors_send_a_row_a_second_with_normal_latency() -> None:
    recording = kim_experiment(3)
    delay = recording.arrival - recording.time
    for source in range(20):
        assert set(np.diff(np.sort(recording.time[recording.source == source])).tolist()) == {SECOND}
    assert delay.mean() == pytest.approx(500 * MILLISECOND, rel=0.02)
    assert delay.std() == pytest.approx(150 * MILLISECOND, rel=0.02)
    within_one_deviation = np.abs(delay - delay.mean()) < delay.std()
    assert within_one_deviation.mean() == pytest.approx(0.683, abs=0.01)
