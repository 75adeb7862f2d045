"""Kill -9 of the driver on Spark, and damage to what it left: the same results in the end."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.crash.differences import Differences, calm, differences, lived
from benchmarks.crash.outcome import Outcome
from benchmarks.crash.program import CHECKPOINT, engine
from benchmarks.crash.recording import record
from eventide.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILES = 6
TWO_STREAMS = ("sliding", "levels", "by_rows")
SLIDING = ("sliding",)


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
    return max(path for path in folder.rglob("*") if path.is_file() and path.suffix in (".json", ".arrow", ".parquet"))


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize(
    ("damage", "folder", "driver_memory"),
    [(flipped, "rounds", 2**30), (Path.unlink, "slices/sliding", 2**30), (torn, "slices/sliding", 0)],
    ids=["a bit of the record flipped", "a slice gone", "a slice on the cluster torn"],
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
