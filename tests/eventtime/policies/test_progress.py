"""Progress of sources against plain numbers; leaps need a second witness; digestion keeps what cells can tell."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from eventide.eventtime.arrays import as_plain
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import resumed
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants
from eventide.eventtime.policies.drop_ratio.progress import Progress

TEN_YEARS = 10 * 365 * 86_400


@dataclass
class Plain:
    """What is known of one source, row by row, in Python's own numbers."""

    rows: int = 0
    largest: int = -EDGE
    first: int = 0
    born: int = 0
    heard: int = 0
    leap: int = 0
    doubted: bool = False

    def note(self, clock: int, time: int, longest_silence: int) -> None:
        expected = min(self.largest + clock - self.heard, EDGE)
        bound = expected + 16 * max(self.leap, longest_silence) if self.rows >= 8 else EDGE
        believed = time <= bound or self.doubted
        self.doubted = not believed
        if believed and time > self.largest:
            if self.rows:
                self.leap = max(self.leap, time - expected)
            self.largest = time
        self.first = time if self.rows == 0 else min(self.first, time)
        self.born = self.born if self.rows else clock
        self.heard = clock
        self.rows += 1


def no_silence(places: int, length: int = 0) -> Instants:
    return np.full(places, length, dtype=np.int64)


def heard(rows: list[tuple[int, int]], longest_silence: int = 0) -> Progress:
    """The progress of one source after rows of (clock, time)."""
    progress = Progress(places=1)
    for clock, time in rows:
        progress.note(Arrivals.of_row(clock, 0, time), no_silence(1, longest_silence))
    return progress


def regular(count: int) -> list[tuple[int, int]]:
    """A row every ten, in order, five after its time."""
    return [(10 * number + 5, 10 * number) for number in range(count)]


STEP = st.one_of(st.integers(0, 12), st.sampled_from([200, 10**6]))
TIME = st.one_of(st.integers(-20, 150), st.sampled_from([-EDGE, 10**9, EDGE]))


@limits(max_examples=200)
@given(st.lists(st.tuples(st.integers(0, 2), STEP, TIME), max_size=60), st.integers(0, 20))
def test_row_by_row_it_knows_what_plain_numbers_know(rows: list[tuple[int, int, int]], longest_silence: int) -> None:
    progress, plain = Progress(places=3), [Plain(), Plain(), Plain()]
    clock = 0
    for source, step, time in rows:
        clock += step
        progress.note(Arrivals.of_row(clock, source, time), no_silence(3, longest_silence))
        plain[source].note(clock, time, longest_silence)
    for name in vars(Plain()):
        assert getattr(progress, name).tolist() == [getattr(source, name) for source in plain], name


def test_a_single_row_stamped_years_ahead_moves_nothing() -> None:
    before = heard(regular(20))
    after = heard([*regular(20), (205, 200 + TEN_YEARS)])
    assert after.largest == before.largest
    assert after.leap == before.leap
    again = heard([*regular(20), (205, 200 + TEN_YEARS), (215, 210)])
    assert again.largest.tolist() == [210]
    assert again.doubted.tolist() == [0]


def test_single_rows_of_the_future_are_never_believed_while_honest_ones_lie_between() -> None:
    rows = regular(20)
    for number in range(20, 60, 2):
        rows += [(10 * number + 5, 10 * number + TEN_YEARS), (10 * number + 15, 10 * number + 10)]
    assert heard(rows).largest.tolist() == [590]


def test_a_clock_that_is_set_forward_costs_one_row_of_waiting() -> None:
    ahead = [(clock, time + TEN_YEARS) for clock, time in regular(24)[20:]]
    assert heard([*regular(20), ahead[0]]).largest.tolist() == [190]
    assert heard([*regular(20), *ahead[:2]]).largest.tolist() == [210 + TEN_YEARS]
    assert heard([*regular(20), *ahead]).largest.tolist() == [230 + TEN_YEARS]


def test_a_leap_within_sixteen_times_the_longest_silence_is_believed_at_once() -> None:
    # Expected at clock 205 is 200: the source stood at 190, ten ago.
    assert heard([*regular(20), (205, 200 + 160)], longest_silence=10).largest.tolist() == [360]
    assert heard([*regular(20), (205, 200 + 161)], longest_silence=10).largest.tolist() == [190]


def test_two_rows_of_one_round_are_two_witnesses() -> None:
    progress = heard(regular(20))
    together = Arrivals.of_rows(205, [0, 0, 0], [200, 200 + TEN_YEARS, 201 + TEN_YEARS], cell_width=1)
    progress.note(together, no_silence(1))
    assert progress.largest.tolist() == [201 + TEN_YEARS]


def test_one_row_of_the_future_in_a_round_leaves_the_others_of_its_round_believed() -> None:
    progress = heard(regular(20))
    together = Arrivals.of_rows(205, [0, 0, 0], [200, 201, 200 + TEN_YEARS], cell_width=10)
    progress.note(together, no_silence(1, length=10))
    assert progress.largest.tolist() == [201]


def test_witnesses_of_one_source_say_nothing_of_another() -> None:
    progress = Progress(places=2)
    for clock, time in regular(20):
        progress.note(Arrivals.of_rows(clock, [0, 1], [time, time]), no_silence(2))
    progress.note(Arrivals.of_rows(205, [0, 1], [200 + TEN_YEARS, 200 + TEN_YEARS]), no_silence(2))
    assert progress.largest.tolist() == [190, 190]
    progress.note(Arrivals.of_row(215, 1, 210 + TEN_YEARS), no_silence(2))
    assert progress.largest.tolist() == [190, 210 + TEN_YEARS]


@limits(max_examples=100)
@given(st.lists(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 60)), min_size=1, max_size=8), max_size=12))
def test_rounds_without_leaps_end_where_their_rows_end(rounds: list[list[tuple[int, int]]]) -> None:
    progress = Progress(places=3)
    for clock, rows in enumerate(rounds):
        sources, times = zip(*rows, strict=True)
        progress.note(Arrivals.of_rows(clock, sources, times, cell_width=7), no_silence(3, 100))
    for source in range(3):
        said = [time for rows in rounds for at, time in rows if at == source]
        assert progress.rows[source] == len(said)
        if said:
            assert (progress.largest[source], progress.first[source]) == (max(said), min(said))


@limits(max_examples=100)
@given(st.lists(st.integers(1, 6), min_size=1, max_size=20), st.integers(1, 9))
def test_the_mean_crowd_is_how_many_rows_share_the_time_of_a_row(crowds: list[int], round_size: int) -> None:
    """In order: so many rows at each time. A round may cut a crowd in two, and then it counts for half at least."""
    times = [time for time, crowd in enumerate(crowds) for _ in range(crowd)]
    progress = Progress(places=1)
    for clock, first in enumerate(range(0, len(times), round_size)):
        rows = times[first : first + round_size]
        progress.note(Arrivals.of_rows(clock, [0] * len(rows), rows, cell_width=1), no_silence(1, 100))
    expected = sum(crowd * crowd for crowd in crowds) / len(times)
    found = progress.mean_crowd()[0]
    assert expected / 2 <= found <= expected
    if round_size == 1:
        assert found == pytest.approx(expected)


def test_the_expected_time_runs_on_with_the_clock() -> None:
    progress = heard(regular(3))  # 20, said at 25
    assert progress.expected(np.array([0]), clock=25).tolist() == [20]
    assert progress.expected(np.array([0]), clock=100).tolist() == [95]


@limits(max_examples=60)
@given(st.lists(st.tuples(st.sampled_from([NEVER, -1, 0, FOREVER]), st.sampled_from([NEVER, 0, FOREVER])), max_size=20))
def test_the_ends_of_int64_stay_within_the_edges(rows: list[tuple[int, int]]) -> None:
    progress, clock = Progress(places=1), NEVER
    for later, time in rows:
        clock = max(clock, later)
        progress.note(Arrivals.of_row(clock, 0, time).within_edges(), no_silence(1, 2 * EDGE))
        for name in ("largest", "first", "born", "heard"):
            assert abs(int(getattr(progress, name)[0])) <= EDGE
        assert progress.leap[0] >= 0
        assert abs(int(progress.expected(np.array([0]), EDGE)[0])) <= EDGE


def test_a_grown_progress_keeps_what_it_knows() -> None:
    progress = heard(regular(20))
    progress.grow(3)
    assert progress.largest.tolist() == [190, -EDGE, -EDGE]
    assert progress.rows.tolist() == [20, 0, 0]


@limits(max_examples=60)
@given(st.lists(st.tuples(STEP, TIME), min_size=1, max_size=30), st.data())
def test_a_snapshot_through_json_changes_nothing(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    clocks = np.cumsum([step for step, _ in rows]).tolist()
    told = [(clock, time) for clock, (_, time) in zip(clocks, rows, strict=True)]
    cut = data.draw(st.integers(0, len(rows)))
    restored = resumed(Progress(0), json.loads(json.dumps(heard(told[:cut]).snapshot(), default=as_plain)))
    for clock, time in told[cut:]:
        restored.note(Arrivals.of_row(clock, 0, time), no_silence(1))
    assert restored.snapshot() == heard(told).snapshot()
