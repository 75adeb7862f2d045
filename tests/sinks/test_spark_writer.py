"""Any batch writer of Spark as a sink."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.errors import EngineError
from eventide.results.results import Results
from eventide.sinks import SparkWriter
from eventide.testing.sink_contract import check_sink, sample

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def rows_below(folder: Path) -> list[dict[str, Any]]:
    files = [file for file in folder.rglob("*.parquet") if not file.name.startswith((".", "_"))]
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


@pytest.mark.slow
def test_a_parquet_directory_of_its_own_for_each_round_keeps_the_contract(spark: SparkSession, tmp_path: Path) -> None:
    """One function serves one query here, so there is one writer for each."""

    class Writers:
        def emit(self, results: Results) -> None:
            def write(frame: DataFrame, round: int) -> None:
                target = tmp_path / results.query / f"round={round}"
                frame.coalesce(1).write.mode("overwrite").parquet(str(target))

            SparkWriter(spark, write).emit(results)

        def rewind(self, query: str, last: int) -> None:
            SparkWriter(spark, print).rewind(query, last)

        def close(self) -> None:
            SparkWriter(spark, print).close()

    check_sink(Writers, lambda query: rows_below(tmp_path / query))


def test_without_empty_rounds_a_function_that_removes_later_rounds_is_enough(
    spark: SparkSession, tmp_path: Path
) -> None:
    def write(frame: DataFrame, round: int) -> None:
        frame.write.mode("overwrite").parquet(str(tmp_path / f"round={round}"))

    def forget(query: str, last: int) -> None:
        for folder in tmp_path.glob("round=*"):
            if int(folder.name.removeprefix("round=")) > last:
                shutil.rmtree(folder)

    sink = SparkWriter(spark, write, rewind=forget, empty=False)
    for round, rows in enumerate((2, 0, 3)):
        sink.emit(sample("speeds", round, rows))
    sink.rewind("speeds", 1)
    sink.emit(sample("speeds", 2, 0))
    assert [folder.name for folder in tmp_path.iterdir()] == ["round=0"]
    assert len(rows_below(tmp_path)) == 2


def test_the_frame_has_the_types_of_the_results(spark: SparkSession) -> None:
    found: list[tuple[str, list[Any]]] = []

    def receive(frame: DataFrame, round: int) -> None:
        found.append((frame.schema.simpleString(), frame.toArrow().to_pylist()))

    table = pa.table(
        {
            "at": pa.array([0], pa.timestamp("us", "UTC")),
            "local": pa.array([0], pa.timestamp("us")),
            "names": pa.array([["a", None]]),
            "price": pa.array([None], pa.decimal128(10, 2)),
        }
    )
    SparkWriter(spark, receive).emit(Results.of_table("speeds", 0, table))
    kinds = "struct<at:timestamp,local:timestamp_ntz,names:array<string>,price:decimal(10,2)>"
    assert found == [(kinds, table.to_pylist())]


def test_an_error_of_the_function_names_it(spark: SparkSession) -> None:
    def read_nothing(frame: DataFrame, round: int) -> None:
        frame.select("nothing")

    with pytest.raises(
        EngineError, match="read_nothing failed on the results of 'speeds' in round 7: AnalysisException"
    ):
        SparkWriter(spark, read_nothing).emit(sample("speeds", 7, 1))


def test_a_type_that_spark_does_not_know_is_told(spark: SparkSession) -> None:
    table = pa.table({"small": pa.array([1], pa.uint8())})
    with pytest.raises(EngineError, match=r"Spark cannot take the results of 'speeds' in round 7: .*uint8"):
        SparkWriter(spark, print).emit(Results.of_table("speeds", 7, table))
