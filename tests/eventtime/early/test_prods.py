"""Prods and early triggers, against brute force over every instant."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.eventtime.early.prod import Prod, Timing, WindowEnds
from eventide.eventtime.early.triggers import AtPoints, ByProgress, EarlyTrigger, Every, Moment
from eventide.eventtime.instant import FOREVER, NEVER

ENDS = st.builds(WindowEnds, st.integers(1, 12), st.integers(-5, 5))
PRODDERS = st.one_of(
    st.builds(Every, st.integers(1, 9)),
    st.builds(
        AtPoints, st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 1.3, 2.5]), min_size=1, max_size=3).map(tuple)
    ),
)
LASTS = np.arange(-80, 120)


def asked(prods: tuple[Prod, ...]) -> set[int]:
    """The last instants that some prods ask for, of all that could be one."""
    return {int(last) for prod in prods for last in LASTS[prod.asks_for(LASTS)]}


@given(ENDS, PRODDERS, st.lists(st.integers(-30, 60), min_size=2, max_size=6).map(sorted))
def test_the_same_windows_are_asked_for_in_one_piece_or_in_many(
    ends: WindowEnds, trigger: EarlyTrigger, moments: list[int]
) -> None:
    lasts = {int(end) - 1 for end in LASTS if (end - ends.anchor) % ends.slide == 0}
    pieces = [trigger.due(ends, Moment(a), Moment(b)) for a, b in itertools.pairwise(moments)]
    whole = trigger.due(ends, Moment(moments[0]), Moment(moments[-1]))
    assert set().union(*(asked(piece) for piece in pieces)) & lasts == asked(whole) & lasts


@given(ENDS, st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, 1.3]), st.integers(-20, 20), st.integers(0, 40))
def test_each_window_is_asked_for_when_it_comes_to_the_point(
    ends: WindowEnds, point: float, start: int, length: int
) -> None:
    prods = AtPoints((point,)).due(ends, Moment(start), Moment(start + length))
    every_end = range(ends.anchor - 30 * ends.slide, ends.anchor + 30 * ends.slide + 1, ends.slide)
    due = {end - 1 for end in every_end if start < ends.due(end, point) <= start + length}
    grid = {end - 1 for end in every_end}
    assert asked(prods) & grid == due & set(LASTS.tolist())


@given(ENDS, st.integers(1, 9), st.integers(-20, 20), st.integers(0, 40))
def test_by_the_clock_windows_are_asked_for_that_are_over_or_in_their_last_slide(
    ends: WindowEnds, period: int, start: int, length: int
) -> None:
    prods = Every(period).due(ends, Moment(start), Moment(start + length))
    ticks = [tick for tick in range(start + 1, start + length + 1) if tick % period == 0]
    assert len(prods) == min(1, len(ticks))
    if ticks:
        assert prods[0].up_to == ends.at_or_after(ticks[-1]) - 1
        assert 0 <= prods[0].up_to + 1 - ticks[-1] < ends.slide


@given(ENDS, PRODDERS, st.integers(-20, 20), st.integers(0, 30), st.integers(-99, 99))
def test_by_progress_the_clock_does_not_matter(
    ends: WindowEnds, trigger: EarlyTrigger, start: int, length: int, clock: int
) -> None:
    found = ByProgress(trigger).due(ends, Moment(clock, start), Moment(clock + 1, start + length))
    assert found == trigger.due(ends, Moment(start), Moment(start + length))


def test_before_all_time_and_after_it_nothing_is_due() -> None:
    ends = WindowEnds(10)
    for trigger in (Every(5), AtPoints((0.5,)), ByProgress(Every(5))):
        assert trigger.due(ends, Moment(NEVER), Moment(NEVER)) == ()
        assert trigger.due(ends, Moment(0, 0), Moment(FOREVER, FOREVER)) == ()


@given(st.data())
@settings(max_examples=200)
def test_a_prod_is_late_early_or_repeated_exactly_when_its_answer_is_empty_or_known(data: st.DataObject) -> None:
    held = np.array(sorted(data.draw(st.sets(st.integers(0, 30), max_size=5))), dtype=np.int64)
    closed = data.draw(st.integers(-1, 31))
    prods = st.builds(
        lambda up_to, length, group: Prod(up_to, up_to - length, {} if group is None else {"k": group}),
        st.integers(0, 30),
        st.integers(1, 30),
        st.sampled_from([None, 1, 2, [1, 2], {"between": [2, 3]}, {"between": [None, 2]}]),
    )
    prod, before = data.draw(prods), data.draw(st.lists(prods, max_size=2))
    matching = [last for last in held if last > closed and prod.after < last <= prod.up_to]
    timing = prod.timing(closed, held, before)
    if timing is Timing.TOO_LATE:
        assert prod.up_to <= closed
        assert not matching
    elif timing is Timing.TOO_EARLY:
        assert prod.up_to > closed
        assert not matching
    else:
        assert matching
        answers = {
            (last, k)
            for p in before
            for last in range(31)
            for k in (1, 2, 3)
            if p.after < last <= p.up_to and p.matches({"k": k})
        }
        mine = {(last, k) for last in matching for k in (1, 2, 3) if prod.matches({"k": k})}
        if timing is Timing.REPEATED:
            assert mine <= answers
        else:
            assert not any(p.covers(prod) for p in before)
