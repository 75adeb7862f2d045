"""The rest of a drop ratio: what a silence of all sources brings, against plain arithmetic and against what is lost."""

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
from eventide.eventtime.policies.drop_ratio.policy import DropRatio, DropRatioGenerator
from eventide.eventtime.policies.drop_ratio.rest import Rest, Standing


@dataclass(frozen=True)
class Source:
    """A source when the last row of all came."""

    rows: int
    first: int
    extent: int
    born: int
    heard_for: int
    crowd: float

    @property
    def largest(self) -> int:
        return self.first + self.extent

    @property
    def heard(self) -> int:
        return self.born + self.heard_for

    def stake(self, time: int) -> float:
        """Rows that it would have stamped by then."""
        ahead = time - self.largest
        return self.crowd + self.rows * ahead / (ahead + max(self.extent, 1)) if ahead > 0 else 0.0


@st.composite
def a_source(draw: st.DrawFn) -> Source:
    rows = draw(st.integers(1, 300))
    return Source(
        rows=rows,
        first=draw(st.integers(0, 60)),
        extent=draw(st.integers(0, 200)),
        born=draw(st.integers(0, 60)),
        heard_for=draw(st.sampled_from([0, 1, 50, 100, 200, 400])),
        crowd=draw(st.floats(1, rows)),
    )


def standing(sources: list[Source]) -> Standing:
    arrays = (np.array([getattr(one, name) for one in sources]) for name in Standing._fields)
    return Standing(*arrays)


@given(
    st.lists(a_source(), min_size=1, max_size=4),
    st.integers(0, 40),
    st.integers(0, 40),
    st.floats(-5, 60),
    st.integers(0, 3_000),
)
def test_a_rest_is_what_its_law_says(
    sources: list[Source], pause: int, lateness: int, allowance: float, silent: int
) -> None:
    rest = Rest.of(standing(sources), pause, lateness, allowance)
    last = max(one.heard for one in sources)
    heard_for = last - min(one.born for one in sources)
    extent = max(one.largest for one in sources) - min(one.first for one in sources)
    at_once = round(pause * (extent / heard_for)) if heard_for else extent
    length = max(10 * pause, 10 * lateness, at_once)
    over = max(length, heard_for, extent)
    assert (rest.length, rest.over_after) == (length, over)

    def walked(silence: int) -> int:
        return int(silence * min(1.0, extent / heard_for)) if heard_for else silence

    base = min(max(one.largest for one in sources), *(one.largest + walked(last - one.heard) for one in sources))
    reach = min(one.largest for one in sources)
    while reach <= 2_000 and sum(one.stake(reach + 1) for one in sources) <= allowance:
        reach += 1
    surely = min(base + walked(over - length), reach) - 1
    expected = None
    if silent > over:
        expected = surely + min(walked(silent - over), extent)
    elif silent > length:
        expected = min(base + walked(silent - length), reach) - 1
    if reach <= 2_000:
        assert rest.heartbeat(silent) == expected
    assert rest.heartbeat(over + 1_000, may_be_over=False) == min(base + walked(over + 1_000 - length), rest.limit) - 1


def running(
    rounds: int, ratio: float = 0.01, sources: int = 2, gap: int = 10, late_by: int = 3, rows: int = 1
) -> DropRatioGenerator:
    """A stream of so many rounds, one every `gap`, with `rows` of each source, up to `late_by` behind the clock."""
    generator = DropRatio(ratio).start()
    for number in range(rounds):
        clock = gap * (number + 1)
        times = [clock - (number * (one + 3)) % (late_by + 1) for one in range(sources)]
        generator.observe(Arrivals.of_rows(clock, list(range(sources)) * rows, times * rows))
        generator.heartbeats(clock)
    return generator


def long_lived() -> DropRatioGenerator:
    """60,000 rows by the clock 3,000, 200 every 10: one in a hundred is 600, which take 30."""
    generator = running(300, rows=100)
    assert generator.account.rows == 60_000
    return generator


def test_the_last_window_of_a_stream_that_falls_silent_is_over_in_the_end() -> None:
    generator = long_lived()
    # The silence of single sources puts no more at stake than that of all.
    assert generator.heartbeats(3_000).combined < 3_015 <= generator.heartbeats(3_100 + 30).combined
    # After a silence as long as its life, half as many rows are expected of a stream in the same time.
    assert generator.heartbeats(5_900).combined <= 3_062


def test_a_young_stream_is_over_when_it_has_been_silent_for_longer_than_it_lived() -> None:
    generator = running(20)
    assert generator.heartbeats(200 + 190).combined < 200 + 30
    assert generator.heartbeats(200 + 200 + 60).combined >= 200 + 30
    assert generator.heartbeats(10**9).combined <= 200 + 200 + 10  # for as much time again as it has stamped


@given(
    st.integers(30, 300),
    st.sampled_from([0.01, 0.05, 0.2]),
    st.integers(1, 4),
    st.integers(1, 20),
    st.integers(0, 9),
    st.integers(1, 3_000),
)
@limits(max_examples=60)
def test_rows_that_were_held_up_are_lost_within_the_ratio(
    rounds: int, ratio: float, sources: int, gap: int, late_by: int, silent: int
) -> None:
    generator = running(rounds, ratio, sources, gap, min(late_by, gap - 1))
    last = gap * rounds
    rest = generator._current_rest()
    silent = min(silent, rest.over_after)
    generator.heartbeats(last + silent)
    promised = rest.heartbeat(silent)
    held_up = [time for time in range(last + gap, last + silent + 1, gap) for _ in range(sources)]
    lost = sum(promised is not None and time <= promised for time in held_up)
    # How densely rows are stamped is an estimate: from rows / (extent + silence), and a row more or less.
    assert (
        lost + generator.account.lost <= ratio / (1 - ratio) * generator.account.rows + sources + generator.account.lost
    )


def test_who_was_wrongly_taken_to_be_over_is_never_again() -> None:
    generator = running(20)
    clock = 200 + 350
    generator.heartbeats(clock)
    lost = generator.account.lost
    generator.observe(Arrivals.of_rows(clock, [0, 1], [320, 320]))
    assert generator.account.lost == lost + 2
    resumed = DropRatio(0.01).resume(json.loads(json.dumps(generator.snapshot(), default=as_plain)))
    for one in (generator, resumed):
        for number in range(20):
            one.observe(Arrivals.of_rows(clock + 10 * number, [0, 1], [clock + 10 * number] * 2))
        assert one.heartbeats(10**9).combined < clock + 200 + 30


@pytest.mark.parametrize("delay", [0, 20, 99])
def test_a_row_that_is_stamped_after_the_silence_is_in_time(delay: int) -> None:
    generator = long_lived()
    lost = generator.account.lost
    for silent in range(100, 201, 10):
        generator.heartbeats(3_000 + silent)
    generator.observe(Arrivals.of_row(3_200, 0, 3_200 - delay))
    assert generator.account.lost == lost


@given(st.integers(20, 60), st.lists(st.integers(1, 900), min_size=1, max_size=6))
@limits(max_examples=30)
def test_a_restart_in_the_middle_of_a_silence_changes_nothing(rounds: int, asked: list[int]) -> None:
    one = other = running(rounds)
    for silent in sorted(asked):
        other = DropRatio(0.01).resume(json.loads(json.dumps(other.snapshot(), default=as_plain)))
        clock = 10 * rounds + silent
        assert one.heartbeats(clock).combined == other.heartbeats(clock).combined
    assert one.snapshot() == other.snapshot()


def test_a_source_may_speak_for_the_first_time_with_an_old_row_after_the_longest_silence_of_all() -> None:
    """The silence was judged with the new source already counted, of which nothing was known: the round failed."""
    generator = DropRatio(0.05).start()
    for clock in range(600):
        generator.observe(Arrivals.of_row(clock, clock % 2, clock))
    before = generator.heartbeats(599).combined
    generator.observe(Arrivals.of_row(5_000, 2, 10))
    assert generator.heartbeats(5_000).combined >= before
    assert generator.account.lost == 1


def test_a_sequence_goes_on_at_its_own_pace() -> None:
    generator = DropRatio(0.01).start()
    for number in range(1_000):
        clock = 1_000_000 * number
        generator.observe(Arrivals.of_row(clock, 0, number))
        generator.heartbeats(clock)
    assert generator.heartbeats(clock + 10_000_000_000).combined <= 999 + 1_000 + 11
    # A thousandth of a minute is no reason to give up a number that is due every second.
    assert generator.heartbeats(clock).combined >= 999 - 1


def test_an_hour_that_was_delivered_at_once_says_nothing_of_the_next() -> None:
    generator = DropRatio(0.01).start()
    generator.observe(Arrivals.of_rows(0, [0] * 360, list(range(0, 3_600, 10))))
    before = generator.heartbeats(0).combined
    assert generator.heartbeats(3_590).combined == before


def test_a_stream_says_why_its_time_goes_on() -> None:
    generator = long_lived()
    generator.heartbeats(3_000)
    waiting = generator.why(0)
    assert [rule.rule for rule in waiting.lifted] == ["rest"]
    assert waiting.lifted[0].values == {"rest": 100}
    generator.heartbeats(6_500)
    assert generator.why(0).rule == "rest"
