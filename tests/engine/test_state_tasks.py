"""Steps over state in one task: what a worker does with files, and which steps are left to Spark SQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from eventide.duckdb.executor import DuckDBExecutor
from eventide.engine.relations.backend import ClusterStep, StoredRows, Target
from eventide.engine.relations.relation import Layout, Summary
from eventide.engine.spark import state_tasks
from eventide.engine.spark.backend import SparkBackend
from eventide.engine.spark.state_tasks import StateFiles, StateTask, TaskStep, run
from eventide.engine.spark.worker import as_bytes, from_bytes
from eventide.errors import DataFaultError
from eventide.plan.declared.stream import columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LAYOUT = Layout(columns("__t BIGINT, v INT, at TIMESTAMP, tags ARRAY<STRING>"), ("__t", "at"))
ROWS = pa.table(
    [[1, 2, 3], [10, 20, None], [5, None, 7], [["a"], [], None]],
    schema=LAYOUT.schema,
)
NUMBERED = Layout(columns("__seq BIGINT, __id BIGINT, v INT"))


def stored(folder: Path, name: str, rows: pa.Table = ROWS, **options: object) -> str:
    folder.mkdir(exist_ok=True)
    pq.write_table(rows, folder / name, **options)
    return str(folder / name)


@pytest.fixture(scope="module")
def bench() -> DuckDBExecutor:
    return DuckDBExecutor(threads=1)


def test_steps_read_files_tables_and_each_other(tmp_path: Path, bench: DuckDBExecutor) -> None:
    files = StateFiles((stored(tmp_path, "a.parquet"), stored(tmp_path, "b.parquet")), LAYOUT)
    target = Target(str(tmp_path / "out"), LAYOUT)
    steps = (
        TaskStep("late", "SELECT held.* FROM held, edge WHERE __t >= edge.__first", target, ()),
        TaskStep("first", "SELECT min(__t) AS first, count(*) AS n FROM late", None, ()),
    )
    wrote, small = run(StateTask(steps, {"held": files}, {"edge": as_bytes(pa.table({"__first": [2]}))}), bench)
    assert wrote.wrote is not None
    assert (wrote.wrote.rows, wrote.wrote.least, wrote.wrote.greatest) == (4, {"__t": 2, "at": 7}, {"__t": 3, "at": 7})
    assert from_bytes(small.small).to_pylist() == [{"first": 2, "n": 4}]
    found = pq.read_table(target.folder)
    assert found.schema.names == LAYOUT.schema.names
    assert sorted(found.column("__t").to_pylist()) == [2, 2, 3, 3]


def test_a_worker_is_left_as_it_was_found(tmp_path: Path, bench: DuckDBExecutor) -> None:
    task = StateTask(
        (TaskStep("n", "SELECT count(*) AS n FROM held", None, ()),),
        {"held": StateFiles((stored(tmp_path, "a.parquet"),), LAYOUT)},
        {"edge": as_bytes(pa.table({"x": [1]}))},
    )
    for _ in range(2):
        run(task, bench)
    views = "SELECT view_name FROM duckdb_views() WHERE NOT internal"
    assert bench.connection.execute(views).fetchall() == []


def test_a_step_whose_needs_wrote_nothing_is_not_run(tmp_path: Path, bench: DuckDBExecutor) -> None:
    files = StateFiles((stored(tmp_path, "a.parquet"),), LAYOUT)
    steps = (
        TaskStep("none", "SELECT * FROM held WHERE __t > 9", Target(str(tmp_path / "none"), LAYOUT), ()),
        TaskStep("after", "SELECT no_such_function(v) FROM none", Target(str(tmp_path / "after"), LAYOUT), ("none",)),
    )
    found = run(StateTask(steps, {"held": files}, {}), bench)
    assert [one.wrote.rows for one in found if one.wrote is not None] == [0, 0]
    assert not (tmp_path / "none").exists()


def test_rows_are_numbered_through_all_batches(
    tmp_path: Path, bench: DuckDBExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_tasks, "BATCH_ROWS", 2048)
    target = Target(str(tmp_path / "out"), NUMBERED, sequence=7)
    step = TaskStep("rows", "SELECT range::INTEGER AS v FROM range(5000)", target, ())
    run(StateTask((step,), {}, {}), bench)
    found = pq.read_table(target.folder)
    assert sorted(found.column("__id").to_pylist()) == list(range(5000))
    assert set(found.column("__seq").to_pylist()) == {7}


def test_files_that_an_older_spark_would_write_are_read_as_the_driver_does(
    tmp_path: Path, bench: DuckDBExecutor
) -> None:
    path = stored(tmp_path, "a.parquet", use_deprecated_int96_timestamps=True)
    step = TaskStep("most", 'SELECT max("at") AS "at" FROM held', None, ())
    [answer] = run(StateTask((step,), {"held": StateFiles((path,), LAYOUT)}, {}), bench)
    assert from_bytes(answer.small).column("at").cast(pa.int64()).to_pylist() == [7]


def test_a_value_that_breaks_a_step_is_told_and_leaves_no_file(tmp_path: Path, bench: DuckDBExecutor) -> None:
    target = Target(str(tmp_path / "out"), Layout(columns("v INT")))
    step = TaskStep("rows", "SELECT CAST('x' || v AS INTEGER) AS v FROM held", target, ())
    files = StateFiles((stored(tmp_path, "a.parquet"),), LAYOUT)
    [answer] = run(StateTask((step,), {"held": files}, {}), bench)
    assert answer.fault is not None
    assert "x10" in answer.fault
    assert not list(tmp_path.glob("out/*.parquet"))


@pytest.mark.spark
@pytest.mark.parametrize("most", [state_tasks.TASK_BYTES, -1], ids=["one_task", "spark_sql"])
def test_the_answers_are_the_same_by_one_task_and_by_spark_sql(
    spark: SparkSession, tmp_path: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state_tasks, "TASK_BYTES", most)
    held = StoredRows((f"file://{stored(tmp_path, 'a.parquet')}",), LAYOUT, ROWS.nbytes)
    steps = [
        ClusterStep("late", "SELECT held.* FROM held CROSS JOIN edge WHERE held.__t >= edge.__first", True,
                    target=Target(f"file://{tmp_path}/late", LAYOUT)),
        ClusterStep("numbered", "SELECT v FROM late", True, target=Target(f"file://{tmp_path}/numbered", NUMBERED, 3)),
        ClusterStep("none", "SELECT * FROM late WHERE __t > 9", True, target=Target(f"file://{tmp_path}/none", LAYOUT)),
        ClusterStep("after", "SELECT * FROM none", True, target=Target(f"file://{tmp_path}/after", LAYOUT),
                    needs=("none",)),
        ClusterStep("small", "SELECT min(v) AS least, count(*) AS n FROM numbered", True),
    ]  # fmt: skip
    backend = SparkBackend(spark)
    late, numbered, none, after, small = backend.run_over(steps, {"held": held, "edge": pa.table({"__first": [2]})})
    assert isinstance(late, Summary)
    assert (late.rows, late.least, late.greatest) == (2, {"__t": 2, "at": 7}, {"__t": 3, "at": 7})
    assert [one.rows for one in (numbered, none, after) if isinstance(one, Summary)] == [2, 0, 0]
    assert isinstance(small, pa.Table)
    assert small.to_pylist() == [{"least": 20, "n": 2}]
    broken = ClusterStep("broken", "SELECT CAST(concat('x', v) AS INT) AS n FROM held", True)
    with pytest.raises(DataFaultError):
        backend.run_over([broken], {"held": held})
