from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.errors import DeclarationError
from eventide.eventtime.policies.skew.bounds import (
    LONGEST,
    BoundSet,
    RowBound,
    TimeBound,
    implies,
    join_senders,
    join_targets,
    simplified,
)
from eventide.eventtime.policies.skew.confidence import loss_at_most
from eventide.eventtime.policies.skew.matrix import SkewMatrix
from eventide.eventtime.policies.skew.per_source import PerSourceSkew, RowTerm, TimeTerm
from tests.eventtime.policies.skew_environment import any_bounds, time_bounds

bound_sets = st.lists(any_bounds, max_size=5).map(tuple)
time_sets = st.lists(time_bounds, min_size=1, max_size=5).map(tuple)
shares = st.sampled_from([0.0, 0.125, 0.25])


def lag_after(bounds: BoundSet, after: int, rows: int) -> float:
    """The strongest lag once `after` of clock time has passed and the target has emitted `rows` rows since."""
    met = (
        bound.lag for bound in bounds if (bound.after <= after if isinstance(bound, TimeBound) else bound.rows <= rows)
    )
    return min(met, default=math.inf)


@given(bound_sets, st.integers(0, 6), st.integers(0, 5))
def test_simplifying_a_set_changes_nothing_it_promises(bounds: BoundSet, after: int, rows: int) -> None:
    assert lag_after(simplified(bounds), after, rows) == lag_after(bounds, after, rows)


@given(bound_sets)
def test_a_simplified_set_has_no_bound_that_another_implies(bounds: BoundSet) -> None:
    kept = simplified(bounds)
    assert not any(implies(a, b) for a in kept for b in kept if a is not b)


@given(st.lists(time_sets, min_size=1, max_size=4))
def test_the_join_of_time_bounds_is_the_weakest_of_the_closures_at_every_instant(sets: list[BoundSet]) -> None:
    """Section 5.2 to the letter: list the strongest bound at every instant, take the weakest over the sets."""
    latest = max(b.after for s in sets for b in s if isinstance(b, TimeBound))
    expected = [max(lag_after(s, t, 0) for s in sets) for t in range(latest + 1)]
    for join in (join_senders, join_targets):
        assert [lag_after(join(sets), t, 0) for t in range(latest + 1)] == expected


@given(st.lists(bound_sets, min_size=1, max_size=3), st.integers(0, 6), st.integers(0, 5))
def test_the_join_of_senders_never_promises_more_than_any_of_them(sets: list[BoundSet], after: int, rows: int) -> None:
    assert lag_after(join_senders(sets), after, rows) >= max(lag_after(s, after, rows) for s in sets)


@given(st.lists(bound_sets, min_size=2, max_size=3))
def test_the_join_of_targets_keeps_no_bound_by_rows(sets: list[BoundSet]) -> None:
    assert all(isinstance(bound, TimeBound) for bound in join_targets(sets))


@given(st.lists(st.tuples(time_bounds, shares), min_size=1, max_size=5))
def test_shares_of_joined_senders_add_up_and_of_joined_targets_do_not(
    given_bounds: list[tuple[TimeBound, float]],
) -> None:
    sets = [(TimeBound(b.after, b.lag, share),) for b, share in given_bounds]
    total = sum(share for _, share in given_bounds)
    assert [b.exceeded for b in join_senders(sets)] == ([total] if total < 1 else [])
    assert [b.exceeded for b in join_targets(sets)] == [max(share for _, share in given_bounds)]


def test_the_example_of_the_closure() -> None:
    assert lag_after((TimeBound(1, 2), TimeBound(3, 1)), after=2, rows=0) == 2
    assert simplified([TimeBound(1, 2), TimeBound(2, 2), TimeBound(3, 1)]) == (TimeBound(1, 2), TimeBound(3, 1))


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (lambda: TimeBound(-1, 0), "after -1"),
        (lambda: TimeBound(0, -1), "lag -1"),
        (lambda: RowBound(-1, 0), "rows -1"),
        (lambda: RowBound(1, -2), "lag -2"),
        (lambda: TimeBound(0, LONGEST + 1), "whole number"),
        (lambda: TimeBound(0.5, 0), "after 0.5"),  # type: ignore[arg-type]
        (lambda: TimeBound(0, 0, exceeded=1.0), "write 0.01"),
        (lambda: RowBound(0, 0, exceeded=-0.1), "exceeded -0.1"),
        (lambda: TimeBound(0, 0, exceeded=math.nan), "exceeded nan"),
        (lambda: SkewMatrix.of([[[]]], latency=[-1]), "latency -1"),
        (lambda: SkewMatrix.of([], latency=[]), "one for each source"),
        (lambda: SkewMatrix.of([[[], []]], latency=[0, 0]), "must be 2 x 2: it has 1 rows"),
        (lambda: SkewMatrix.of([[[]], [[], []]], latency=[0, 0]), "row 0 has 1 entries"),
        (lambda: SkewMatrix.of([[[(0, 0)]]], latency=[0]), "no skew bound"),  # type: ignore[list-item]
        (lambda: TimeTerm.of(out=[1], into=[1, 2]), "same number of sources"),
        (lambda: TimeTerm.of(), "same number of sources"),
        (lambda: TimeTerm.of(out=[-1]), "out or into -1"),
        (lambda: TimeTerm.of(take=[1], rate=[0]), "rate 0"),
        (lambda: PerSourceSkew.of([0, 0], [TimeTerm.of(out=[1])]), "values of 1 sources, there are 2 latencies"),
        (lambda: PerSourceSkew.of([0], [RowTerm(-1, (0,), (0,))]), "rows -1"),
        (lambda: PerSourceSkew.of([0], own=[[], []]), "own bounds of 2 sources"),
    ],
)
def test_what_cannot_hold_is_refused_with_the_way_out(wrong: Callable[[], object], says: str) -> None:
    with pytest.raises(DeclarationError, match=says):
        wrong()


def test_equal_declarations_are_equal() -> None:
    one, other = (SkewMatrix.of([[[TimeBound(1, 2), TimeBound(1, 3)]]], [4]) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)


@settings(max_examples=100)
@given(st.lists(st.lists(st.tuples(time_bounds, shares), max_size=3), min_size=4, max_size=4), shares)
def test_only_bounds_within_a_share_remain_and_the_loss_is_their_sum(
    cells: list[list[tuple[TimeBound, float]]], share: float
) -> None:
    sets = [[TimeBound(b.after, b.lag, e) for b, e in cell] for cell in cells]
    skew = SkewMatrix.of([sets[:2], sets[2:]], [0, 0])
    sure = skew.within(share)
    assert all(b.exceeded <= share for i in range(2) for j in range(2) for b in sure.bounds(i, j))
    loss = [min(1.0, sum(b.exceeded for i in range(2) for b in sure.bounds(i, j))) for j in range(2)]
    assert list(loss_at_most(sure)) == pytest.approx(loss)
    assert loss_at_most(skew.within(0.0)) == (0.0, 0.0)


def test_terms_beyond_a_share_are_left_out() -> None:
    sure, likely = TimeTerm.of(out=[9]), TimeTerm.of(out=[2], exceeded=0.25)
    skew = PerSourceSkew.of([0], [sure, likely], own=[[TimeBound(0, 1, 0.5)]])
    assert skew.bounds(0, 0) == (TimeBound(0, 1, 0.5), TimeBound(0, 2, 0.25), TimeBound(0, 9))
    assert skew.within(0.3).bounds(0, 0) == (TimeBound(0, 2, 0.25), TimeBound(0, 9))
    assert loss_at_most(skew.within(0.3)) == (0.25,)
