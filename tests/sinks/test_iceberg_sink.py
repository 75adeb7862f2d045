"""Results in Iceberg tables: the contract, from this process and from Spark's tasks, snapshots, and kill -9."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyiceberg.table import Table

import eventide
from eventide.errors import DeclarationError, EngineError
from eventide.results.results import Results
from eventide.sinks import Iceberg
from eventide.sinks.sink import Owner
from eventide.storage.iceberg import catalog_of, identifier, table_at
from eventide.testing.sink_contract import check_sink, from_cluster, sample
from eventide.testing.sink_kill import check_sink_killed
from eventide.testing.upsert_contract import check_upserts, upserted
from tests.choice import chosen

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "lake.speeds"
KEY = ("window_start", "window_end", "device")
ROWS = "t,v\n1,5\n12,6\n25,7\n"


def sink_at(path: Path, mode: str = "append", **options: Any) -> Iceberg:
    return Iceberg(NAME, mode, warehouse=str(path), **options)


def table_in(path: Path) -> Table:
    table = table_at(NAME, {"warehouse": str(path)})
    assert table is not None
    return table


def rows_of(path: Path, query: str) -> list[dict[str, Any]]:
    table = table_at(NAME, {"warehouse": str(path)})
    found: list[dict[str, Any]] = [] if table is None else table.scan().to_arrow().to_pylist()
    return [row for row in found if row["query"] == query]


def test_the_sink_keeps_the_contract(tmp_path: Path) -> None:
    check_sink(partial(sink_at, tmp_path), partial(rows_of, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_the_sink_stands_being_killed(tmp_path: Path, mode: str) -> None:
    key = KEY if mode == "upsert" else ()
    check_sink_killed(partial(sink_at, tmp_path, mode, key=key), partial(rows_of, tmp_path))


@pytest.mark.slow
@pytest.mark.spark
def test_the_tasks_of_spark_write_what_is_on_the_cluster(spark: SparkSession, tmp_path: Path) -> None:
    made = from_cluster(partial(sink_at, tmp_path / "lake", large=0), spark, tmp_path / "rows")
    check_sink(made, partial(rows_of, tmp_path / "lake"))
    files = table_in(tmp_path / "lake").inspect.files().column("file_path").to_pylist()
    assert any("part-0" in file for file in files), "no file was written by a task"


@pytest.mark.slow
def test_upserts_keep_the_contract_as_well(tmp_path: Path) -> None:
    check_sink(partial(sink_at, tmp_path, "upsert", key=KEY), partial(rows_of, tmp_path))


@pytest.mark.parametrize("seed", chosen(range(6), lambda seed: seed < 1))
def test_the_newest_result_of_each_key_is_there_whatever_is_taken_back(tmp_path: Path, seed: int) -> None:
    check_upserts(partial(sink_at, tmp_path, "upsert"), partial(rows_of, tmp_path), seed)


def test_what_an_upsert_replaced_comes_back_only_while_its_snapshot_is_there(tmp_path: Path) -> None:
    sink = sink_at(tmp_path, "upsert")
    for round in range(2):
        sink.emit(upserted(round, [(0, "a", "early", round)], "q"))
    table = table_in(tmp_path)
    newest = table.current_snapshot()
    assert newest is not None
    table.maintenance.expire_snapshots().by_ids(
        [one.snapshot_id for one in table.snapshots() if one.snapshot_id != newest.snapshot_id]
    ).commit()
    with pytest.raises(EngineError, match=r"does not remember what it was before round 1 of 'q'"):
        sink_at(tmp_path, "upsert").rewind("q", 0)


def test_the_summary_of_a_snapshot_names_the_query_and_its_round(tmp_path: Path) -> None:
    sink = sink_at(tmp_path)
    sink.claim("q", Owner("7f3a"))
    for round in (3, 4):
        sink.emit(sample("q", round, rows=2))
    said = [one.summary.additional_properties for one in table_in(tmp_path).snapshots() if one.summary]
    assert [(one["eventide.query"], one["eventide.round"]) for one in said] == [("q", "3"), ("q", "4")]
    assert sink_at(tmp_path).owner_of("q") == Owner("7f3a")


def test_columns_that_are_new_are_added(tmp_path: Path) -> None:
    sink = sink_at(tmp_path)
    sink.emit(sample("q", 1, rows=1))
    sink.emit(Results.of_table("q", 2, sample("q", 2, rows=1).table().append_column("most", pa.array([7]))))
    assert sorted((row["round"], row["most"]) for row in rows_of(tmp_path, "q")) == [(1, None), (2, 7)]


def test_a_table_that_is_none_of_ours_is_refused_and_so_is_a_folder(tmp_path: Path) -> None:
    catalog = catalog_of({"warehouse": str(tmp_path)})
    catalog.create_namespace("lake")
    catalog.create_table(identifier(NAME), pa.schema([("x", pa.int64())]))
    with pytest.raises(EngineError, match="has no column `round`: it is none of Eventide's"):
        sink_at(tmp_path).emit(sample("q", 1, rows=1))
    with pytest.raises(DeclarationError, match="is a folder, and Iceberg writes into tables of a catalog"):
        Iceberg(f"{tmp_path}/speeds")
    with pytest.raises(DeclarationError, match="where is the catalog of Iceberg"):
        Iceberg(NAME).emit(sample("q", 1, rows=1))


def test_a_script_writes_into_an_iceberg_table_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(ROWS)
    script = f"""
    CREATE STREAM s (t BIGINT, v INT) FROM csv '{tmp_path}/in' TIMESTAMP BY t DELAY 0;
    CREATE QUERY sums AS SELECT sum(v) AS total FROM s [RANGE 10]
        INTO iceberg '{NAME}' OPTIONS (warehouse '{tmp_path}/lake');
    """
    for _ in range(2):
        with eventide.sql(script).start(checkpoint=tmp_path / "state", engine="local", bounded=True) as running:
            running.awaitTermination()
    assert sorted(row["total"] for row in rows_of(tmp_path / "lake", "sums")) == [5, 6, 7]
    with pytest.raises(DeclarationError, match="has results of query 'sums' from another checkpoint"):
        eventide.sql(script).start(checkpoint=tmp_path / "other", engine="local", bounded=True)
