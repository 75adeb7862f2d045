"""Topics in Avro on a real broker, on both engines: by a schema or a registry, in and out, and what is no record."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as parquet
import pytest
from fastavro import parse_schema, schemaless_reader

import eventide
from eventide.avro.registry import Registry, framed
from eventide.plan.expressions.columns import columns
from eventide.sinks import Kafka
from eventide.sinks.values import Avro
from eventide.sources.avro_values import AvroValues
from eventide.testing.sink_contract import from_cluster, sample
from scripts.kafka_reader import committed_records
from scripts.kafka_server import KafkaServer
from tests.sources.kafka_topics import new_topic, send
from tests.sources.schema_registry import SchemaRegistry, schema_registry
from tests.sources.test_avro_values import record, value

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.spark]
ENGINES = pytest.mark.parametrize("engine", ["local", "spark"])
AT = {"type": "long", "logicalType": "timestamp-millis"}
FIRST = record(("ts", AT), ("k", "string"))
SECOND = record(("k", "string"), ("v", ["null", "int"]), ("ts", AT))
START = 1_700_000_000_000


@pytest.fixture
def servers(kafka_server: KafkaServer) -> str:
    return kafka_server.servers


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with schema_registry("eve", "hunter22") as server:
        yield server


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    if "spark-sql-kafka" not in (spark.conf.get("spark.jars", None) or ""):
        pytest.skip("the connector of Spark for Kafka could not be fetched")
    return spark


def run(session: SparkSession, engine: str, text: str, checkpoint: Path) -> list[dict[str, Any]]:
    """The results of `q` in a run to the end of what is there; none where there is no such query."""
    on = session if engine == "spark" else None
    started = eventide.sql(text).start(engine=engine, spark=on, bounded=True, checkpoint=str(checkpoint))
    started.awaitTermination()
    return started["q"].results().to_pylist() if "QUERY q AS" in text else []


def rejects(checkpoint: Path) -> list[tuple[int, str]]:
    rows = parquet.dataset(checkpoint / "rejects" / "s", format="parquet").to_table().to_pylist()
    return sorted((row["kafka_offset"], row["_malformed"]) for row in rows)


@ENGINES
def test_each_message_is_read_by_the_schema_that_wrote_it_and_what_is_none_is_rejected(
    session: SparkSession, servers: str, registry: SchemaRegistry, tmp_path: Path, engine: str
) -> None:
    topic = new_topic(servers)
    one, two = (registry.keep(f"{topic}-value", text) or 0 for text in (FIRST, SECOND))
    good = [framed(one, value(FIRST, ts=START, k="a")), framed(two, value(SECOND, ts=START + 1, k="b", v=7))]
    send(servers, topic, [good[0], b"{}", None, framed(9, b"x"), good[1], good[1][:-1], good[1] + b"x"])
    password = tmp_path / "password"
    password.write_text("hunter22")
    text = f"""CREATE STREAM s (ts TIMESTAMP, k STRING, v INT, kafka_offset BIGINT) FROM kafka '{topic}' OPTIONS (
            servers '{servers}', value.format 'avro', value.registry '{registry.url}', value.registry.user 'eve',
            value.registry.password secret('file:{password}')) TIMESTAMP BY ts DELAY 0;
        CREATE QUERY q AS SELECT k, sum(v) AS v, count(*) AS n FROM s [RANGE 1 hour] GROUP BY k;"""
    found = run(session, engine, text, tmp_path / "state")
    assert sorted((row["k"], row["v"], row["n"]) for row in found) == [("a", None, 1), ("b", 7, 1)]
    broken = {1: b"{}", 2: b"", 3: framed(9, b"x"), 5: good[1][:-1], 6: good[1] + b"x"}
    assert rejects(tmp_path / "state") == [(offset, value.hex().upper()) for offset, value in broken.items()]


@ENGINES
def test_results_in_avro_are_read_by_the_next_program_with_or_without_a_registry(
    session: SparkSession, servers: str, registry: SchemaRegistry, tmp_path: Path, engine: str
) -> None:
    topic, registered, bare = (new_topic(servers) for _ in range(3))
    send(servers, topic, [value(FIRST, ts=START + 1000 * n, k="ab"[n % 2]) for n in range(4)])
    (tmp_path / "first.avsc").write_text(FIRST)
    by = f"value.format 'avro', value.registry '{registry.url}', value.registry.user 'eve', "
    by += "value.registry.password 'hunter22'"
    query = "SELECT k, count(*) AS n, max(ts) AS last FROM s [RANGE 2 seconds] GROUP BY k"
    text = f"""CREATE STREAM s (ts TIMESTAMP, k STRING) FROM kafka '{topic}' OPTIONS (servers '{servers}',
            value.format 'avro', value.schema '{tmp_path}/first.avsc') TIMESTAMP BY ts DELAY 0;
        CREATE QUERY known AS {query} INTO kafka '{registered}' OPTIONS (servers '{servers}', {by});
        CREATE QUERY plain AS {query}
            INTO kafka '{bare}' OPTIONS (servers '{servers}', value.format 'avro', headers 'kind, round, heartbeat');"""
    run(session, engine, text, tmp_path / "first")
    [number] = registry.subjects[f"{registered}-value"]
    schema = json.loads(registry.schemas[number - 1])
    for kept in (registered, bare):
        records = committed_records(servers, kept)
        assert sorted(record.key() or b"" for record in records) == [b"a", b"a", b"b", b"b"]
    fields = [field for field in schema["fields"] if field["name"] not in ("kind", "round", "heartbeat")]
    without = parse_schema(schema | {"fields": fields})
    [row, *_] = [schemaless_reader(io.BytesIO(record.value() or b""), without, None) for record in records]
    assert isinstance(row, dict)
    assert (row["n"], row["last"].timestamp() * 1000 % 1000) == (1, 0)
    again = f"""CREATE STREAM s (k STRING, n BIGINT, last TIMESTAMP, window_end TIMESTAMP) FROM kafka '{registered}'
            OPTIONS (servers '{servers}', {by}) TIMESTAMP BY last DELAY 0;
        CREATE QUERY q AS SELECT k, sum(n) AS n, max(window_end) > max(last) AS later
            FROM s [RANGE 1 hour] GROUP BY k;"""
    found = run(session, engine, again, tmp_path / "second")
    assert sorted((row["k"], row["n"], row["later"]) for row in found) == [("a", 2, True), ("b", 2, True)]


def test_a_large_round_in_avro_leaves_from_the_tasks_under_one_schema(
    session: SparkSession, servers: str, registry: SchemaRegistry, tmp_path: Path
) -> None:
    topic = new_topic(servers, 2)

    def opened() -> Kafka:
        known = Registry(registry.url, "eve", "hunter22")
        sink = Kafka(servers, topic, values=Avro(topic, known), id="large", large=10)
        sink.rewind("q", -1)
        return sink

    from_cluster(opened, session, tmp_path)().emit(sample("q", 0, rows=1000, batch_rows=100))
    numbers = {(record.value() or b"")[:5] for record in committed_records(servers, topic)}
    assert numbers == {framed(number, b"") for number in registry.subjects[f"{topic}-value"]}
    known = Registry(registry.url, "eve", "hunter22")
    given = AvroValues("stream 's'", columns("device STRING, total BIGINT"), registry=known)
    found = given.table([bytes(record.value() or b"") for record in committed_records(servers, topic)]).to_pylist()
    assert sorted(row["total"] for row in found) == list(range(1000))
