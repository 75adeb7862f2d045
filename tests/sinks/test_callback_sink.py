"""A user's function as a sink: what it is given, when, and what becomes of its errors."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import pyarrow as pa
import pytest

from eventide.errors import EngineError
from eventide.results.results import Results
from eventide.sinks import Callback
from eventide.testing.sink_contract import SCHEMA, sample


def test_the_function_is_given_query_round_and_batches_also_when_there_are_none() -> None:
    calls: list[tuple[str, int, list[int], bool]] = []

    def receive(query: str, round: int, batches: pa.RecordBatchReader) -> None:
        as_declared = batches.schema == SCHEMA
        calls.append((query, round, [batch.num_rows for batch in batches], as_declared))

    sink = Callback(receive)
    sink.emit(sample("speeds", 3, 5, batch_rows=2))
    sink.emit(sample("speeds", 4, 0))
    assert calls == [("speeds", 3, [2, 2, 1], True), ("speeds", 4, [], True)]


def test_batches_are_read_one_by_one_while_the_function_runs() -> None:
    given: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for number, batch in enumerate(sample("speeds", 0, 4, batch_rows=1).batches()):
            given.append(number)
            yield batch

    seen: list[int] = []

    def receive(query: str, round: int, reader: pa.RecordBatchReader) -> None:
        for _ in reader:
            seen.append(len(given))

    Callback(receive).emit(Results("speeds", 0, 4, SCHEMA, batches))
    assert seen == [1, 2, 3, 4]


def test_rounds_without_rows_are_left_out_when_asked_for() -> None:
    rounds: list[int] = []
    sink = Callback(lambda query, round, batches: rounds.append(round), empty=False)
    for round, rows in enumerate((0, 3, 0)):
        sink.emit(sample("speeds", round, rows))
    assert rounds == [1]


def test_the_other_function_hears_of_rounds_that_have_not_happened() -> None:
    rewound: list[tuple[str, int]] = []
    Callback(print).rewind("speeds", 7)
    Callback(print, rewind=lambda query, last: rewound.append((query, last))).rewind("speeds", 7)
    assert rewound == [("speeds", 7)]


def failing(query: str, round: int, batches: pa.RecordBatchReader) -> None:
    raise ValueError("no such table: means\nand much more\nthat nobody wants to read")


class Receiver:
    def store(self, query: str, round: int, batches: pa.RecordBatchReader) -> None:
        raise KeyError


def test_an_error_of_the_function_names_it_and_the_round_and_keeps_its_cause() -> None:
    with pytest.raises(EngineError) as told:
        Callback(failing).emit(sample("speeds", 3, 1))
    assert str(told.value) == (
        "the function failing failed on the results of 'speeds' in round 3: ValueError: no such table: means. "
        "Round 3 will be given to it again when the engine starts again"
    )
    assert isinstance(told.value.__cause__, ValueError)
    with pytest.raises(EngineError, match=r"the function Receiver\.store failed .* in round 3: KeyError\. "):
        Callback(Receiver().store).emit(sample("speeds", 3, 1))
    with pytest.raises(EngineError, match=r"the function functools\.partial\(.* failed"):
        Callback(partial(failing, "x")).emit(sample("speeds", 3, 1))


def test_an_error_of_the_function_that_rewinds_names_it() -> None:
    def forget(query: str, last: int) -> None:
        raise RuntimeError("locked")

    with pytest.raises(
        EngineError, match="forget failed to forget what 'speeds' gave after round 7: RuntimeError: locked"
    ):
        Callback(print, rewind=forget).rewind("speeds", 7)


def test_an_error_of_the_engine_is_not_blamed_on_the_function() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        raise EngineError("a slice is damaged")
        yield

    sink = Callback(lambda query, round, reader: reader.read_all())
    with pytest.raises(EngineError, match=r"^a slice is damaged$"):
        sink.emit(Results("speeds", 3, 1, SCHEMA, batches))
