"""Comparisons of the user, and those that suit each type: what they say, and what happens when they cannot."""

from __future__ import annotations

import math
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.results.accuracy import Accuracy
from eventide.results.breakdown import ByPoint
from eventide.results.error import FailSafeComparison, PairwiseComparison, errors

STRUCT = pa.struct([("x", pa.float64()), ("inner", pa.list_(pa.string()))])
MAP = pa.map_(pa.string(), pa.float64())


@pytest.mark.parametrize(
    ("early", "final", "kind", "expected"),
    [
        (Decimal("-2.50"), Decimal("5.00"), pa.decimal128(38, 2), 1.5),
        (Decimal(0), Decimal(0), pa.decimal128(5, 2), 0.0),
        (math.nan, 3.0, pa.float32(), 1.0),
        (2**62, 2**62 + 1, pa.int64(), 0.0),
        (True, True, pa.bool_(), 0.0),
        (None, False, pa.bool_(), 1.0),
        (datetime(2026, 1, 1, 0, 0, 1), datetime(2026, 1, 1), pa.timestamp("us"), 1.0),
        (datetime(2026, 1, 1), datetime(2026, 1, 1), pa.timestamp("us", "UTC"), 0.0),
        (date(2026, 1, 1), date(2026, 1, 2), pa.date32(), 1.0),
        (timedelta(seconds=1), timedelta(seconds=1), pa.duration("us"), 0.0),
        (b"ab", b"ab", pa.binary(), 0.0),
        ([1.0, math.nan, None], [1.0, math.nan, None], pa.list_(pa.float64()), 0.0),
        ([1.0, None], [1.0], pa.list_(pa.float64()), 1.0),
        ({"x": math.nan, "inner": ["a"]}, {"x": math.nan, "inner": ["a"]}, STRUCT, 0.0),
        ({"x": 1.0, "inner": ["a"]}, {"x": 1.0, "inner": None}, STRUCT, 1.0),
        ([("a", 1.0), ("b", math.nan)], [("b", math.nan), ("a", 1.0)], MAP, 0.0),
        ([("a", 1.0)], [("a", 2.0)], MAP, 1.0),
        ([[("a", 1.0), ("b", 2.0)]], [[("b", 2.0), ("a", 1.0)]], pa.list_(MAP), 0.0),
        (None, [1.0], pa.list_(pa.float64()), 1.0),
        (None, None, MAP, 0.0),
        (None, None, pa.null(), 0.0),
    ],
)
def test_every_type_has_an_error_of_its_own(early: Any, final: Any, kind: pa.DataType, expected: float) -> None:
    assert errors(pa.array([early], kind), pa.array([final], kind)).tolist() == [expected]


def fails(early: pa.Array, final: pa.Array) -> Any:
    raise ZeroDivisionError("nothing to divide by")


@pytest.mark.parametrize(
    ("comparison", "said"),
    [
        (fails, "ZeroDivisionError: nothing to divide by"),
        (lambda early, final: [0.0], "it gave 1 errors for 3 pairs"),
        (lambda early, final: 0.5, "it gave 1 errors for 3 pairs"),
        (lambda early, final: ["much", "more", "most"], "ValueError"),
        (lambda early, final: None, "it gave 1 errors"),
        (lambda early, final: np.full(3, -0.5), "-0.5 is no error: give 0 or more"),
        (lambda early, final: pa.array([math.inf] * 3), "inf is no error"),
        (lambda early, final: pa.nulls(3), "nan is no error"),
        (lambda early, final: final, "ArrowInvalid"),
    ],
)
def test_a_comparison_that_fails_or_gives_nonsense_knows_nothing(
    comparison: Any, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    guarded = FailSafeComparison("word", comparison)
    words = pa.array(["a", "b", "c"])
    assert np.isnan(guarded(words, words)).all()
    assert np.isnan(guarded(words, words)).all()
    assert said in str(guarded.fault)
    assert caplog.text.count("their errors are unknown") == 1


@pytest.mark.parametrize(
    "given", [[0.5, 2], np.array([0.5, 2]), pa.array([0.5, 2.0]), pa.chunked_array([[0.5], [2.0]])]
)
def test_errors_may_come_in_any_kind_of_array(given: Any) -> None:
    assert FailSafeComparison("v", lambda early, final: given)(pa.array([1, 2]), pa.array([3, 4])).tolist() == [
        0.5,
        2.0,
    ]


def test_a_pair_for_which_a_function_fails_is_unknown_and_the_others_are_not() -> None:
    guarded = FailSafeComparison("v", PairwiseComparison(lambda early, final: early / final, "share"))
    found = guarded(pa.array([1, 2, 3]), pa.array([2, 0, 6]))
    assert found[[0, 2]].tolist() == [0.5, 0.5]
    assert math.isnan(found[1])
    assert guarded.fault == "early values of 'v' cannot be compared by share: ZeroDivisionError: division by zero"


def rows(values: list[float | None], end: int = 10) -> pa.Table:
    n = len(values)
    window = {"window_start": [end - 10] * n, "window_end": [end] * n, "rows": [1] * n}
    return pa.table({**window, "k": list(range(n)), "v": pa.array(values, pa.float64()), "w": pa.array(values)})


def unless_negative(early: pa.Array, final: pa.Array) -> Any:
    return pc.if_else(pc.less(early, 0), pa.scalar(None, pa.float64()), pc.abs(pc.subtract(early, final)))


@given(st.lists(st.floats(-1, 1), min_size=1, max_size=8), st.booleans())
def test_what_is_unknown_is_in_no_mean(early: list[float], restarted: bool) -> None:
    measured = Accuracy(("k",), {"v": "v"}, {"v": unless_negative})
    final = [1.0] * len(early)
    measured.emitted(rows(list(early)), 0.5, clock=0)
    if restarted:
        again = Accuracy(("k",), {"v": "v"}, {"v": unless_negative})
        again.restore(measured.saved(), measured.waiting, measured.by_group.table)
        measured = again
    scored = measured.settle(rows(list(final)), closed=9, clock=7)
    known = [abs(1.0 - value) for value in early if value >= 0]
    summary, expected = measured.summary(), measured.expected(0.5).errors["v"]
    assert measured.expected(0.5).completeness == 1.0
    if known:
        assert scored.worst_column()[0] == pytest.approx(np.mean(known))
        assert (summary.windows, summary.worst) == (1, max(known))
        assert summary.error == pytest.approx(np.mean(known))
        assert expected == pytest.approx(np.mean(known))
        assert measured.by_group.report().num_rows == len(known)
    else:
        assert math.isnan(scored.worst_column()[0])
        assert (summary.windows, summary.error, expected) == (0, None, None)


def test_a_value_that_cannot_be_compared_leaves_the_others_their_errors() -> None:
    measured = Accuracy(("k",), {"v": "v", "w": "w"}, {"v": fails})
    measured.emitted(rows([5.0]), 0.5, clock=0)
    scored = measured.settle(rows([10.0]), closed=9, clock=1)
    assert scored.worst_column().tolist() == [0.5]
    assert measured.expected(0.5).errors == {"v": None, "w": 0.5}
    assert len(measured.faults) == 1


def test_what_was_saved_before_errors_could_be_unknown_is_still_read() -> None:
    learned = ByPoint(1)
    learned.add(np.array([0.5]), np.array([[0.2]]), np.array([8]), np.array([10]))
    saved = {name: value for name, value in learned.saved().items() if name != "unknown"}
    assert ByPoint.restored(saved).error(0.5).tolist() == [0.2]
