"""Kill -9 of the driver on Spark, and damage to what it left: the same results in the end."""

from __future__ import annotations

import os
import random
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.crash.differences import Differences, calm, differences, lived
from benchmarks.crash.moment import STEPS
from benchmarks.crash.outcome import Outcome
from benchmarks.crash.program import CHECKPOINT, engine
from benchmarks.crash.recording import record
from eventide.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 6
TWO_STREAMS = ("sliding", "levels", "by_rows")
SLIDING = ("sliding",)
ROWS = ("sliding", "by_rows", "paired", "in_order")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """What an uninterrupted run shows: on the local engine, so that this is a comparison of engines too."""
    return calm(tmp_path_factory.mktemp("calm"), FILES, TWO_STREAMS)


@pytest.mark.slow
@pytest.mark.spark
def test_a_driver_killed_before_and_after_its_commit_loses_nothing_and_doubles_nothing(
    expected: Outcome, tmp_path: Path, spark: SparkSession
) -> None:
    record(tmp_path, FILES)
    # After our commit Spark has not committed yet: it will run that batch again.
    moments = ["step:1:emit", "step:3:commit"]
    assert lived(tmp_path, "spark", moments, TWO_STREAMS, unfinished=True) == len(moments)
    engine(tmp_path, spark, chosen=TWO_STREAMS).start(bounded=True).await_end()
    assert differences(tmp_path, expected) == Differences()


@pytest.fixture(scope="module")
def expected_of_rows(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The same of windows, an outer join, an ordered merge and windows over counts of rows."""
    return calm(tmp_path_factory.mktemp("calm"), FILES, ROWS)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("remote", [False, True], ids=["on a disk", "in a store elsewhere"])
def test_a_driver_killed_after_each_step_while_nothing_stays_with_it_loses_nothing_and_doubles_nothing(
    remote: bool, expected_of_rows: Outcome, tmp_path: Path, spark: SparkSession
) -> None:
    record(tmp_path, FILES)
    moments = [f"step:{1 + place % 3}:{step}" for place, step in enumerate(STEPS)]
    options = ["--driver-memory=0", *(["--remote"] if remote else [])]
    # A round that was committed has no steps to die after any more.
    ordered = sorted(moments, key=lambda moment: int(moment.split(":")[1]))
    assert lived(tmp_path, "spark", ordered, ROWS, unfinished=True, options=options) == len(moments)
    last = engine(tmp_path, spark, chosen=ROWS, driver_memory=0, remote=remote)
    last.start(bounded=True).await_end()
    assert differences(tmp_path, expected_of_rows) == Differences()


@pytest.mark.slow
@pytest.mark.spark
def test_python_workers_killed_in_the_middle_of_jobs_change_no_result(
    expected_of_rows: Outcome, tmp_path: Path, spark: SparkSession
) -> None:
    """A job that has lost one is tried again, or fails on one machine, and its round with it: which is tried again."""
    record(tmp_path, FILES)
    ended = threading.Event()
    killed = list[int]()

    def kill() -> None:
        while len(killed) < FILES and not ended.wait(1.0):
            for worker in workers_of(spark):
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)
                    killed.append(worker)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        engine(tmp_path, spark, chosen=ROWS, driver_memory=0).start(bounded=True).await_end()
    finally:
        ended.set()
        killer.join()
    assert len(killed) >= FILES
    assert differences(tmp_path, expected_of_rows) == Differences()


@pytest.mark.slow
@pytest.mark.spark
def test_a_round_that_failed_is_tried_again_and_ends_the_engine_in_words_if_it_never_goes_well(
    expected_of_sliding: Outcome, tmp_path: Path, spark: SparkSession, caplog: pytest.LogCaptureFixture
) -> None:
    """A source or a task that failed in the middle of a round ended the engine, though nothing was committed."""
    record(tmp_path, FILES)
    failures = [("reduce", 1), ("emit", 2), ("emit", 2), ("emit", 2)]

    def fails(round: int, step: str) -> None:
        if (step, round) in failures:
            failures.remove((step, round))
            raise EngineError("the network is gone")

    engine(tmp_path, spark, chosen=SLIDING, observer=fails).start(bounded=True).await_end()
    assert differences(tmp_path, expected_of_sliding) == Differences()
    said = [one.message for one in caplog.records if "it is tried again" in one.message]
    assert said == [
        f"round {round} failed, and nothing of it was committed; it is tried again: the network is gone"
        for round in (1, 2, 2, 2)
    ]

    other = tmp_path / "other"
    record(other, FILES)
    failures = [("emit", 2)] * 4
    with pytest.raises(EngineError, match="the network is gone"):
        engine(other, spark, chosen=SLIDING, observer=fails).start(bounded=True).await_end()
    assert failures == []
    engine(other, spark, chosen=SLIDING).start(bounded=True).await_end()
    assert differences(other, expected_of_sliding) == Differences()


def workers_of(spark: SparkSession) -> list[int]:
    """The Python workers of a session that runs on this machine: children of the process that its JVM forks them by."""
    parents = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    jvm = gateway.proc.pid
    daemons = {process for process, parent in parents.items() if parent == jvm}
    return [process for process, parent in parents.items() if parent in daemons]


@pytest.fixture(scope="module")
def expected_of_sliding(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """The same of one query."""
    return calm(tmp_path_factory.mktemp("calm"), FILES, SLIDING)


def fails_after_commit(round: int, step: str) -> None:
    """An observer: the engine ends there, before Spark has heard that the batch is done."""
    if (round, step) == (3, "commit"):
        raise EngineError("far enough")


def flipped(file: Path) -> None:
    data = bytearray(file.read_bytes())
    data[random.Random(0).randrange(len(data))] ^= 0x10
    file.write_bytes(data)


def torn(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def newest(folder: Path) -> Path:
    """The last record, or a file of the last round's state."""
    found = (
        path for path in folder.rglob("*") if path.suffix in (".json", ".parquet") and not path.name.startswith(".")
    )
    return max(path for path in found if path.is_file())


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("damage", "folder", "driver_memory"),
    [(flipped, "rounds", 2**30), (Path.unlink, "slices", 2**30), (torn, "slices", 0), (flipped, "slices", 0)],
    ids=["a bit of the record flipped", "a slice gone", "a slice on the cluster torn", "a slice there altered"],
)
def test_after_damage_to_the_last_round_the_one_before_is_continued_from(
    damage: Callable[[Path], None],
    folder: str,
    driver_memory: int,
    expected_of_sliding: Outcome,
    tmp_path: Path,
    spark: SparkSession,
) -> None:
    record(tmp_path, FILES)
    first = engine(tmp_path, spark, chosen=SLIDING, driver_memory=driver_memory, observer=fails_after_commit)
    with pytest.raises(EngineError, match="far enough"):
        first.start(bounded=True).await_end()
    damage(newest(tmp_path / CHECKPOINT / folder))
    again = engine(tmp_path, spark, chosen=SLIDING, driver_memory=driver_memory)
    assert again.status().round == 2
    assert "round 3 cannot be continued from" in again.status().warnings[0]
    again.start(bounded=True).await_end()
    assert differences(tmp_path, expected_of_sliding) == Differences()
