"""Scores of early answers, against a dictionary and the thesis' formulas, row by row."""

from __future__ import annotations

import math
from collections import defaultdict
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eventide.results.accuracy import Accuracy
from eventide.results.breakdown import ByPoint, place_of
from eventide.results.error import accuracy, errors, hamming

KEYS = st.sampled_from([None, "a", "b", "c"])
VALUES = st.one_of(st.none(), st.integers(-50, 50))
POINTS = st.sampled_from([0.5, 0.75, 1.0, 1.2])
ROWS = st.tuples(st.sampled_from([10, 20, 30, 40]), KEYS)


def table(rows: list[tuple[int, str | None, int, int | None]]) -> pa.Table:
    ends, keys, counts, values = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pa.table(
        {
            "window_start": pa.array([end - 10 for end in ends], pa.int64()),
            "window_end": pa.array(ends, pa.int64()),
            "rows": pa.array(counts, pa.int64()),
            "k": pa.array(keys, pa.string()),
            "v": pa.array(values, pa.int32()),
        }
    )


def relative(early: int | None, final: int | None) -> float:
    """The thesis' formula, for one pair."""
    if early == final:
        return 0.0
    if early is None or final is None or final == 0:
        return 1.0
    return 1 - (abs(final) - abs(final - early)) / abs(final)


@given(
    st.lists(st.tuples(ROWS, POINTS, st.integers(0, 5), VALUES), max_size=15),
    st.dictionaries(ROWS, st.tuples(st.integers(1, 9), VALUES), max_size=12),
    st.booleans(),
)
@settings(max_examples=150)
def test_pairs_are_scored_and_the_rest_is_counted(
    early: list[tuple[tuple[int, str | None], float, int, int | None]],
    final: dict[tuple[int, str | None], tuple[int, int | None]],
    restarted: bool,
) -> None:
    """Windows close two at a time; between, what waits may go to a checkpoint and come back."""
    measured = Accuracy(("k",), {"v": "v"})
    for (end, k), point, rows, value in early:
        measured.emitted(table([(end, k, rows, value)]), point, clock=0)
    scored = []
    for first, last in ((10, 20), (30, 40)):
        if restarted:
            again = Accuracy(("k",), {"v": "v"})
            again.restore(measured.saved(), measured.waiting, measured.by_group.table)
            measured = again
        closing = [(end, k, n, value) for (end, k), (n, value) in final.items() if first <= end <= last]
        scored.append(measured.settle(table(closing), closed=last - 1, clock=100))

    last_told = {(end, k, point): (rows, value) for (end, k), point, rows, value in early}
    by_window: dict[tuple[int, float], list[float]] = defaultdict(list)
    by_group: dict[str | None, list[float]] = defaultdict(list)
    for (end, k, point), (_, value) in last_told.items():
        if (end, k) in final:
            error = relative(value, final[end, k][1])
            by_window[end, point].append(error)
            by_group[k].append(error)
    found = {
        (int(end), float(place_of(np.array([point]))[0]) / 20): float(error[0])
        for part in scored
        for end, point, error in zip(part.ends, part.points, part.errors, strict=True)
    }
    assert found == pytest.approx({key: np.mean(of) for key, of in by_window.items()})
    summary = measured.summary()
    assert summary.windows == len(by_window)
    assert summary.vanished == sum((end, k) not in final for end, k, _ in last_told)
    asked = {end for end, _, _ in last_told}
    groups = {(end, k) for end, k, _ in last_told}
    assert summary.unforeseen == sum(end in asked and (end, k) not in groups for end, k in final)
    if by_window:
        assert summary.error == pytest.approx(np.mean([np.mean(of) for of in by_window.values()]))
        assert summary.worst == pytest.approx(max(max(of) for of in by_window.values()))
        assert summary.gain == 100
        report = {row["k"]: row for row in measured.by_group.report().to_pylist()}
        assert {k: row["error"] for k, row in report.items()} == pytest.approx(
            {k: np.mean(of) for k, of in by_group.items()}
        )
        assert {k: row["windows"] for k, row in report.items()} == {k: len(of) for k, of in by_group.items()}
    assert measured.waiting is None or measured.waiting.num_rows == 0


@given(st.lists(st.tuples(VALUES, VALUES), max_size=20))
def test_errors_are_those_of_the_formula(pairs: list[tuple[int | None, int | None]]) -> None:
    early, final = (pa.array([pair[side] for pair in pairs], pa.int64()) for side in (0, 1))
    assert errors(early, final).tolist() == pytest.approx([relative(*pair) for pair in pairs])


@pytest.mark.parametrize(
    ("early", "final", "kind", "expected"),
    [
        (Decimal("2.50"), Decimal("5.00"), pa.decimal128(5, 2), 0.5),
        (math.nan, math.nan, pa.float64(), 0.0),
        (math.inf, 3.0, pa.float64(), 1.0),
        (3.0, math.inf, pa.float64(), 1.0),
        (True, False, pa.bool_(), 1.0),
        ("x", "x", pa.string(), 0.0),
        ([1, 2], [1, 3], pa.list_(pa.int64()), 1.0),
        (30, 10, pa.int8(), 2.0),
    ],
)
def test_every_type_has_an_error(early: Any, final: Any, kind: pa.DataType, expected: float) -> None:
    assert errors(pa.array([early], kind), pa.array([final], kind)).tolist() == [expected]


def test_a_comparison_of_the_users_own_scores_texts() -> None:
    measured = Accuracy((), {"best": "best"}, {"best": hamming})
    window = {"window_start": [0], "window_end": [10], "rows": [1]}
    measured.emitted(pa.table({**window, "best": ["karolin"]}), 0.5, clock=0)
    scored = measured.settle(pa.table({**window, "best": ["kathrin"]}), closed=9, clock=1)
    assert accuracy(scored.errors).round(2).tolist() == [[57.14]]


def test_rows_that_are_told_again_do_not_pile_up() -> None:
    """Someone presses Refresh ten thousand times: what waits is the last answer of each point."""
    measured = Accuracy(("k",), {"v": "v"})
    part = table([(10, k, 1, 1) for k in ("a", "b", None)])
    for time in range(10_000):
        measured.emitted(part, point=time / 10_000, clock=time)
    assert measured.waiting is not None
    assert measured.waiting.num_rows <= 2 * 4096
    assert measured.settle(part, closed=9, clock=0).points.shape == (21,)


def test_a_group_that_closes_ahead_of_the_others_is_scored_at_once() -> None:
    measured = Accuracy(("k",), {"v": "v"})
    measured.emitted(table([(10, "a", 1, 5), (10, "b", 1, 5)]), 1.0, clock=0)
    assert measured.settle(table([(10, "a", 1, 10)]), closed=3, clock=0).errors.tolist() == [[0.5]]
    assert measured.settle(table([(10, "b", 1, 5)]), closed=9, clock=0).errors.tolist() == [[0.0]]
    assert measured.summary().vanished == 0


def test_what_was_learned_of_other_columns_is_left() -> None:
    old = Accuracy((), {"v": "v"})
    new = Accuracy((), {"w": "w"})
    new.restore(old.saved(), None, None)
    assert new.summary().windows == 0


@given(st.lists(st.tuples(st.floats(0, 2.5), st.floats(0, 1)), min_size=1, max_size=30), st.floats(0, 2.5))
def test_what_is_expected_lies_between_what_was_seen(seen: list[tuple[float, float]], point: float) -> None:
    learned = ByPoint(1)
    for at, error in seen:
        learned.add(np.array([at]), np.array([[error]]), np.array([1]), np.array([2]))
    expected = float(learned.error(point)[0])
    assert min(e for _, e in seen) - 1e-9 <= expected <= max(e for _, e in seen) + 1e-9
    assert learned.completeness(point) == pytest.approx(0.5)


def test_a_stream_that_has_changed_is_believed_after_some_windows() -> None:
    learned = ByPoint(1)
    for error in [0.5] * 200 + [0.1] * 200:
        learned.add(np.array([0.75]), np.array([[error]]), np.array([1]), np.array([1]))
    assert float(learned.error(0.75)[0]) == pytest.approx(0.1, abs=0.03)
