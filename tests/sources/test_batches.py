"""Arrow batches from Python keep their order, are cut to measure, and continue from a number of rows."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eventide.errors import InputError
from eventide.plan.declared.stream import Stream, columns
from eventide.sources.local_input import Batches, LocalInput
from tests.sources.input_contract import continues_from_every_position

STREAM = Stream("s", columns("n BIGINT, s STRING"), time="n")


@given(st.lists(st.integers(0, 4), max_size=6), st.integers(1, 5))
def test_it_continues_from_every_position(sizes: list[int], max_rows: int) -> None:
    starts = [sum(sizes[:place]) for place in range(len(sizes))]
    batches = [
        pa.table({"s": ["x"] * size, "n": pa.array(range(start, start + size), pa.int64())})
        for start, size in zip(starts, sizes, strict=True)
    ]
    found = continues_from_every_position(lambda: Batches(STREAM, batches), max_rows)
    assert [row["n"] for row in found] == list(range(sum(sizes)))


def test_batches_are_drawn_only_when_rows_are_asked_for() -> None:
    drawn = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(3):
            drawn.append(number)
            yield pa.record_batch({"n": [number], "s": ["x"]})

    given = Batches(STREAM, batches())
    assert drawn == []
    assert given.take(2, 0.0) is not None
    assert drawn == [0, 1]
    assert isinstance(given, LocalInput)


def test_a_batch_may_say_which_rows_are_malformed() -> None:
    batch = pa.table({"n": [1, None], "s": ["x", None], "_malformed": [None, "1;?"]}, schema=None)
    found = Batches(STREAM, [batch]).take(5, 0.0)
    assert found is not None
    assert found["_malformed"].to_pylist() == [None, "1;?"]


def test_a_batch_with_other_columns_is_told() -> None:
    with pytest.raises(InputError, match="declares s STRING, but a batch has only n BIGINT"):
        Batches(STREAM, [pa.table({"n": [1]})]).take(5, 0.0)
