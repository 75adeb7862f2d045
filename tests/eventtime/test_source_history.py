"""The history of sources: a row alone is a round of one, silences, leaps."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import settings as limits
from hypothesis import strategies as st

from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.source_history import SourceHistory

ROW = st.tuples(st.sampled_from([0, 1, 1, 5, 300]), st.integers(0, 2), st.sampled_from([0, 0, 1, 7, 90, -40, -(10**6)]))


@limits(max_examples=60)
@given(st.lists(ROW, max_size=60))
def test_a_row_alone_is_noted_as_a_round_of_one_row(rows: list[tuple[int, int, int]]) -> None:
    """The fast way for single rows and the way of arrays over sources keep the same history."""
    fast, arrays = SourceHistory(0.1, places=4), SourceHistory(0.1, places=4)
    clock = 0
    lost, unlost = np.array([1]), np.array([1, 0])
    for step, (wait, source, late) in enumerate(rows):
        clock += wait
        fast.note(Arrivals.of_row(clock, source, clock - late), 2.0, lost)
        # A second source that always speaks makes it a round of two rows.
        arrays.note(Arrivals.of_rows(clock, [source, 3], [clock - late, step], cell_width=1), 2.0, unlost)
    for name in SourceHistory._FILL:
        assert getattr(fast, name)[:3].tolist() == getattr(arrays, name)[:3].tolist(), name


def test_silences_that_end_well_are_trusted_more_and_one_that_ends_badly_half_as_much() -> None:
    history = SourceHistory(0.01, places=1)
    clock = 0
    for _ in range(4):
        for _ in range(20):
            history.note(Arrivals.of_row(clock, 0, clock), 1.0, np.zeros(1, dtype=np.int64))
            clock += 1
        clock += 500
    trusted = int(history.good[0])
    assert trusted >= 3
    history.note(Arrivals.of_row(clock, 0, clock - 500), 1.0, np.zeros(1, dtype=np.int64))
    assert int(history.good[0]) == trusted // 2
