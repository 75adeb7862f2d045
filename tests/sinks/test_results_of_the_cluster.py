"""Results on the cluster: Spark's tasks write them, and whoever reads sees what the driver would have written."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from eventide.errors import EngineError
from eventide.results.results import Made, Results
from eventide.sinks import Directory, SparkWriter
from eventide.sinks.folder import folder_at
from eventide.sinks.sink import FORMATS
from eventide.testing.sink_contract import check_sink, from_cluster, on_cluster, sample
from tests.sinks.object_store import ObjectStore, object_store
from tests.sinks.readers import directory_rows, visible

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


@pytest.fixture
def store() -> Iterator[ObjectStore]:
    with object_store() as opened:
        yield opened


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_directory_that_tasks_write_keeps_the_contract(spark: SparkSession, tmp_path: Path) -> None:
    make = partial(Directory, tmp_path / "out", "json", large=2)
    check_sink(from_cluster(make, spark, tmp_path / "cluster"), partial(directory_rows, tmp_path / "out", "json"))
    assert not [name for name in names(tmp_path / "out") if name.startswith(".")]


@pytest.mark.slow
def test_a_directory_in_an_object_store_that_tasks_write_keeps_the_contract(
    spark: SparkSession, tmp_path: Path, store: ObjectStore
) -> None:
    def read(query: str) -> list[dict[str, object]]:
        files = [name for name in store.names() if "/." not in name and not name.endswith("_SUCCESS")]
        rows = [row for name in files for row in pq.read_table(pa.BufferReader(store.objects[name])).to_pylist()]
        return [row for row in rows if row["query"] == query]

    make = partial(Directory, store.uri("some/where"), large=2)
    check_sink(from_cluster(make, spark, tmp_path), read)
    assert not [name for name in store.names() if "/." in name]


def test_in_an_object_store_a_marker_says_that_all_parts_are_there(
    spark: SparkSession, tmp_path: Path, store: ObjectStore
) -> None:
    sink = Directory(store.uri("out"), "csv", large=2)
    sink.emit(on_cluster(sample("speeds", 7, 9, batch_rows=1), spark, tmp_path))
    folder = "out/speeds-0000000007.csv"
    assert store.names() == [f"{folder}/_SUCCESS", *(f"{folder}/part-0000{part}.csv" for part in range(3))]
    sink.rewind("speeds", 6)
    assert store.names() == []


@pytest.mark.parametrize("format", FORMATS)
def test_parts_hold_the_rows_of_the_file_that_the_driver_would_write_line_by_line(
    format: str, spark: SparkSession, tmp_path: Path
) -> None:
    given = sample("größe, 'x'", 3, 5000, batch_rows=300)
    Directory(tmp_path / "driver", format).emit(given)
    Directory(tmp_path / "tasks", format, large=100).emit(on_cluster(given, spark, tmp_path / "cluster"))
    [file] = (tmp_path / "driver").iterdir()
    [folder] = (tmp_path / "tasks").iterdir()
    assert file.name == folder.name
    parts = visible(folder)
    assert [part.name for part in parts] == [f"part-{number:05d}.{format}" for number in range(5)]
    if format == "parquet":
        assert pa.concat_tables(map(pq.read_table, parts)).equals(pq.read_table(file))
        return
    texts = [part.read_bytes() for part in parts]
    head = b"" if format == "json" else texts[0].split(b"\n")[0] + b"\n"
    assert all(text.startswith(head) for text in texts)
    assert head + b"".join(text.removeprefix(head) for text in texts) == file.read_bytes()


def test_a_round_takes_the_place_of_itself_in_either_form(spark: SparkSession, tmp_path: Path) -> None:
    sink, cluster = Directory(tmp_path / "out", "csv", large=5), partial(on_cluster, spark=spark, folder=tmp_path / "c")
    for rows, is_folder in ((3, False), (7, True), (8, True), (2, False), (9, True)):
        sink.emit(cluster(sample("speeds", 0, rows, total=rows)))
        assert names(tmp_path / "out") == ["speeds-0000000000.csv"]
        assert (tmp_path / "out" / "speeds-0000000000.csv").is_dir() == is_folder
        assert len(directory_rows(tmp_path / "out", "csv", "speeds")) == rows
    sink.emit(cluster(sample("speeds", 0, 0)))
    assert names(tmp_path / "out") == []


def test_readers_see_files_and_folders_alike_and_nothing_that_is_being_written(
    spark: SparkSession, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    sink = Directory(out, large=5)
    sink.emit(sample("speeds", 0, 3))
    sink.emit(on_cluster(sample("speeds", 1, 40, batch_rows=2), spark, tmp_path / "cluster"))
    with folder_at(out).gathering("speeds-0000000002.parquet") as folder:
        with folder.writing("part-00000.parquet") as file:
            pq.write_table(sample("speeds", 2, 5).table(), file)
        assert spark.read.parquet(f"{out}/speeds-*.parquet").count() == 43
        assert ds.dataset(out, format="parquet").count_rows() == 43
        patterns = [f"{out}/speeds-*.parquet", f"{out}/speeds-*.parquet/*.parquet"]
        counted = duckdb.execute("SELECT count(*) FROM read_parquet(?)", [patterns]).fetchall()
    assert counted == [(43,)]
    assert ds.dataset(out, format="parquet").count_rows() == 48


def test_rewinding_removes_parts_and_what_a_killed_process_has_left_of_them(
    spark: SparkSession, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    sink = Directory(out, "json", large=1)
    for round in (1, 2):
        sink.emit(on_cluster(sample("speeds", round, 4), spark, tmp_path / "cluster"))
    left = out / ".speeds-0000000001.json.0a1b2c3d.tmp"
    left.mkdir()
    (left / ".part-00000.json.tmp").write_text("{")
    mine = out / "speeds-0000000009.json"
    mine.mkdir()
    (mine / "notes.txt").write_text("mine")
    sink.rewind("speeds", 1)
    assert names(out) == ["speeds-0000000001.json", mine.name]
    with pytest.raises(EngineError, match="A folder has the name of the file"):
        sink.emit(on_cluster(sample("speeds", 9, 4), spark, tmp_path / "cluster"))
    assert names(mine) == ["notes.txt"]


def test_what_a_task_is_refused_is_told_and_what_was_there_stays(spark: SparkSession, tmp_path: Path) -> None:
    out = tmp_path / "out"
    odd = pa.table({"query": ["speeds"] * 3, "small": pa.array([1, 2, 3], pa.float16())})
    sink = Directory(out, "csv", large=1)
    given = on_cluster(sample("speeds", 0, 4), spark, tmp_path / "cluster")
    sink.emit(given)
    with pytest.raises(EngineError, match=r"results of 'speeds' in round 0 as csv: .*Cast that column"):
        sink.emit(on_cluster(Results.of_table("speeds", 0, odd), spark, tmp_path / "cluster"))
    assert len(directory_rows(out, "csv", "speeds")) == 4
    assert names(out) == ["speeds-0000000000.csv"]


def test_a_file_system_that_no_other_process_can_be_told_of_is_written_by_the_driver(
    spark: SparkSession, tmp_path: Path
) -> None:
    filesystem = fs._MockFileSystem()
    Directory("out", filesystem=filesystem, large=1).emit(on_cluster(sample("speeds", 0, 4), spark, tmp_path))
    [found] = filesystem.get_file_info(fs.FileSelector("out"))
    assert (found.base_name, found.type) == ("speeds-0000000000.parquet", fs.FileType.File)


class Elsewhere:
    """Tasks of a machine that does not have the driver's disk: the folder is not there."""

    def __init__(self, results: Results, out: Path) -> None:
        self._parts, self._out = results.parts, out
        self.asked = 0

    def map(self, function: Callable[[int, Iterator[pa.RecordBatch]], Made]) -> list[Made]:
        assert self._parts is not None
        self.asked += 1
        [folder] = [path for path in self._out.iterdir() if path.name.startswith(".")]
        folder.rename(self._out.parent / "away")
        try:
            return self._parts.map(function)
        finally:
            (self._out.parent / "away").rename(folder)

    def share(self, count: int, function: Callable[[int, Callable[[], Iterator[pa.RecordBatch]]], Made]) -> list[Made]:
        raise AssertionError("a directory is not shared out")


def test_where_tasks_do_not_see_the_directory_the_driver_writes_the_file(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    out = tmp_path / "out"
    given = on_cluster(sample("speeds", 0, 4), spark, tmp_path / "cluster")
    elsewhere = Elsewhere(given, out)
    sink = Directory(out, large=1)
    with caplog.at_level(logging.WARNING, "eventide"):
        for round in (0, 1):
            sink.emit(replace(given, round=round, parts=elsewhere))
    assert "this process writes the results of 'speeds' in round 0 itself: Spark's tasks do not see" in caplog.text
    assert elsewhere.asked == 1
    assert names(out) == ["speeds-0000000000.parquet", "speeds-0000000001.parquet"]
    assert all(file.is_file() for file in out.iterdir())


def test_the_writer_of_spark_gets_a_frame_over_the_files(spark: SparkSession, tmp_path: Path) -> None:
    found: list[tuple[int, int, bool]] = []

    def receive(frame: DataFrame, round: int) -> None:
        found.append((round, frame.count(), bool(frame.inputFiles())))

    SparkWriter(spark, receive).emit(on_cluster(sample("speeds", 4, 30), spark, tmp_path))
    SparkWriter(spark, receive).emit(sample("speeds", 5, 3))
    assert found == [(4, 30, True), (5, 3, False)]
