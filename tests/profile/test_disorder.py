from __future__ import annotations

import statistics
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from eventide.profile.disorder import disorder, future_rows
from eventide.profile.reading import Recording
from tests.profile.recordings import recordings


@given(recordings())
def test_shares_out_of_order_agree_with_counting_row_by_row(recording: Recording) -> None:
    time, source = recording.time.tolist(), recording.source.tolist()
    late = [max(time[: row + 1]) - time[row] for row in range(recording.rows)]
    late_in_source = [
        max(time[other] for other in range(row + 1) if source[other] == source[row]) - time[row]
        for row in range(recording.rows)
    ]
    found = disorder(recording)
    assert found.out_of_order == sum(lateness > 0 for lateness in late) / recording.rows
    assert found.out_of_order_within_sources == sum(lateness > 0 for lateness in late_in_source) / recording.rows
    assert found.lateness["max"] == max(late)
    assert found.lateness["p50"] == sorted(late)[int(0.5 * (recording.rows - 1))]
    assert found.lateness_within_sources["max"] == max(late_in_source)


@given(recordings())
def test_every_source_is_described_as_if_it_were_alone(recording: Recording) -> None:
    found = disorder(recording).by_source
    for source in range(len(recording.source_names)):
        mine = recording.source == source
        arrival, delay = recording.arrival[mine].tolist(), (recording.arrival - recording.time)[mine].tolist()
        assert found.rows[source] == len(arrival)
        assert found.smallest_delay[source] == min(delay)
        assert found.median_delay[source] == statistics.median(delay)
        assert found.first_seen[source] == arrival[0]
        assert found.last_seen[source] == arrival[-1]
        gaps = [later - earlier for earlier, later in pairwise(arrival)]
        assert found.longest_silence[source] == max(gaps, default=0)
        rate = found.rate(per=10)[source]
        if arrival[-1] > arrival[0]:
            assert rate == pytest.approx(10 * (len(arrival) - 1) / (arrival[-1] - arrival[0]))
        else:
            assert np.isnan(rate)


def test_one_row_stamped_years_ahead_is_found_by_its_delay() -> None:
    arrival = np.arange(1_000) * 1_000
    time = arrival - np.tile([100, 300], 500)
    time[700] += 10**12
    recording = Recording.of("one from the future", time, arrival, ["a"] * 1_000)
    assert np.flatnonzero(future_rows(recording)).tolist() == [700]


def test_a_clock_that_is_ahead_for_all_rows_makes_none_of_them_a_future_row() -> None:
    arrival = np.arange(500) * 10
    recording = Recording.of("receiver behind", arrival + 1_270 + np.arange(500) % 7, arrival, ["a"] * 500)
    assert disorder(recording).future_rows == 0


def test_all_times_equal_is_perfect_order() -> None:
    found = disorder(Recording.of("equal", [5, 5, 5], [5, 6, 7], ["a", "b", "a"]))
    assert found.out_of_order == found.out_of_order_within_sources == 0.0
    assert found.delay == {"min": 0.0, "p50": 1.0, "p90": 1.0, "p95": 1.0, "p99": 1.0, "p99.9": 1.0, "max": 2.0}
