"""Late rows and rejects on the cluster: the same tables as with everything on the driver, read in the same way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from eventide.engine.checkpoint.record import StateFile
from eventide.engine.relations.relation import Layout, Relation, Summary
from eventide.engine.round.engine import Engine
from eventide.engine.round.side_tables import LATE, SideTables
from eventide.engine.spark.backend import SparkBackend
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Stream
from eventide.plan.declared.stream import columns as stream_columns
from eventide.plan.declared.window import Window
from eventide.plan.expressions.columns import columns
from eventide.sinks import Directory
from eventide.storage.storage import Storage
from tests.sinks.readers import directory_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MINUTE = 60_000_000
STREAM = Stream("s", stream_columns("k STRING, ts TIMESTAMP, v STRING"), time="ts", source=("k",))
SUMS = Query("sums", "s", Window(MINUTE), named_as(total="sum(CAST(v AS INT))"), named_as("k"))


def rows(minutes: range, value: str = "1") -> pa.Table:
    times = [minute * MINUTE + second * 1_000_000 for minute in minutes for second in range(0, 60, 6)]
    keys = [f"k{number % 3}" for number in range(len(times))]
    kinds = [("k", pa.string()), ("ts", pa.timestamp("us", "UTC")), ("v", pa.string())]
    return pa.table([keys, times, [value] * len(times)], schema=pa.schema(kinds))


def run(spark: SparkSession, folder: Path, driver_memory: int) -> dict[str, list[dict[str, Any]]]:
    """Two rounds: what is late and what is broken comes in the second."""
    checkpoint = folder / "checkpoint"
    sinks = {"sums": Directory(folder / "out", "csv", large=10)}
    engine = Engine(
        Program((STREAM,), (SUMS,)), SparkBackend(spark), str(checkpoint), sinks, None, lambda: 0, driver_memory
    )
    try:
        engine.round({"s": rows(range(10))}, clock=1, heartbeats={"s": 8 * MINUTE})
        second = pa.concat_tables([rows(range(3)), rows(range(9, 10), "x")])
        report = engine.round({"s": second}, clock=2, heartbeats={"s": 9 * MINUTE})
        assert report.late == {"s": 30}
        assert sum(report.rejected.values()) == 10
    finally:
        engine.close()
    found = {}
    for kind in ("late", "rejects"):
        table = ds.dataset(checkpoint / kind / "s", format="parquet").to_table()
        counted = duckdb.execute(
            "SELECT count(*) FROM read_parquet(?)", [f"{checkpoint}/{kind}/*/*.parquet"]
        ).fetchall()
        assert counted == [(table.num_rows,)]
        found[kind] = sorted(table.to_pylist(), key=repr)
    found["results"] = sorted(directory_rows(folder / "out", "csv", "sums"), key=repr)
    return found


@pytest.mark.spark
def test_side_tables_and_results_are_the_same_wherever_the_rows_are(spark: SparkSession, tmp_path: Path) -> None:
    on_driver, on_cluster = run(spark, tmp_path / "driver", 2**28), run(spark, tmp_path / "cluster", 0)
    assert on_cluster == on_driver
    assert len(on_driver["results"]) == 27
    names = sorted(path.name for path in (tmp_path / "cluster" / "checkpoint" / "late" / "s").iterdir())
    assert names[0] == "0000000001-0.parquet"
    [results] = (tmp_path / "cluster" / "out").iterdir()
    assert (results.name, results.is_dir()) == ("sums-0000000000.csv", True)


def test_a_round_that_is_run_again_in_fewer_files_leaves_none_of_the_older_ones(tmp_path: Path) -> None:
    storage = Storage.at(tmp_path)
    for name in ("a", "b", "c"):
        storage.write(f"slices/{name}.parquet", name.encode())
    layout = Layout(columns("k STRING"))

    def on_cluster(*names: str) -> Relation:
        files = tuple(StateFile(f"slices/{name}.parquet", 1, "") for name in names)
        return Relation(layout, None, files, Summary(1, 1, 1))

    tables = SideTables(storage)
    tables.write(LATE, "s", 3, [on_cluster("a", "b"), on_cluster("c")])
    tables.write(LATE, "s", 4, [on_cluster("a", "b")])
    tables.write(LATE, "s", 4, [on_cluster("c")])
    assert storage.list("late") == [
        *(f"late/s/0000000003-{number}.parquet" for number in range(3)),
        "late/s/0000000004-0.parquet",
    ]
    assert storage.read("late/s/0000000004-0.parquet") == b"c"
    tables.write(LATE, "s", 4, [on_cluster("c")])
    assert [path.name for path in (tmp_path / "late" / "s").iterdir() if path.name.startswith(".")] == []
    tables.rewind(3)
    assert len(storage.list("late")) == 3
    assert storage.read("slices/c.parquet") == b"c"
