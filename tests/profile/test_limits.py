from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.profile.dry_run import dry_run, timetable
from eventide.profile.profiling import clairvoyant, fixed_best, permitted_rows
from eventide.profile.reading import Recording
from tests.profile.recordings import recordings

ratios = st.sampled_from([0.01, 0.1, 0.25, 0.5, 0.9])
lengths = st.none() | st.integers(1, 20)


@given(recordings(), ratios, lengths)
def test_the_best_constant_keeps_the_ratio_and_none_smaller_does(
    recording: Recording, ratio: float, length: int | None
) -> None:
    best = fixed_best(timetable(recording, length), ratio)
    assert best.run.outcome == dry_run(recording, FixedDelay(best.delay), length).outcome
    assert best.run.outcome.drop_ratio <= ratio
    for delay in range(best.delay):
        assert dry_run(recording, FixedDelay(delay), length).outcome.drop_ratio > ratio


@given(recordings(), ratios)
def test_the_clairvoyant_releases_a_row_when_all_kept_rows_up_to_its_time_are_there(
    recording: Recording, ratio: float
) -> None:
    outcome = clairvoyant(timetable(recording, None), ratio)
    largest, behind = None, []
    for time in recording.time.tolist():
        behind.append(float("-inf") if largest is None else largest - time)
        largest = time if largest is None else max(largest, time)
    # Of equally late rows the last to arrive go first.
    latest = sorted(range(recording.rows), key=lambda row: (behind[row], row), reverse=True)
    kept = sorted(latest[permitted_rows(ratio, recording.rows) :])
    lags = [
        max(int(recording.arrival[other]) for other in kept if recording.time[other] <= recording.time[row])
        - int(recording.arrival[row])
        for row in kept
    ]
    assert outcome.drop_ratio == pytest.approx(1 - len(kept) / recording.rows)
    assert outcome.lag_mean == pytest.approx(sum(lags) / len(lags))


@given(recordings(), lengths)
def test_nothing_that_loses_no_row_beats_the_clairvoyant(recording: Recording, length: int | None) -> None:
    plan = timetable(recording, length)
    limit = clairvoyant(plan, 1e-9)
    best = fixed_best(plan, 1e-9)
    assert limit.drop_ratio == best.run.outcome.drop_ratio == 0.0
    assert limit.lag_mean is not None
    assert best.run.outcome.lag_mean is not None
    # Rows that the constant never reaches are let go at the end, which the clairvoyant may not do for equal times.
    assert limit.lag_mean <= best.run.outcome.lag_mean


def test_rows_in_order_need_one_unit_of_delay_only_where_times_repeat() -> None:
    apart = Recording.of("apart", [1, 2, 3], [1, 2, 3], ["a"] * 3)
    equal = Recording.of("equal", [1, 2, 2], [1, 2, 3], ["a"] * 3)
    assert fixed_best(timetable(apart, None), 0.1).delay == 0
    assert fixed_best(timetable(equal, None), 0.1).delay == 1
