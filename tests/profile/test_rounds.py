from __future__ import annotations

import numpy as np
import pytest

from eventide.errors import DeclarationError
from eventide.profile.reading import Recording, chosen, usual_round


def many_rows(span: int) -> Recording:
    rows = 100_001
    arrival = np.linspace(0, span, rows).astype(np.int64)
    return Recording("many", arrival, arrival, np.zeros(rows, dtype=np.intp), ("a",))


def test_few_rows_go_one_at_a_time() -> None:
    assert usual_round(Recording.of("few", [1], [1], ["a"]), unitless=False) is None


@pytest.mark.parametrize(
    ("span_seconds", "round_seconds"),
    [(1, 0.001), (30, 0.02), (3_600, 2), (100_000, 60), (30_000_000, 10_800), (10**10, 86_400)],
)
def test_long_recordings_get_longer_rounds(span_seconds: int, round_seconds: float) -> None:
    recording = many_rows(span_seconds * 1_000_000)
    assert usual_round(recording, unitless=False) == round_seconds * 1_000_000


@pytest.mark.parametrize(("span", "length"), [(0, 1), (5_000, 1), (300_000, 100)])
def test_plain_numbers_are_cut_into_three_thousand_rounds(span: int, length: int) -> None:
    assert usual_round(many_rows(span), unitless=True) == length


def test_a_round_of_plain_numbers_is_a_plain_number() -> None:
    numbers = Recording.of("numbers", [1], [1], ["a"])
    assert chosen("5")(numbers, True) == 5
    with pytest.raises(DeclarationError, match="write a whole number"):
        chosen("5s")(numbers, True)
