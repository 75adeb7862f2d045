from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import DeclarationError
from eventide.profile.dry_run import Timetable
from eventide.profile.reading import Recording
from tests.profile.recordings import recordings


@given(recordings())
def test_row_at_a_time_a_question_is_asked_at_the_clock_of_every_row_before_and_after_it(recording: Recording) -> None:
    plan = Timetable.row_at_a_time(recording)
    assert plan.questions[plan.after].tolist() == recording.arrival.tolist()
    assert plan.questions[plan.after - 1].tolist() == recording.arrival.tolist()
    # Between two rows of one instant, one question serves as the answer after the first and before the second.
    distinct = len(set(recording.arrival.tolist()))
    assert len(plan.questions) == recording.rows + distinct


@given(recordings(), st.integers(1, 30))
def test_rows_arrive_at_the_end_of_the_round_their_arrival_falls_into(recording: Recording, length: int) -> None:
    plan = Timetable.in_rounds(recording, length)
    for row, step in enumerate(plan.step_of_row):
        end = int(plan.questions[plan.after[step]])
        assert end % length == 0
        assert end - length <= recording.arrival[row] < end
        assert plan.questions[plan.after[step] - 1] == end - length


@given(recordings(), st.integers(1, 30))
def test_in_a_silence_questions_are_asked_after_1_2_4_and_8_rounds_and_at_its_end(
    recording: Recording, length: int
) -> None:
    plan = Timetable.in_rounds(recording, length)
    ends = sorted({int(arrival) // length * length + length for arrival in recording.arrival})
    expected = [ends[0] - length]
    for end, following in zip(ends, [*ends[1:], None], strict=True):
        expected.append(end)
        if following is not None and following - length > end:
            ticks = [end + length * 2**k for k in range(64) if end + length * 2**k < following - length]
            expected += [*ticks, following - length]
    assert plan.questions.tolist() == expected


@given(recordings(), st.none() | st.integers(1, 30))
def test_the_steps_bring_every_row_once(recording: Recording, length: int | None) -> None:
    plan = Timetable.row_at_a_time(recording) if length is None else Timetable.in_rounds(recording, length)
    steps = list(plan.arrivals())
    assert sum(step.total for step in steps) == recording.rows
    assert [step.clock for step in steps] == plan.questions[plan.after].tolist()
    for at, step in enumerate(steps):
        rows = slice(plan.first_row[at], plan.first_row[at + 1])
        assert step.latest.max() == recording.time[rows].max()
        assert step.sources.tolist() == sorted(set(recording.source[rows].tolist()))


def test_a_round_without_length_is_refused() -> None:
    with pytest.raises(DeclarationError, match="no length"):
        Timetable.in_rounds(Recording.of("one", [1], [1], ["a"]), 0)
