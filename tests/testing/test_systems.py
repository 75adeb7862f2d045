"""The generated systems of the papers keep what they declare."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from eventide.profile.reading import Recording
from eventide.testing.streams import MILLISECOND, SECOND
from eventide.testing.systems import counter_system, kim_experiment, sensor_system


@pytest.mark.parametrize("seed", range(5))
def test_tokens_are_given_once_and_each_worker_sends_them_in_order(seed: int) -> None:
    recording = counter_system(seed, sources=4, rows=3_000).recording
    assert sorted(recording.time.tolist()) == list(range(3_000))
    for source in range(4):
        assert (np.diff(recording.time[recording.source == source]) > 0).all()


def smallest_to_come(recording: Recording, source: int, after: NDArray[np.int64]) -> NDArray[np.float64]:
    """The smallest time that a source sends after each of these instants of arrival; infinity when it sends no more."""
    mine = recording.source == source
    from_here_on = np.minimum.accumulate(recording.time[mine][::-1].astype(np.float64))[::-1]
    following = np.searchsorted(recording.arrival[mine], after, side="right")
    return np.append(from_here_on, np.inf)[following]


@pytest.mark.parametrize("seed", range(5))
def test_after_the_declared_delay_no_worker_sends_an_older_token(seed: int) -> None:
    """STREAM 4.1: once i's token is out, j can still be busy with an older one, but not for longer than the skew."""
    system = counter_system(seed, sources=4, rows=3_000)
    recording = system.recording
    for i, j in product(range(4), repeat=2):
        of_i = recording.source == i
        # j's row left at least its latency bound before this instant, or after i's row plus the skew.
        safe = recording.arrival[of_i] + max(system.slowest[j] - system.fastest[i], 0) + system.latency[j]
        assert (smallest_to_come(recording, j, safe) > recording.time[of_i]).all()


@pytest.mark.parametrize("seed", range(5))
def test_no_sensor_is_further_behind_another_than_both_deviations(seed: int) -> None:
    """STREAM 4.2, at arrival: what j sends later than its latency after i's row is above i's time minus both."""
    system = sensor_system(seed, sources=5, seconds=200)
    recording = system.recording
    for i, j in product(range(5), repeat=2):
        of_i = recording.source == i
        skew = system.deviation[i] + system.deviation[j] if i != j else system.deviation[i]
        safe = recording.arrival[of_i] + system.latency[j]
        assert (smallest_to_come(recording, j, safe) > recording.time[of_i] - skew).all()


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
