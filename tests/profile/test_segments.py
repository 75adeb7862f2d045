from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eventide.profile.disorder import grouped, running_maximum, sorted_within

small = st.integers(-9, 9)
huge = st.integers(-(2**61), 2**61)
segments = st.lists(st.lists(small | huge, max_size=6), min_size=1, max_size=6)


@given(segments)
def test_each_segment_has_its_own_running_maximum(parts: list[list[int]]) -> None:
    values = np.array([value for part in parts for value in part], dtype=np.int64)
    bounds = np.cumsum([0, *map(len, parts)])
    expected = [max(part[: at + 1]) for part in parts for at in range(len(part))]
    assert running_maximum(values, bounds).tolist() == expected


@given(segments)
def test_each_segment_is_sorted_by_itself(parts: list[list[int]]) -> None:
    values = np.array([value for part in parts for value in part], dtype=np.int64)
    bounds = np.cumsum([0, *map(len, parts)])
    assert sorted_within(values, bounds).tolist() == [value for part in parts for value in sorted(part)]


@given(st.lists(st.integers(0, 3), max_size=20), st.sampled_from([4, 2**16 + 1]))
def test_rows_of_one_label_come_together_in_their_old_order(labels: list[int], count: int) -> None:
    order, bounds = grouped(np.array(labels, dtype=np.intp), count)
    assert order.tolist() == sorted(range(len(labels)), key=lambda row: labels[row])
    assert [int(bounds[label + 1] - bounds[label]) for label in range(4)] == [labels.count(label) for label in range(4)]
