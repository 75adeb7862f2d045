"""Silence: what is proven, what is staked and out of what, and when a source is gone; against plain arithmetic."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from eventide.eventtime.arrays import as_plain
from eventide.eventtime.heartbeat import resumed
from eventide.eventtime.instant import EDGE
from eventide.eventtime.policies.drop_ratio.silence import LossBudget, Silence, StampStatistics


@dataclass(frozen=True)
class Source:
    """A source that is silent now, and what is known of it."""

    silent: int
    proven: int
    rows: int
    crowd: float
    extent: int
    may_lose: float

    def stake(self, trusted: int) -> float:
        """Rows that would be lost if the source were only held up."""
        beyond = trusted - self.proven
        return self.crowd + self.rows * beyond / (beyond + max(self.extent, 1)) if beyond > 0 else 0.0


@st.composite
def sources(draw: st.DrawFn) -> Source:
    rows = draw(st.integers(1, 500))
    return Source(
        silent=draw(st.integers(0, 2_000)),
        proven=draw(st.sampled_from([0, 0, 10, 500, 3_000])),
        rows=rows,
        crowd=draw(st.floats(1, rows)),
        extent=draw(st.integers(0, 5_000)),
        may_lose=draw(st.floats(-5, 60)),
    )


def silence_of(sources: list[Source], bad_ends: int = 0, good_ends: int = 0) -> Silence:
    """Sources whose silences ended well up to what is proven; a last place stands for silences of others."""
    silence = Silence(places=len(sources) + 1)
    proven = np.array([source.proven for source in sources])
    silence.end(np.arange(len(sources)), proven, np.zeros(len(sources), dtype=np.bool_))
    other = np.array([len(sources)])
    for number in range(bad_ends + good_ends):
        silence.end(other, np.array([EDGE // 2 + number]), np.array([number < bad_ends]))
    return silence


def chance(sources: list[Source], bad_ends: int, good_ends: int) -> float:
    """How often silences beyond the proven ones ended badly, with one of each kind added."""
    ended = sum(source.proven > 0 for source in sources) + bad_ends + good_ends
    return (bad_ends + 1) / (ended + 2)


def trusted(silence: Silence, sources: list[Source], reserve: float, rare: float = 0.0) -> list[int]:
    """What is trusted of each source; the last place has one row and is not silent."""
    stamped = StampStatistics(
        rows=np.array([*(source.rows for source in sources), 1]),
        crowd=np.array([*(source.crowd for source in sources), 1.0]),
        extent=np.array([*(source.extent for source in sources), 1]),
    )
    silent = np.array([*(source.silent for source in sources), 0])
    budget = LossBudget(reserve, np.array([*(source.may_lose for source in sources), 0.0]), rare)
    answer: list[int] = silence.trusted(silent, stamped, budget, np.ones(len(silent), dtype=np.bool_))[:-1].tolist()
    return answer


SOURCES = st.lists(sources(), min_size=1, max_size=6)
ENDS = st.sampled_from([(0, 0), (0, 30), (30, 0), (5, 5)])


@limits(max_examples=200)
@given(SOURCES, ENDS, st.floats(0, 200), st.sampled_from([0.0, 20.0]))
def test_stakes_stay_within_the_reserve_and_within_what_each_source_may_lose(
    sources: list[Source], ends: tuple[int, int], reserve: float, rare: float
) -> None:
    answer = trusted(silence_of(sources, *ends), sources, reserve, rare)
    # Whole numbers of time: a stake may be off by the rows of one.
    stakes = [source.stake(length - 1) for source, length in zip(sources, answer, strict=True)]
    assert chance(sources, *ends) * sum(stakes) <= reserve + 1e-6
    for source, length, stake in zip(sources, answer, stakes, strict=True):
        assert 0 <= length <= source.silent
        assert stake <= reserve + 1e-6
        assert stake <= max(source.may_lose, 0) + 1e-6 or source.rows < rare


@limits(max_examples=100)
@given(SOURCES, ENDS)
def test_a_silence_no_longer_than_a_proven_one_is_trusted_whole(sources: list[Source], ends: tuple[int, int]) -> None:
    answer = trusted(silence_of(sources, *ends), sources, reserve=1e6)
    for source, length in zip(sources, answer, strict=True):
        if source.silent <= source.proven:
            assert length == source.silent


@limits(max_examples=100)
@given(SOURCES, st.floats(0, 200))
def test_the_smallest_stakes_come_first(sources: list[Source], reserve: float) -> None:
    rich = [Source(s.silent, 0, s.rows, s.crowd, s.extent + 1_000, may_lose=1e9) for s in sources]
    answer = trusted(silence_of(rich), rich, reserve)
    whole = [s.stake(s.silent) for s, length in zip(rich, answer, strict=True) if 0 < s.silent == length]
    part = [s.stake(s.silent) for s, length in zip(rich, answer, strict=True) if length < s.silent]
    # At most half a row is stamped in one unit of time, and whole numbers of it may be off by one.
    assert not whole or not part or max(whole) <= min(part) + 0.5


@limits(max_examples=100)
@given(sources(), st.floats(0, 200), st.floats(0, 200))
def test_of_one_source_a_larger_reserve_trusts_no_less(source: Source, less: float, more: float) -> None:
    silence = silence_of([source])
    less, more = sorted((less, more))
    assert trusted(silence, [source], less) <= trusted(silence, [source], more)


def test_a_source_that_stamps_many_rows_with_one_time_is_not_trusted_at_all() -> None:
    """A host silent for 45 s and then sending 1,300 rows of one second loses all to one microsecond too many."""
    host = Source(silent=45_000_000, proven=0, rows=1_300, crowd=1_300, extent=1, may_lose=100.0)
    assert trusted(silence_of([host]), [host], reserve=100.0) == [0]


def test_a_rare_source_is_not_waited_for_however_little_it_may_lose() -> None:
    rare = Source(silent=1_000, proven=0, rows=4, crowd=1, extent=900, may_lose=-1.0)
    assert trusted(silence_of([rare]), [rare], reserve=50.0) == [0]
    assert trusted(silence_of([rare]), [rare], reserve=50.0, rare=5.0) == [1_000]


def test_silences_that_end_badly_make_further_stakes_dearer() -> None:
    sources = [Source(silent=1_000, proven=0, rows=10, crowd=1, extent=1_000, may_lose=99.0) for _ in range(20)]
    learned_well = trusted(silence_of(sources, good_ends=30), sources, reserve=12.0)
    learned_badly = trusted(silence_of(sources, bad_ends=30), sources, reserve=12.0)
    assert learned_well.count(1_000) == 20
    assert learned_badly.count(1_000) == 2


def test_a_silence_that_ended_badly_takes_back_what_was_proven() -> None:
    source = Source(silent=400, proven=0, rows=100, crowd=1, extent=1_000, may_lose=0.0)
    silence = Silence(places=2)
    at = np.array([0])
    silence.end(at, np.array([500]), np.array([False]))
    assert trusted(silence, [source], reserve=1e3) == [400]
    silence.end(at, np.array([300]), np.array([True]))
    assert trusted(silence, [source], reserve=1e3) == [300]
    assert silence.longest[0] == 500


@limits(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 100), st.booleans()), max_size=20), st.integers(0, 2_000))
def test_a_source_is_gone_after_ten_of_its_longest_silences_and_as_long_as_it_was_heard_or_stamped_rows_for(
    ends: list[tuple[int, bool]], heard_for: int
) -> None:
    extent = 2 * heard_for // 3 + 5
    silence = Silence(places=1)
    for length, badly in ends:
        silence.end(np.array([0]), np.array([length]), np.array([badly]))
    longest = max((length for length, _ in ends), default=0)
    gone_after = silence.gone_after(np.array([heard_for]), np.array([extent]))
    assert gone_after.tolist() == [max(10 * (longest or extent), heard_for, extent)]


def test_a_source_that_is_gone_stakes_nothing() -> None:
    silence = Silence(places=2)
    stamped = StampStatistics(rows=np.array([50, 50]), crowd=np.array([1.0, 1.0]), extent=np.array([100, 100]))
    silent, budget = np.array([90, 90]), LossBudget(30.0, np.array([60.0, 60.0]), 0.0)
    both, one = np.array([True, True]), np.array([False, True])
    assert silence.trusted(silent, stamped, budget, both).tolist() == [90, 50]
    assert silence.trusted(silent, stamped, budget, one).tolist() == [90, 90]


@pytest.mark.parametrize("length", [1, 10**6, EDGE])
def test_the_longest_silences_neither_wrap_around_nor_raise(length: int) -> None:
    source = Source(silent=2 * EDGE, proven=0, rows=100, crowd=2, extent=2 * EDGE, may_lose=5.0)
    silence = Silence(places=2)
    silence.end(np.array([0]), np.array([length]), np.array([False]))
    assert 0 <= trusted(silence, [source], reserve=9.0)[0] <= 2 * EDGE
    assert trusted(silence, [source], reserve=1e9)[0] >= length
    assert silence.gone_after(np.array([2 * EDGE, 0]), np.array([0, 0]))[0] >= 2 * EDGE


def test_new_places_have_proven_nothing() -> None:
    source = Source(silent=100, proven=0, rows=10, crowd=1, extent=100, may_lose=0.0)
    silence = Silence(places=0)
    silence.grow(2)
    assert trusted(silence, [source], reserve=9.0) == [0]
    assert silence.longest.tolist() == [0, 0]


@limits(max_examples=60)
@given(SOURCES, ENDS, st.floats(0, 200))
def test_a_snapshot_through_json_changes_nothing(sources: list[Source], ends: tuple[int, int], reserve: float) -> None:
    silence = silence_of(sources, *ends)
    restored = resumed(Silence(0), json.loads(json.dumps(silence.snapshot(), default=as_plain)))
    for one in (silence, restored):
        one.end(np.array([0]), np.array([20_000]), np.array([True]))
    assert trusted(restored, sources, reserve) == trusted(silence, sources, reserve)
    assert restored.snapshot() == silence.snapshot()
