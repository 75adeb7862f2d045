"""Directories: whole files under names that say query and round, bounded memory, and what the outside may refuse."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from eventide.errors import DeclarationError, EngineError
from eventide.results.results import Results
from eventide.sinks import Directory
from eventide.sinks.sink import FORMATS
from eventide.testing.sink_contract import sample
from tests.sinks.object_store import ObjectStore, object_store
from tests.sinks.readers import directory_rows

NO_ROOM = "No space left on device. What was shown before is unchanged: free some space there and start again"


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


def test_a_file_is_named_by_its_query_and_round(tmp_path: Path) -> None:
    for format in FORMATS:
        Directory(tmp_path, format).emit(sample("speeds", 42, 1))
    assert names(tmp_path) == ["speeds-0000000042.csv", "speeds-0000000042.json", "speeds-0000000042.parquet"]


def test_a_round_without_rows_has_no_file(tmp_path: Path) -> None:
    sink = Directory(tmp_path / "out")
    sink.emit(sample("speeds", 0, 0))
    assert names(tmp_path / "out") == []


def test_a_round_without_rows_takes_away_the_file_of_a_run_that_was_not_rewound(tmp_path: Path) -> None:
    Directory(tmp_path).emit(sample("speeds", 3, 2))
    Directory(tmp_path).emit(sample("speeds", 3, 0))
    assert names(tmp_path) == []


QUERIES = [
    "speeds",
    "speeds-1",
    "Speeds",
    "_hidden",
    ".hidden",
    "a/b",
    "..",
    "100%",
    "größe",
    "speeds*",
    "a b",
    "q.csv",
]


@pytest.mark.parametrize("query", QUERIES)
def test_any_name_of_a_query_gives_files_that_a_pattern_finds_and_no_other_query_touches(
    query: str, tmp_path: Path
) -> None:
    sink = Directory(tmp_path)
    for each in QUERIES:
        sink.emit(sample(each, 0, 1))
        sink.emit(sample(each, 1, 1))
    assert not [name for name in names(tmp_path) if name.startswith((".", "_"))]
    own = [name for name in names(tmp_path) if pq.read_table(tmp_path / name)["query"][0].as_py() == query]
    assert len(own) == 2
    pattern = own[0].replace("0000000000", "*")
    found = duckdb.execute("SELECT DISTINCT query FROM read_parquet(?)", [str(tmp_path / pattern)]).fetchall()
    assert found == [(query,)]
    sink.rewind(query, 0)
    assert len(names(tmp_path)) == 2 * len(QUERIES) - 1
    assert len(directory_rows(tmp_path, "parquet", query)) == 1


def test_rewinding_leaves_alone_what_is_not_a_result_of_the_query(tmp_path: Path) -> None:
    others = ["speeds-0000000009.txt", "speeds-9.parquet", "notes.csv", ".speeds.tmp", "x-speeds-0000000009.csv"]
    for name in others:
        (tmp_path / name).write_text("mine")
    (tmp_path / "speeds-0000000009.json").mkdir()
    Directory(tmp_path).rewind("speeds", -1)
    assert names(tmp_path) == sorted([*others, "speeds-0000000009.json"])


def test_rewinding_removes_later_rounds_in_whatever_format_they_were_written(tmp_path: Path) -> None:
    for format in FORMATS:
        for round in (1, 2):
            Directory(tmp_path, format).emit(sample("speeds", round, 1))
    Directory(tmp_path, "json").rewind("speeds", 1)
    assert names(tmp_path) == ["speeds-0000000001.csv", "speeds-0000000001.json", "speeds-0000000001.parquet"]


def test_readers_pass_over_a_file_that_is_being_written(tmp_path: Path) -> None:
    sink = Directory(tmp_path)
    sink.emit(sample("speeds", 0, 3))
    seen: list[list[int]] = []

    def look() -> Iterator[pa.RecordBatch]:
        yield from sample("speeds", 1, 5).batches()
        assert ".speeds-0000000001.parquet.tmp" in names(tmp_path)
        counted = duckdb.execute("SELECT count(*) FROM read_parquet(?)", [f"{tmp_path}/*.parquet"]).fetchall()
        seen.append([ds.dataset(tmp_path, format="parquet").count_rows(), counted[0][0]])

    sink.emit(Results("speeds", 1, 5, sample("speeds", 1, 5).schema, look))
    assert seen == [[3, 3]]
    assert ds.dataset(tmp_path, format="parquet").count_rows() == 8


def test_a_relative_path_stays_where_it_was_when_the_process_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sink = Directory("out")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    sink.emit(sample("speeds", 0, 1))
    assert names(tmp_path / "out") == ["speeds-0000000000.parquet"]


@pytest.mark.parametrize("form", ["file://{}", "file:{}", "FILE://{}"])
def test_a_file_uri_is_a_local_path(form: str, tmp_path: Path) -> None:
    folder = tmp_path / "with space"
    Directory(form.format(str(folder).replace(" ", "%20"))).emit(sample("speeds", 0, 1))
    assert names(folder) == ["speeds-0000000000.parquet"]


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(DeclarationError, match="choose parquet, json or csv"):
        Directory("out", "orc")


# Batches: memory and row groups ------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_a_round_larger_than_memory_should_be_never_is_in_memory_as_a_whole(format: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    batch_rows, batches, most = 100_000, 40, [0]
    schema = pa.schema([("a", pa.float64()), ("b", pa.float64())])
    whole = batch_rows * batches * 16

    def given() -> Iterator[pa.RecordBatch]:
        for _ in range(batches):
            yield pa.record_batch([pa.array(rng.random(batch_rows)), pa.array(rng.random(batch_rows))], schema)
            most[0] = max(most[0], pa.total_allocated_bytes())

    before = pa.total_allocated_bytes()
    Directory(tmp_path, format).emit(Results("large", 0, batch_rows * batches, schema, given))
    assert most[0] - before < whole / 3
    [file] = tmp_path.iterdir()
    assert file.stat().st_size > whole / 2


def test_many_small_batches_do_not_become_many_small_row_groups(tmp_path: Path) -> None:
    Directory(tmp_path).emit(sample("speeds", 0, 2000, batch_rows=10))
    assert pq.read_metadata(tmp_path / "speeds-0000000000.parquet").num_row_groups == 1


def test_wide_rows_are_cut_finer(tmp_path: Path) -> None:
    wide = pa.table({"text": ["x" * 1_000_000] * 80})
    Directory(tmp_path).emit(Results.of_table("wide", 0, wide))
    metadata = pq.read_metadata(tmp_path / "wide-0000000000.parquet")
    assert (metadata.num_rows, metadata.num_row_groups) == (80, 3)


# What the outside refuses ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_a_full_disk_is_told_and_leaves_what_was_there(format: str, tmp_path: Path) -> None:
    sink = Directory(tmp_path, format)
    sink.emit(sample("speeds", 0, 2))
    # A device on which there is never room takes the place of the file that is being written.
    (tmp_path / f".speeds-0000000000.{format}.tmp").symlink_to("/dev/full")
    with pytest.raises(EngineError, match=NO_ROOM):
        sink.emit(sample("speeds", 0, 50_000, total=7))
    assert names(tmp_path) == [f"speeds-0000000000.{format}"]
    assert len(directory_rows(tmp_path, format, "speeds")) == 2
    sink.emit(sample("speeds", 0, 3))
    assert len(directory_rows(tmp_path, format, "speeds")) == 3


def test_a_full_disk_that_is_noticed_only_in_the_end_is_told_too(tmp_path: Path) -> None:
    (tmp_path / ".speeds-0000000000.csv.tmp").symlink_to("/dev/full")
    with pytest.raises(EngineError, match=NO_ROOM):
        Directory(tmp_path, "csv").emit(sample("speeds", 0, 1))
    assert names(tmp_path) == []


@pytest.mark.parametrize("format", FORMATS)
def test_a_file_that_grows_beyond_what_is_allowed_is_told(format: str, tmp_path: Path) -> None:
    program = f"""
        import resource
        from eventide.errors import EngineError
        from eventide.sinks import Directory
        from eventide.testing.sink_contract import sample

        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, {resource.RLIM_INFINITY}))
        sink = Directory({str(tmp_path)!r}, {format!r})
        sink.emit(sample("speeds", 0, 3))
        try:
            sink.emit(sample("speeds", 1, 100_000))
        except EngineError as error:
            print(error)
    """
    answer = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(program)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "File too large. What was shown before is unchanged" in answer.stdout
    assert answer.stderr == ""
    assert names(tmp_path) == [f"speeds-0000000000.{format}"]
    assert len(directory_rows(tmp_path, format, "speeds")) == 3


@pytest.mark.parametrize("below", ["", "deeper/still"])
def test_a_path_that_is_a_file_is_told_when_the_engine_starts(below: str, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    sink = Directory(tmp_path / "out" / below)
    told = "A file is where the folder should be: move it away, or name another"
    with pytest.raises(EngineError, match=told):
        sink.rewind("speeds", -1)
    with pytest.raises(EngineError, match=told):
        sink.emit(sample("speeds", 0, 1))
    assert (tmp_path / "out").read_text() == "a file"


@contextmanager
def as_nobody() -> Iterator[None]:
    """Root may do everything; whoever else runs the tests is somebody else already."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_missing_permission_is_told_when_the_engine_starts(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir(mode=0o500)
    with as_nobody(), pytest.raises(EngineError, match=r"Permission denied\. Give this user the right to write there"):
        Directory(folder).rewind("speeds", -1)


def test_a_permission_that_is_taken_away_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    sink = Directory(folder)
    sink.emit(sample("speeds", 0, 1))
    folder.chmod(0o500)
    with as_nobody(), pytest.raises(EngineError, match=r"Permission denied\. Give this user the right to write there"):
        sink.emit(sample("speeds", 1, 1))
    folder.chmod(0o700)
    assert names(folder) == ["speeds-0000000000.parquet"]


def test_a_folder_that_has_the_name_of_the_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "speeds-0000000000.parquet" / "x").mkdir(parents=True)
    with pytest.raises(EngineError, match="A folder has the name of the file"):
        Directory(tmp_path).emit(sample("speeds", 0, 1))
    assert names(tmp_path) == ["speeds-0000000000.parquet"]


def test_a_name_too_long_for_a_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="Give the query a shorter name"):
        Directory(tmp_path).emit(sample("q" * 300, 0, 1))


@pytest.mark.parametrize("format", ["json", "csv"])
def test_a_type_that_cannot_be_written_is_told_and_the_next_round_can_be(format: str, tmp_path: Path) -> None:
    sink = Directory(tmp_path, format)
    odd = pa.table({"query": ["speeds"], "half": pa.array([np.float16(1)], pa.float16())})
    with pytest.raises(EngineError, match=f"as {format}: .*Cast that column to another type, or choose parquet"):
        sink.emit(Results.of_table("speeds", 0, odd))
    assert names(tmp_path) == []
    sink.emit(sample("speeds", 1, 2))
    assert len(directory_rows(tmp_path, format, "speeds")) == 2


def test_a_type_that_parquet_does_not_have_is_told(tmp_path: Path) -> None:
    odd = pa.table({"gap": pa.array([(1, 2, 3)], pa.month_day_nano_interval())})
    with pytest.raises(EngineError, match=r"cannot write speeds-0000000000\.parquet"):
        Directory(tmp_path).emit(Results.of_table("speeds", 0, odd))
    assert names(tmp_path) == []


# Object stores -----------------------------------------------------------------------------------------------------


@pytest.fixture
def store() -> Iterator[ObjectStore]:
    with object_store() as opened:
        yield opened


def test_hadoops_name_of_an_object_store_is_understood(store: ObjectStore) -> None:
    Directory(store.uri("out").replace("s3://", "s3a://"), "csv").emit(sample("speeds", 0, 1))
    assert store.names() == ["out/speeds-0000000000.csv"]


def test_in_an_object_store_rounds_without_rows_cost_nothing_once_the_engine_has_started(store: ObjectStore) -> None:
    sink = Directory(store.uri("out"))
    sink.rewind("speeds", -1)
    sink.emit(sample("speeds", 0, 2))
    asked = len(store.requests)
    for round in range(1, 10):
        sink.emit(sample("speeds", round, 0))
    assert len(store.requests) == asked
    sink.emit(sample("speeds", 0, 0))
    assert store.names() == []


def test_an_object_store_that_denies_is_told(store: ObjectStore) -> None:
    store.refuses = "/out/"
    with pytest.raises(EngineError, match=r"cannot write speeds-0000000000\.parquet"):
        Directory(store.uri("out")).emit(sample("speeds", 0, 2))
    assert store.names() == []


def test_an_upload_that_fails_on_its_way_leaves_what_was_there(store: ObjectStore) -> None:
    sink = Directory(store.uri("out"))
    noise = pa.table({"noise": np.random.default_rng(0).random(3_000_000)})
    sink.emit(Results.of_table("speeds", 0, noise.slice(0, 1)))
    before = dict(store.objects)
    store.refuses = "partNumber=2"
    with pytest.raises(EngineError, match=r"cannot write speeds-0000000000\.parquet"):
        sink.emit(Results.of_table("speeds", 0, noise))
    assert any("partNumber=1" in request for request in store.requests)
    assert {name: store.objects[name] for name in store.names()} == before
