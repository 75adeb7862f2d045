"""Results in Delta tables: the contract, from this process and from Spark's tasks, transactions, and kill -9."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

import eventide
from eventide.errors import DeclarationError, EngineError
from eventide.results.results import Results
from eventide.sinks import Delta
from eventide.sinks.sink import Owner
from eventide.testing.sink_contract import check_sink, from_cluster, sample
from eventide.testing.sink_kill import check_sink_killed
from eventide.testing.upsert_contract import check_upserts, upserted
from tests.choice import chosen
from tests.engine.small_streams import wait_until

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS = "t,v\n1,5\n12,6\n25,7\n"


def rows_of(path: Path, query: str) -> list[dict[str, Any]]:
    if not DeltaTable.is_deltatable(str(path)):
        return []
    found: list[dict[str, Any]] = DeltaTable(path).to_pyarrow_table().to_pylist()
    return [row for row in found if row["query"] == query]


def test_the_sink_keeps_the_contract(tmp_path: Path) -> None:
    check_sink(partial(Delta, tmp_path / "t"), partial(rows_of, tmp_path / "t"))


@pytest.mark.slow
def test_the_sink_stands_being_killed(tmp_path: Path) -> None:
    check_sink_killed(partial(Delta, tmp_path / "t"), partial(rows_of, tmp_path / "t"))


@pytest.mark.spark
def test_the_tasks_of_spark_write_what_is_on_the_cluster(spark: SparkSession, tmp_path: Path) -> None:
    made = from_cluster(partial(Delta, tmp_path / "t", large=0), spark, tmp_path / "rows")
    check_sink(made, partial(rows_of, tmp_path / "t"))
    paths = [
        Path(action["path"]).parent.name
        for action in pa.table(DeltaTable(tmp_path / "t").get_add_actions()).to_pylist()
    ]
    assert any(path for path in paths), "no file was written by a task"


KEY = ("window_start", "window_end", "device")


def test_upserts_keep_the_contract_as_well(tmp_path: Path) -> None:
    check_sink(partial(Delta, tmp_path / "t", "upsert", key=KEY), partial(rows_of, tmp_path / "t"))


@pytest.mark.parametrize("seed", chosen(range(6), lambda seed: seed < 2))
def test_the_newest_result_of_each_key_is_there_whatever_is_taken_back(tmp_path: Path, seed: int) -> None:
    check_upserts(partial(Delta, tmp_path / "t", "upsert"), partial(rows_of, tmp_path / "t"), seed)


@pytest.mark.slow
def test_upserts_stand_being_killed(tmp_path: Path) -> None:
    check_sink_killed(partial(Delta, tmp_path / "t", "upsert", key=KEY), partial(rows_of, tmp_path / "t"))


def test_what_an_upsert_replaced_comes_back_only_while_the_log_remembers_it(tmp_path: Path) -> None:
    sink = Delta(tmp_path / "t", "upsert")
    for round in range(2):
        sink.emit(upserted(round, [(0, "a", "early", round)], "q"))
    log = tmp_path / "t" / "_delta_log"
    DeltaTable(tmp_path / "t").create_checkpoint()
    for old in range(3):
        (log / f"{old:020d}.json").unlink(missing_ok=True)
    with pytest.raises(EngineError, match="after round 0 cannot be deleted"):
        Delta(tmp_path / "t", "upsert").rewind("q", 0)


def test_a_round_is_a_transaction_of_the_query_and_its_checkpoint(tmp_path: Path) -> None:
    sink = Delta(tmp_path / "t")
    sink.claim("q", Owner("7f3a"))
    for round in (3, 4):
        sink.emit(sample("q", round, rows=2))
    table = DeltaTable(tmp_path / "t")
    assert table.transaction_version("eventide 7f3a q") == 4
    assert table.history(1)[0]["eventide.round"] == "4"
    assert Delta(tmp_path / "t").owner_of("q") == Owner("7f3a")


def test_columns_that_are_new_are_added(tmp_path: Path) -> None:
    sink, first = Delta(tmp_path / "t"), sample("q", 1, rows=1)
    sink.emit(first)
    wider = sample("q", 2, rows=1).table().append_column("most", pa.array([7]))
    sink.emit(Results.of_table("q", 2, wider))
    assert sorted((row["round"], row["most"]) for row in rows_of(tmp_path / "t", "q")) == [(1, None), (2, 7)]


def test_a_table_that_is_none_of_ours_is_refused(tmp_path: Path) -> None:
    write_deltalake(tmp_path / "t", pa.table({"x": [1]}))
    with pytest.raises(EngineError, match="has no column `round`: it is none of Eventide's"):
        Delta(tmp_path / "t").emit(sample("q", 1, rows=1))


def test_a_script_writes_into_a_delta_table_and_goes_on_after_a_restart(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text(ROWS)
    script = f"""
    CREATE STREAM s (t BIGINT, v INT) FROM csv '{tmp_path}/in' TIMESTAMP BY t DELAY 0;
    CREATE QUERY sums AS SELECT sum(v) AS total FROM s [RANGE 10] INTO delta '{tmp_path}/out';
    """
    for _ in range(2):
        with eventide.sql(script).start(checkpoint=tmp_path / "state", engine="local", bounded=True) as running:
            running.awaitTermination()
    assert sorted(row["total"] for row in rows_of(tmp_path / "out", "sums")) == [5, 6, 7]
    with pytest.raises(DeclarationError, match="has results of query 'sums' from another checkpoint"):
        eventide.sql(script).start(checkpoint=tmp_path / "other", engine="local", bounded=True)


def test_a_table_keeps_the_last_value_of_each_group_that_changes(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, rows in enumerate(["1,a,5\n2,b,6\n30,b,1\n", "3,a,7\n31,b,2\n", "60,c,1\n"]):
        (tmp_path / "in" / f"{number}.csv").write_text(f"t,k,v\n{rows}")
    script = f"""
    CREATE STREAM s (t BIGINT, k STRING, v INT) FROM csv '{tmp_path}/in' LIMIT 1 FILES PER ROUND DELAY 40;
    CREATE QUERY sums AS SELECT k, sum(v) AS total FROM s GROUP BY k EMIT CHANGES STATE TTL 10
        INTO delta '{tmp_path}/out' OPTIONS (mode 'upsert');
    CREATE QUERY counted AS SELECT count(*) AS n FROM s EMIT CHANGES STATE TTL FOREVER
        INTO delta '{tmp_path}/all' OPTIONS (mode 'upsert');
    """
    running = eventide.sql(script).start(checkpoint=tmp_path / "state", engine="local")
    wait_until(lambda: len(rows_of(tmp_path / "out", "sums")) == 3)
    running.stop()
    found = {(row["k"], row["kind"], row["total"]) for row in rows_of(tmp_path / "out", "sums")}
    assert found == {("a", "final", 12), ("b", "changed", 3), ("c", "changed", 1)}
    [counted] = rows_of(tmp_path / "all", "counted")
    assert (counted["kind"], counted["n"]) == ("changed", 6)
