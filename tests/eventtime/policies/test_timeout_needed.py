from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.policies.skew.bounds import RowBound, SkewBound, TimeBound
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.eventtime.policies.skew.matrix import SkewMatrix, Stall, timeout_needed
from tests.eventtime.policies.skew_environment import drive, emissions, matrices, round_clocks, row_bounds, small

AT_REST = 10**6
likely_zero = st.builds(TimeBound, small, st.sampled_from([0, 0, 0, 3]))
bounds_with_a_lag_of_zero = st.lists(st.one_of(likely_zero, row_bounds), max_size=2).map(
    lambda b: [*b, TimeBound(3, 0)]
)


@settings(max_examples=200)
@given(matrices(st.one_of(likely_zero, row_bounds)))
def test_every_pair_it_names_stalls_a_row_and_no_other_does(skew: SkewMatrix) -> None:
    """One row of i alone: after the last promise has fallen due, source j has reached it or is named."""
    named = {(stall.sender, stall.target) for stall in timeout_needed(skew).stalls}
    for i in range(len(skew.latency)):
        generator = DeclaredSkew(skew).start()
        generator.observe(Arrivals.of_row(clock=0, source=i, time=100))
        reached = generator.heartbeats(AT_REST).by_source
        assert {(i, j) for j, h in enumerate(reached) if h < 100} == {pair for pair in named if pair[0] == i}


@settings(max_examples=100)
@given(st.data(), st.lists(bounds_with_a_lag_of_zero, min_size=4, max_size=4))
def test_when_none_is_needed_a_pause_releases_every_row(data: st.DataObject, sets: list[list[SkewBound]]) -> None:
    skew = SkewMatrix.of([sets[:2], sets[2:]], [2, 1])
    assert not timeout_needed(skew)
    rows = data.draw(emissions(skew))
    generator = DeclaredSkew(skew).start()
    for _ in drive(generator, rows, round_clocks(rows, [1], 0)):
        pass
    assert generator.heartbeats(AT_REST).combined == max(row.time for row in rows)


def test_it_names_the_bounds_of_the_pause_example() -> None:
    in_order, trails = [TimeBound(0, 0)], [TimeBound(0, 5)]
    need = timeout_needed(SkewMatrix.of([[in_order, trails], [trails, in_order]], [0, 0]))
    assert need.stalls == (Stall(0, 1, 5), Stall(1, 0, 5))


def test_rows_that_do_not_come_do_not_release_rows() -> None:
    need = timeout_needed(SkewMatrix.of([[[TimeBound(0, 1), RowBound(2, 0)]]], [0]))
    assert need.stalls == (Stall(0, 0, 1),)


def test_many_pairs_are_told_in_twenty_lines() -> None:
    nothing: list[list[list[SkewBound]]] = [[[]] * 5] * 5
    text = str(timeout_needed(SkewMatrix.of(nothing, [0] * 5)))
    assert text.splitlines()[-1] == "  and 5 more pairs"
    assert len(text.splitlines()) == 22


def test_it_says_so_when_none_is_needed() -> None:
    assert str(timeout_needed(SkewMatrix.of([[[TimeBound(9, 0)]]], [0]))).startswith("no timeout is needed")
