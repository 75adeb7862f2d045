"""The joins that the benchmark asks for: their truth, and Eventide's answers, also where one stream falls silent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.bounded_run import to_the_end
from benchmarks.disorder import Disorder
from benchmarks.driver_memory import DRIVER_MEMORY_AT, add_place
from benchmarks.harness import database, parser
from benchmarks.join_vs_spark.__main__ import Measured
from benchmarks.join_vs_spark.questions import EPOCHS, INTERVAL, JOINED, QUESTIONS, Compared, Inputs, Question, Truth
from benchmarks.join_vs_spark.sides import EVENTIDE, Task
from benchmarks.places import result_files
from eventide.engine.local.engine import LocalEngine
from eventide.engine.operators.placement import DRIVER_MEMORY
from eventide.sinks.directory import Directory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Inputs:
    folder = tmp_path_factory.mktemp("joins")
    left = Disorder(4_000, groups=50, files=4, seconds=80, seed=1).into(folder / "left")
    silent = Disorder(2_000, groups=50, files=2, seconds=40, seed=2).into(folder / "silent")
    return Inputs(left, silent)


def told(question: Question, inputs: Inputs, folder: Path) -> list[str]:
    program = question.program(inputs, max_files=1)
    to_the_end(LocalEngine(program, str(folder / "checkpoint"), {JOINED: Directory(folder / "results")}))
    return result_files(folder / "results" / f"{JOINED}-*.parquet")


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_a_join_tells_the_truth(question: Question, inputs: Inputs, tmp_path: Path) -> None:
    compared = Truth(question, inputs).compare(told(question, inputs, tmp_path))
    assert compared.told > 100
    assert (compared.missing, compared.wrong) == (0, 0)


def test_a_stream_that_falls_silent_does_not_hold_the_other_up(inputs: Inputs, tmp_path: Path) -> None:
    files = told(EPOCHS, inputs, tmp_path)
    (alone,) = database().execute(
        "SELECT count(*) FROM read_parquet($files) WHERE heartbeat IS NOT NULL AND b_cnt IS NULL", {"files": files}
    ).fetchone() or (0,)
    assert alone > 50


def test_a_wrong_row_and_a_missing_one_are_told(inputs: Inputs, tmp_path: Path) -> None:
    truth = Truth(INTERVAL, inputs)
    files = told(INTERVAL, inputs, tmp_path)
    changed = tmp_path / "changed.parquet"
    database().execute(f"COPY (SELECT * REPLACE (a_v + 1000 AS a_v) FROM read_parquet({files}) LIMIT 5) TO '{changed}'")
    compared = truth.compare([str(changed)])
    assert compared.wrong == 5
    assert compared.missing == truth.compare(files).told
    measured = Measured({}, {("interval", "spark"): Compared(5, 10, 0), ("interval", "eventide"): Compared(5, 0, 0)})
    assert measured.rows_equal
    assert not Measured({}, {("interval", "spark"): compared}).rows_equal


def test_a_round_that_is_a_folder_of_parts_is_compared_too(inputs: Inputs, tmp_path: Path) -> None:
    (whole,) = told(INTERVAL, inputs, tmp_path)[:1]
    folder = tmp_path / "large" / f"{JOINED}-0000000001.parquet"
    folder.mkdir(parents=True)
    Path(whole).rename(folder / "part-00000.parquet")
    assert result_files(folder.parent / EVENTIDE.pattern) == [str(folder / "part-00000.parquet")]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("driver_memory", DRIVER_MEMORY_AT.values(), ids=DRIVER_MEMORY_AT)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.name)
def test_a_join_tells_the_truth_wherever_its_state_is(
    question: Question, driver_memory: int, spark: SparkSession, inputs: Inputs, tmp_path: Path
) -> None:
    task = Task(question, inputs, 1, tmp_path, driver_memory)
    EVENTIDE.run(spark, task)
    compared = Truth(question, inputs).compare(result_files(task.results / EVENTIDE.pattern))
    assert compared.told > 100
    assert (compared.missing, compared.wrong) == (0, 0)


def test_the_place_is_a_budget_of_the_drivers_memory() -> None:
    arguments = parser("joins")
    add_place(arguments)
    assert DRIVER_MEMORY_AT[arguments.parse_args(["--place", "cluster"]).place] == 0
    assert DRIVER_MEMORY_AT[arguments.parse_args([]).place] == DRIVER_MEMORY
