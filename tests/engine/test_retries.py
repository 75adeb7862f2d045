"""A round that failed is tried again with the same rows, unless it was committed or would fail in the same way."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from eventide.engine.local.backend import LocalBackend
from eventide.engine.round.engine import Engine
from eventide.engine.round.report import RoundReport
from eventide.engine.spark import retries
from eventide.engine.spark.retries import Retries, StoppedError
from eventide.errors import CheckpointError, DataFaultError, EngineError
from eventide.language.script import read_script
from eventide.testing.trial import RecordingSink

PROGRAM = read_script(
    "CREATE STREAM s (t BIGINT, v INT) DELAY 0;\nCREATE QUERY q AS SELECT sum(v) AS total FROM s [RANGE 10];"
).program
ROWS = {"s": pa.table({"t": [1, 12], "v": pa.array([1, 2], pa.int32())})}


class Trial:
    """An engine whose rounds fail at one step as often as is asked for, and what has been told by then."""

    def __init__(self, folder: Path, step: str, failures: Iterator[Exception]) -> None:
        self._step, self._failures = step, failures
        self.sink = RecordingSink()
        self.engine = Engine(PROGRAM, LocalBackend(), str(folder), {"q": self.sink}, observer=self._fail)
        self.stopping = threading.Event()
        # Only sources are asked through Spark.
        self.retries = Retries(cast(Any, None), self.engine, self.stopping)

    def _fail(self, round: int, step: str) -> None:
        if step == self._step and (failure := next(self._failures, None)) is not None:
            raise failure

    def round(self) -> RoundReport:
        return self.retries.carried_out(lambda: self.engine.round(ROWS, clock=20, batch=0))

    @property
    def totals(self) -> list[int]:
        return [row["total"] for table in self.sink.tables.values() for row in table.to_pylist()]


@pytest.fixture
def trial(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Trial]]:
    monkeypatch.setattr(retries, "WAITS", (0.0, 0.0, 0.0))
    made: list[Trial] = []

    def make(step: str = "emit", *failures: Exception) -> Trial:
        made.append(Trial(tmp_path / str(len(made)), step, iter(failures)))
        return made[-1]

    yield make
    for one in made:
        one.engine.close()


@pytest.mark.parametrize("step", ["reduce", "advance", "emit"])
def test_a_round_that_failed_is_tried_again_and_counts_its_rows_once(
    step: str, trial: Callable[..., Trial], caplog: pytest.LogCaptureFixture
) -> None:
    one = trial(step, EngineError("a task is lost"), RuntimeError("the network is gone\nat org.apache.spark"))
    assert one.round().number == 0
    assert one.totals == [1]
    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "round 0 failed, and nothing of it was committed; it is tried again: a task is lost",
        "round 0 failed, and nothing of it was committed; it is tried again: the network is gone",
    ]


def test_what_fails_again_and_again_ends_in_its_own_words_and_has_not_happened(trial: Callable[..., Trial]) -> None:
    one = trial("emit", *(EngineError(f"lost {number}") for number in range(9)))
    with pytest.raises(EngineError, match="lost 3"):
        one.round()
    assert one.engine.next_round == 0


@pytest.mark.parametrize(
    "failure",
    [DataFaultError("a row"), CheckpointError("damaged"), ConnectionRefusedError("nobody")],
    ids=["of a row", "of the checkpoint", "Spark is gone"],
)
def test_what_would_fail_in_the_same_way_is_not_tried_again(failure: Exception, trial: Callable[..., Trial]) -> None:
    with pytest.raises(type(failure)):
        trial("emit", failure).round()


def test_a_round_that_was_committed_is_not_run_again(trial: Callable[..., Trial]) -> None:
    one = trial("commit", EngineError("too late"))
    with pytest.raises(EngineError, match="too late"):
        one.round()
    assert (one.engine.next_round, one.totals) == (1, [1])


def test_a_stop_ends_the_wait(trial: Callable[..., Trial]) -> None:
    one = trial("emit", *(EngineError("lost") for _ in range(9)))
    one.stopping.set()
    with pytest.raises(StoppedError):
        one.round()
