"""What a policy can read off a round, against the rows themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, within_edges

Row = tuple[int, int]
"""Source and time."""

ROWS = st.lists(st.tuples(st.integers(0, 4), st.integers(-30, 30)), max_size=30)
WIDTH = st.sampled_from([None, 1, 4, 100])


def digest(rows: list[Row], width: int | None) -> Arrivals:
    return Arrivals.of_rows(7, [source for source, _ in rows], [time for _, time in rows], width)


def by_source(rows: list[Row]) -> dict[int, list[int]]:
    """The times of each source, ascending."""
    return {source: sorted(time for at, time in rows if at == source) for source in sorted({at for at, _ in rows})}


@limits(max_examples=150)
@given(ROWS, WIDTH)
def test_counts_and_ends_of_each_source_are_those_of_its_rows(rows: list[Row], width: int | None) -> None:
    arrivals, plain = digest(rows, width), by_source(rows)
    assert arrivals.total == len(rows)
    assert arrivals.sources.tolist() == list(plain)
    assert arrivals.rows_by_source.tolist() == [len(times) for times in plain.values()]
    assert arrivals.earliest_by_source.tolist() == [times[0] for times in plain.values()]
    assert arrivals.latest_by_source.tolist() == [times[-1] for times in plain.values()]


@limits(max_examples=100)
@given(ROWS, WIDTH)
def test_cells_are_counted_and_their_quantities_summed_and_compared_by_source(
    rows: list[Row], width: int | None
) -> None:
    arrivals = digest(rows, width)
    quantity = np.arange(len(arrivals.source)) ** 2 % 11
    cells = [quantity[arrivals.source == source].tolist() for source in by_source(rows)]
    assert arrivals.cells_by_source.tolist() == [len(of_source) for of_source in cells]
    assert arrivals.sum_by_source(quantity).tolist() == [sum(of_source) for of_source in cells]
    assert arrivals.max_by_source(quantity).tolist() == [max(of_source) for of_source in cells]


@limits(max_examples=150)
@given(ROWS, WIDTH)
def test_the_second_earliest_is_never_above_that_of_the_rows_and_exact_in_cells_of_one_time(
    rows: list[Row], width: int | None
) -> None:
    found = digest(rows, width).second_earliest_by_source.tolist()
    for second, times in zip(found, by_source(rows).values(), strict=True):
        exact = times[1] if len(times) > 1 else FOREVER
        assert times[0] <= second <= exact
        assert second == exact or width != 1
        assert (second == FOREVER) == (len(times) == 1)


def test_a_silent_round_has_nothing_by_source() -> None:
    silence = Arrivals.silence(5)
    assert silence.second_earliest_by_source.tolist() == silence.cells_by_source.tolist() == []
    assert silence.max_by_source(silence.earliest).tolist() == []
    assert silence.within_edges() is silence


@pytest.mark.parametrize("time", [-EDGE, -1, 0, EDGE])
def test_a_round_within_the_edges_is_left_as_it_is(time: int) -> None:
    arrivals = Arrivals.of_row(time, 0, time)
    assert arrivals.within_edges() is arrivals


@limits(max_examples=60)
@given(st.integers(NEVER, FOREVER), st.lists(st.tuples(st.integers(0, 2), st.integers(NEVER, FOREVER)), max_size=9))
def test_instants_beyond_the_edges_are_taken_to_be_at_them(clock: int, rows: list[Row]) -> None:
    arrivals = Arrivals.of_rows(clock, [source for source, _ in rows], [time for _, time in rows], cell_width=1)
    inside = arrivals.within_edges()
    assert inside.clock == max(-EDGE, min(EDGE, clock))
    assert inside.earliest.tolist() == [max(-EDGE, min(EDGE, int(time))) for time in arrivals.earliest]
    assert inside.latest.tolist() == [max(-EDGE, min(EDGE, int(time))) for time in arrivals.latest]
    assert inside.rows.tolist() == arrivals.rows.tolist()


def test_three_instants_within_the_edges_can_be_added_and_subtracted() -> None:
    low, high = within_edges(np.array([NEVER, FOREVER]))
    assert (int(high - low) + EDGE, int(low - high) - EDGE) == (3 * EDGE, -3 * EDGE)
    assert 3 * EDGE < FOREVER
