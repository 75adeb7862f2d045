"""Results by JDBC, with PostgreSQL's own driver in a real PostgreSQL: the contract, nested values, owners, kill -9."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pytest
from psycopg.rows import dict_row

import eventide
from eventide.errors import DeclarationError, EngineError
from eventide.results.results import Results
from eventide.sinks import Jdbc
from eventide.sinks.sink import Owner
from eventide.testing.sink_contract import check_sink, from_cluster, sample
from scripts.postgres_server import PostgresServer
from tests.commands.processes import COMMAND, ENVIRONMENT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def server(postgres_server: PostgresServer) -> Iterator[PostgresServer]:
    """A database of the test's own: its schema is emptied afterwards."""
    yield postgres_server
    with psycopg.connect(postgres_server.url) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


@pytest.fixture
def driven(spark: SparkSession) -> SparkSession:
    """A session with the driver."""
    if "postgresql-" not in (spark.conf.get("spark.jars", "") or ""):
        pytest.skip("the driver of PostgreSQL cannot be fetched here")
    return spark


def address(server: PostgresServer) -> dict[str, str]:
    return {
        "url": f"jdbc:postgresql://127.0.0.1:{server.port}/postgres",
        "user": "eventide",
        "password": server.password,
    }


def sink_at(server: PostgresServer, table: str = "results") -> Jdbc:
    given = address(server)
    return Jdbc(given.pop("url"), table, **given)


def rows_of(server: PostgresServer, query: str) -> list[dict[str, Any]]:
    with psycopg.connect(server.url, row_factory=dict_row) as connection:
        there = connection.execute("SELECT to_regclass('results') AS it").fetchone()
        if there is None or there["it"] is None:
            return []
        return connection.execute("SELECT * FROM results WHERE query = %s", [query]).fetchall()


@pytest.mark.slow
@pytest.mark.spark
def test_the_sink_keeps_the_contract(driven: SparkSession, server: PostgresServer) -> None:
    check_sink(partial(sink_at, server), partial(rows_of, server))
    with psycopg.connect(server.url) as connection:
        left = connection.execute("SELECT count(*) FROM pg_tables WHERE tablename LIKE 'eventide\\_%'").fetchone()
    assert left == (1,), "but for the noted rounds no table is left"


@pytest.mark.slow
@pytest.mark.spark
def test_it_takes_what_is_on_the_cluster(driven: SparkSession, server: PostgresServer, tmp_path: Path) -> None:
    check_sink(from_cluster(partial(sink_at, server), driven, tmp_path), partial(rows_of, server))


@pytest.mark.slow
@pytest.mark.spark
def test_lists_and_structs_are_json_and_others_keep_their_results(driven: SparkSession, server: PostgresServer) -> None:
    sink = sink_at(server)
    sink.claim("q", Owner("one"))
    sink.rewind("q", -1)
    nested = sample("q", 1, rows=1).table().append_column("tags", pa.array([["a", "b"]]))
    sink.emit(Results.of_table("q", 1, nested))
    assert [row["tags"] for row in rows_of(server, "q")] == ['["a","b"]']
    other = sink_at(server)
    other.claim("q", Owner("two"))
    with pytest.raises(DeclarationError, match="has results of query 'q' from another checkpoint"):
        other.rewind("q", -1)
    assert len(rows_of(server, "q")) == 1


@pytest.mark.slow
@pytest.mark.spark
def test_a_server_that_is_not_there_is_told_without_the_password(driven: SparkSession) -> None:
    sink = Jdbc("jdbc:postgresql://127.0.0.1:9/postgres", "results", user="eve", password="hunter2")
    with pytest.raises(EngineError, match=r"cannot be deleted from the table 'results' at jdbc:postgresql") as told:
        sink.rewind("q", -1)
    assert "hunter2" not in str(told.value)


def test_the_local_engine_says_what_writes_by_jdbc(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("t,v\n1,5\n")
    script = f"""
    CREATE STREAM s (t BIGINT, v INT) FROM csv '{tmp_path}/in.csv' TIMESTAMP BY t DELAY 0;
    CREATE QUERY sums AS SELECT sum(v) AS total FROM s [RANGE 10]
        INTO jdbc 'sums' OPTIONS (url 'jdbc:postgresql://localhost:1/x');
    """
    with pytest.raises(DeclarationError, match="INTO jdbc is written by Spark: take the Spark engine"):
        eventide.sql(script).start(engine="local", bounded=True)


@pytest.mark.slow
@pytest.mark.spark
def test_a_script_finds_the_driver_by_itself(server: PostgresServer, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("t,v\n1,5\n12,6\n25,7\n")
    options = ", ".join(f"{name} '{value}'" for name, value in address(server).items())
    (tmp_path / "q.sql").write_text(
        f"""CREATE STREAM s (t BIGINT, v INT) FROM csv '{tmp_path}/in.csv' TIMESTAMP BY t DELAY 0;
        CREATE QUERY sums AS SELECT sum(v) AS total FROM s [RANGE 10] INTO jdbc 'results' OPTIONS ({options});"""
    )
    command = [*COMMAND, "run", "q.sql", "--bounded", "--checkpoint", "state"]
    for _ in range(2):
        ran = subprocess.run(
            command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=500, check=False
        )
        if "cannot be had" in ran.stderr:
            pytest.skip("the driver of PostgreSQL cannot be fetched here")
        assert ran.returncode == 0, ran.stderr
        assert sorted(row["total"] for row in rows_of(server, "sums")) == [5, 6, 7]
