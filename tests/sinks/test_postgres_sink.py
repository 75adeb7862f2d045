"""Results in a real PostgreSQL: the contract, right types, keys, a transaction for each round, and kill -9."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg
import pyarrow as pa
import pytest
from psycopg.rows import dict_row

import eventide
from eventide.errors import DeclarationError, EngineError
from eventide.launch.engines import claim_outputs
from eventide.results.results import Results
from eventide.sinks import Memory, Postgres
from eventide.testing.sink_contract import check_sink, from_cluster, on_cluster, sample
from eventide.testing.sink_kill import check_sink_killed
from scripts.postgres_server import PostgresServer
from scripts.servers import free_port
from tests.sinks.postgres_engine import STEPS, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OpenSink: TypeAlias = Callable[..., Postgres]
KEY = ("window_start", "window_end", "device")


@pytest.fixture
def url(postgres_server: PostgresServer) -> Iterator[str]:
    """A database of the test's own: its schema is emptied afterwards."""
    yield postgres_server.url
    with psycopg.connect(postgres_server.url) as connection:
        connection.execute("DROP SCHEMA public CASCADE")
        connection.execute("CREATE SCHEMA public")


@pytest.fixture
def open_sink() -> Iterator[OpenSink]:
    """Opens sinks, and closes them in the end."""
    with ExitStack() as stack:

        def opened(*arguments: Any, **options: Any) -> Postgres:
            return stack.enter_context(closing(Postgres(*arguments, **options)))

        yield opened


def rows_of(url: str, table: str, query: str | None = None, where: str = "") -> list[dict[str, Any]]:
    """What a reader sees; nothing where there is no such table."""
    with psycopg.connect(url, row_factory=dict_row) as connection:
        there = connection.execute("SELECT to_regclass(%s) AS it", [table]).fetchone()
        if there is None or there["it"] is None:
            return []
        condition = "true" if query is None else "query = %s"
        text = f"SELECT * FROM {table} WHERE {condition} {where}"
        return connection.execute(text, None if query is None else [query]).fetchall()


@pytest.mark.parametrize("mode", ["upsert", "append"])
def test_every_mode_keeps_the_contract(mode: str, url: str) -> None:
    key = KEY if mode == "upsert" else ()
    check_sink(partial(Postgres, url, "results", mode, key=key), partial(rows_of, url, "results"))


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["upsert", "append"])
def test_every_mode_stands_being_killed(mode: str, url: str) -> None:
    key = KEY if mode == "upsert" else ()
    check_sink_killed(partial(Postgres, url, "results", mode, key=key), partial(rows_of, url, "results"))


def of(round: int, kind: str, totals: dict[str | None, int], window: int = 0) -> Results:
    """Results of a query with a group, all of one window."""
    table = sample("q", round, len(totals)).table()
    at = pa.array([window * 60_000_000] * len(totals), pa.timestamp("us", "UTC"))
    columns: dict[str, Any] = {"kind": [kind] * len(totals), "window_start": at, "window_end": at}
    columns |= {"device": list(totals), "total": list(totals.values())}
    for name, values in columns.items():
        table = table.set_column(
            table.schema.get_field_index(name),
            table.schema.field(name),
            [pa.array(values, table.schema.field(name).type)],
        )
    return replace(Results.of_table("q", round, table), key=KEY)


def shown(url: str) -> dict[Any, tuple[str, int]]:
    return {row["device"]: (row["kind"], row["total"]) for row in rows_of(url, "results", "q")}


def test_an_early_result_gives_way_to_the_final_one_and_that_to_a_revised_one(url: str, open_sink: OpenSink) -> None:
    sink = open_sink(url, "results")
    sink.emit(of(0, "early", {"a": 1, None: 2}))
    sink.emit(of(1, "final", {"a": 10, None: 20, "b": 30}))
    assert shown(url) == {"a": ("final", 10), None: ("final", 20), "b": ("final", 30)}
    sink.emit(of(2, "revised", {None: 21}))
    assert shown(url) == {"a": ("final", 10), None: ("revised", 21), "b": ("final", 30)}


def test_a_round_that_is_taken_back_brings_back_what_it_had_replaced(url: str, open_sink: OpenSink) -> None:
    sink = open_sink(url, "results")
    sink.emit(of(0, "early", {"a": 1, None: 2, "c": 3}))
    sink.emit(of(1, "final", {"a": 10, None: 20}))
    sink.emit(of(1, "final", {"b": 30}))
    assert shown(url) == {"a": ("early", 1), None: ("early", 2), "b": ("final", 30), "c": ("early", 3)}
    again = open_sink(url, "results")
    again.rewind("q", 0)
    again.emit(of(1, "final", {}))
    assert shown(url) == {"a": ("early", 1), None: ("early", 2), "c": ("early", 3)}


def test_until_a_round_comes_again_what_it_showed_can_be_read(url: str, open_sink: OpenSink) -> None:
    open_sink(url, "results").emit(of(0, "final", {"a": 10}))
    open_sink(url, "results").rewind("q", -1)
    assert shown(url) == {"a": ("final", 10)}


def test_of_two_early_results_of_a_round_the_later_one_counts(url: str, open_sink: OpenSink) -> None:
    first, second = of(0, "early", {"a": 1}), of(0, "early", {"a": 2})
    both = pa.concat_tables([first.table(), second.table()])
    open_sink(url, "results").emit(replace(Results.of_table("q", 0, both), key=KEY))
    assert shown(url) == {"a": ("early", 2)}


def test_values_come_back_as_they_went_in_with_types_of_their_own(url: str, open_sink: OpenSink) -> None:
    values = {
        "flag": (pa.bool_(), "boolean", True),
        "tiny": (pa.int8(), "smallint", -1),
        "big": (pa.int64(), "bigint", 2**62),
        "real": (pa.float32(), "real", 0.5),
        "nan": (pa.float64(), "double precision", float("-inf")),
        "name": (pa.string(), "text", 'a "b", \\. \n ü'),
        "empty": (pa.string(), "text", ""),
        "none": (pa.string(), "text", None),
        "bytes": (pa.binary(), "bytea", b"\x00\\\xff"),
        "day": (pa.date32(), "date", date(1969, 7, 20)),
        "at": (pa.timestamp("us", "UTC"), "timestamp with time zone", datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)),
        "local": (pa.timestamp("us"), "timestamp without time zone", datetime(2026, 1, 2, 3, 4, 5)),
        "price": (pa.decimal128(12, 3), "numeric", Decimal("-1.250")),
        "list": (pa.list_(pa.int32()), "jsonb", [1, None]),
        "struct": (pa.struct([("x", pa.string())]), "jsonb", {"x": "y"}),
    }  # fmt: skip
    table = sample("q", 0, 1).table()
    for name, (kind, _, value) in values.items():
        table = table.append_column(name, pa.array([value], kind))
    open_sink(url, "results", "append").emit(Results.of_table("q", 0, table))
    [row] = rows_of(url, "results")
    assert {name: row[name] for name in values} == {name: value for name, (_, _, value) in values.items()}
    types = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'results'"
    with psycopg.connect(url) as connection:
        found: dict[str, str] = dict(connection.execute(types).fetchall())
    assert {name: found[name] for name in values} == {name: kind for name, (_, kind, _) in values.items()}


def test_rows_have_no_key_unless_one_is_named(url: str, open_sink: OpenSink) -> None:
    rows = sample("q", 0, 3)
    with pytest.raises(EngineError, match=r"name their key \(OPTIONS \(key 'id'\)\), or take the mode append"):
        open_sink(url, "results", "upsert").emit(rows)
    with pytest.raises(EngineError, match="the key 'id' is no column of 'q'; it has query, kind"):
        open_sink(url, "results", key=["id"]).emit(rows)
    open_sink(url, "results").emit(rows)
    assert len(rows_of(url, "results")) == 3


def test_a_column_that_a_table_lacks_is_told_with_the_way_out(url: str, open_sink: OpenSink) -> None:
    open_sink(url, "results", "append").emit(sample("q", 0, 1))
    table = sample("q", 1, 1).table().append_column("more", pa.array([7]))
    told = 'ALTER TABLE results ADD COLUMN "more" bigint'
    with pytest.raises(EngineError, match=told):
        open_sink(url, "results", "append").emit(Results.of_table("q", 1, table))
    with psycopg.connect(url) as connection:
        connection.execute(told)
    open_sink(url, "results", "append").emit(Results.of_table("q", 1, table))
    assert [row["more"] for row in rows_of(url, "results", where="ORDER BY round")] == [None, 7]


def test_a_table_may_be_in_another_schema(url: str, open_sink: OpenSink) -> None:
    with psycopg.connect(url) as connection:
        connection.execute("CREATE SCHEMA IF NOT EXISTS reports")
    open_sink(url, "reports.results", "append").emit(sample("q", 0, 2))
    assert len(rows_of(url, "reports.results")) == 2


def test_a_server_that_is_not_there_or_refuses_is_told_and_no_password_with_it(
    postgres_server: PostgresServer, open_sink: OpenSink
) -> None:
    away = open_sink(f"postgresql://eve:hunter2@127.0.0.1:{free_port()}/orders", "results")
    with pytest.raises(
        EngineError, match=r"the table 'results' of PostgreSQL at 127.0.0.1:\d+/orders cannot be reached"
    ) as told:
        away.rewind("q", -1)
    refused = open_sink(postgres_server.address, "results", password="hunter2")
    with pytest.raises(EngineError, match="password authentication failed") as refusal:
        refused.rewind("q", -1)
    assert "hunter2" not in f"{told.value}{refusal.value}"


def test_what_another_checkpoint_wrote_is_not_deleted_unasked(url: str, tmp_path: Path, open_sink: OpenSink) -> None:
    mine, other = str(tmp_path / "mine"), str(tmp_path / "other")
    first = open_sink(url, "results", "append")
    claim_outputs({"q": first}, mine, mine, replace=False)
    first.emit(sample("q", 3, 2))
    claim_outputs({"q": open_sink(url, "results")}, mine, mine, replace=False)
    with pytest.raises(
        DeclarationError, match=r"has results of query 'q' from another checkpoint.*--checkpoint .*mine"
    ):
        claim_outputs({"q": open_sink(url, "results")}, other, other, replace=False)
    second = open_sink(url, "results", "append")
    claim_outputs({"q": second}, other, other, replace=True)
    second.rewind("q", -1)
    second.emit(sample("q", 0, 1))
    assert [row["round"] for row in rows_of(url, "results")] == [0]


@pytest.mark.slow
def test_a_round_waits_for_a_server_that_is_started_again(
    postgres_server: PostgresServer, url: str, open_sink: OpenSink
) -> None:
    sink = open_sink(url, "results", "append")
    sink.emit(sample("q", 0, 2))
    postgres_server.process.kill()
    started = threading.Timer(0.5, postgres_server.process.start)
    started.start()
    sink.emit(sample("q", 1, 2))
    started.join()
    assert sorted(row["round"] for row in rows_of(url, "results")) == [0, 0, 1, 1]


def recording(folder: Path) -> None:
    """Rows of two groups whose times are disordered, in several files; some come late and revise what was told."""
    made = random.Random(7)
    (folder / "in").mkdir(parents=True)
    for file in range(6):
        rows = [
            {"t": 10 * file + made.randrange(-18, 10), "k": made.choice("ab"), "v": made.randrange(9)}
            for _ in range(12)
        ]
        (folder / "in" / f"{file}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


COMPARED = ("query", "kind", "window_start", "k", "round", "rows", "total", "n")


def told(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return sorted(tuple(str(row[name]) for name in COMPARED) for row in rows)


@pytest.mark.slow
def test_killed_twenty_times_nothing_is_lost_and_nothing_doubled(url: str, tmp_path: Path) -> None:
    recording(tmp_path / "calm")
    memory = Memory()
    run(tmp_path / "calm", url, {"newest": memory, "every_one": memory})
    expected = memory.rows("every_one")
    newest = {(row["window_start"], row["k"]): row for row in memory.rows("newest")}
    assert {row["kind"] for row in expected} == {"early", "final", "revised"}
    recording(tmp_path / "killed")
    rounds = max(row["round"] for row in expected)
    kills = 0
    for round in range(rounds):
        for step in STEPS if round < 4 else ("emit",):
            command = [
                sys.executable,
                "-m",
                "tests.sinks.postgres_engine",
                str(tmp_path / "killed"),
                url,
                step,
                str(round),
            ]
            kills += subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert kills >= 20
    run(tmp_path / "killed", url)
    assert told(rows_of(url, "every_one")) == told(expected)
    assert told(rows_of(url, "newest")) == told(list(newest.values()))


ON_SPARK = """
CREATE STREAM s (t BIGINT, k STRING, v INT) FROM json '{folder}/in' TIMESTAMP BY t DELAY 15;
CREATE QUERY sums AS SELECT k, sum(v) AS total, count(*) AS n FROM s [RANGE 20] GROUP BY k
    INTO postgres 'sums' OPTIONS (url '{url}');
"""


@pytest.mark.slow
@pytest.mark.spark
def test_spark_writes_what_the_local_engine_writes_also_from_the_cluster(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    recording(tmp_path)
    script = eventide.sql(ON_SPARK.format(folder=tmp_path, url=url))
    found = []
    given: tuple[dict[str, Any], ...] = ({"engine": "local"}, {"spark": spark, "driver_memory": 0})
    for options in given:
        with script.start(bounded=True, replace=True, **options) as running:
            running.awaitTermination()
            found.append({(row["window_start"], row["k"], row["total"], row["n"]) for row in rows_of(url, "sums")})
    assert found[0] == found[1]
    assert len(found[0]) > 4


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.parametrize("mode", ["upsert", "append"])
def test_large_results_are_sent_by_the_tasks_and_keep_the_contract(
    mode: str, url: str, spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = KEY if mode == "upsert" else ()
    make = from_cluster(partial(Postgres, url, "results", mode, key=key, large=1), spark, tmp_path)
    check_sink(make, partial(rows_of, url, "results"))
    # What breaks off while a task reads it, breaks off for the driver as well.
    assert {record.getMessage().split(":")[0] for record in caplog.records} <= {
        "this process writes the results of 'contract_broken' itself"
    }
    with psycopg.connect(url) as connection:
        left = connection.execute("SELECT relname FROM pg_class WHERE relname LIKE 'eventide_staging%'").fetchall()
    assert left == []


@pytest.mark.slow
@pytest.mark.spark
def test_of_two_results_with_one_key_in_other_parts_the_later_one_counts(
    url: str, spark: SparkSession, tmp_path: Path, open_sink: OpenSink
) -> None:
    early, final = sample("q", 0, rows=5), sample("q", 0, rows=5, total=100)
    batches = [*early.batches(), *final.batches()]
    both = replace(early, rows=10, batches=lambda: iter(batches))
    sink = open_sink(url, "results", key=KEY, large=1)
    sink.rewind("q", -1)
    sink.emit(on_cluster(both, spark, tmp_path))
    assert sorted(row["total"] for row in rows_of(url, "results")) == [100, 101, 102, 103, 104]
