"""Topics of a real Kafka broker on Spark: what the local engine makes of them, by the connector that Spark is given."""

from __future__ import annotations

import json
import logging
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as parquet
import pytest

import eventide
from eventide.api.running_query import RunningQueries
from eventide.engine.running import Running
from eventide.engine.spark.engine import SparkEngine
from eventide.language.script import read_script
from eventide.sinks import Memory
from scripts.kafka_reader import committed_rows
from scripts.kafka_server import KafkaServer
from tests.engine.small_streams import made, wait_until
from tests.sources.kafka_topics import grow, new_topic, send, send_in_transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.commands.processes import Here

pytestmark = [pytest.mark.slow, pytest.mark.spark]
ENGINES = ("local", "spark")
HEAD = "CREATE STREAM s (t BIGINT, k STRING{more}) FROM kafka '{topic}' OPTIONS (servers '{servers}'{options})"
OLD = 1_704_067_200_000
"""The beginning of 2024, in milliseconds."""
COUNTS = "CREATE QUERY q AS SELECT {by}, count(*) AS n, min(t) AS first FROM s [RANGE 1000] GROUP BY {by}"


@pytest.fixture
def servers(kafka_server: KafkaServer) -> str:
    return kafka_server.servers


@pytest.fixture
def session(spark: SparkSession) -> SparkSession:
    if "spark-sql-kafka" not in (spark.conf.get("spark.jars", None) or ""):
        pytest.skip("the connector of Spark for Kafka could not be fetched")
    return spark


def rows(count: int, first: int = 0) -> list[bytes]:
    return [json.dumps({"t": number, "k": "ab"[number % 2]}).encode() for number in range(first, first + count)]


def await_rows(engine: Running, count: int) -> None:
    while engine.status().streams[0].rows < count:
        assert engine.failure is None
        time.sleep(0.1)


def stream(topic: str, servers: str, clauses: str, more: str = "", options: str = "") -> str:
    return f"{HEAD.format(topic=topic, servers=servers, more=more, options=options)} TIMESTAMP BY t {clauses} DELAY 0;"


def ran(session: SparkSession, engine: str, text: str, checkpoint: Path | None = None) -> RunningQueries:
    """A bounded run that has ended."""
    on = session if engine == "spark" else None
    place = None if checkpoint is None else str(checkpoint)
    run = eventide.sql(text).start(engine=engine, spark=on, bounded=True, checkpoint=place)
    run.awaitTermination()
    return run


def told(session: SparkSession, text: str) -> list[dict[str, Any]]:
    """The results, which both engines have to give."""
    tables = (ran(session, engine, text).results()["q"].drop_columns(["round", "heartbeat"]) for engine in ENGINES)
    local, spark = (sorted(table.to_pylist(), key=repr) for table in tables)
    assert spark == local
    return spark


def test_values_and_what_stands_beside_them_are_columns_and_sources(session: SparkSession, servers: str) -> None:
    topic = new_topic(servers, 2)
    send(servers, topic, rows(3), timestamp=1_700_000_000_123, key=b"x", headers=[("h", b"1")])
    send(servers, topic, [*rows(1, first=9), b"{", None, b"[1]"], partition=1, timestamp=1_700_000_000_456)
    send_in_transaction(servers, topic, rows(5, first=20), commit=False)
    more = ", kafka_key BINARY, kafka_headers ARRAY<STRUCT<key: STRING, value: BINARY>>, kafka_offset BIGINT"
    clauses = "SOURCE BY PARTITION ARRIVAL BY kafka_timestamp"
    query = """CREATE QUERY q AS SELECT kafka_partition, count(*) AS n, max(kafka_key) AS x, max(kafka_offset) AS last,
        max(size(kafka_headers)) AS h, max(kafka_timestamp) AS at FROM s [RANGE 1000] GROUP BY kafka_partition"""
    found = told(session, f"{stream(topic, servers, clauses, more)} {query}")
    names = ("kafka_partition", "n", "x", "last", "h")
    assert {tuple(row[name] for name in names) for row in found} == {(0, 3, b"x", 2, 1), (1, 1, None, 0, None)}


def test_lines_of_csv_several_topics_and_a_pattern(session: SparkSession, servers: str) -> None:
    one, two = new_topic(servers, name="spark-one"), new_topic(servers, name="spark-two")
    send(servers, one, [b"1;a", b"2;b"])
    send(servers, two, [b"3;a", b"x;y"])
    for named in (f"{one}, {two}", "^spark-.*"):
        options = ", value.format 'csv', value.sep ';'"
        text = stream(named, servers, "SOURCE BY PARTITION", options=options) + COUNTS.format(by="kafka_topic")
        assert {(row["kafka_topic"], row["n"]) for row in told(session, text)} == {(one, 2), (two, 1)}


def test_reading_begins_where_it_is_told_for_each_partition(session: SparkSession, servers: str) -> None:
    topic = new_topic(servers, 3)
    for partition in range(3):
        send(servers, topic, rows(5, first=10 * partition), partition=partition)
    starting = f""", starting '{{"{topic}": {{"0": 3, "1": -1, "2": -2}}}}'"""
    text = stream(topic, servers, "SOURCE BY PARTITION", options=starting) + COUNTS.format(by="kafka_partition")
    assert {(row["kafka_partition"], row["n"], row["first"]) for row in told(session, text)} == {(0, 2, 3), (2, 5, 20)}


def test_an_old_topic_arrives_at_the_times_of_its_records(session: SparkSession, servers: str, tmp_path: Path) -> None:
    topic = new_topic(servers)
    # Seconds of the event, and of the record: the third row is later than the skew permits, the fourth is not.
    for ts, noted in ((1, 1), (12, 12), (2, 13), (11, 14), (25, 25)):
        send(servers, topic, [json.dumps({"ts": f"2024-01-01 00:00:{ts:02}"}).encode()], timestamp=OLD + 1000 * noted)
    text = f"""CREATE STREAM s (ts TIMESTAMP) FROM kafka '{topic}' OPTIONS (servers '{servers}')
        TIMESTAMP BY ts CLOCK SKEW 2 seconds LIMIT 1 OFFSETS PER ROUND;
        CREATE QUERY q AS SELECT count(*) AS n FROM s [RANGE 10 seconds]"""
    assert sorted((row["window_start"].second, row["n"]) for row in told(session, text)) == [(0, 1), (10, 2), (20, 1)]


@pytest.mark.parametrize("engine", ENGINES)
def test_windows_close_in_silence_once_every_partition_is_read_to_its_end(
    session: SparkSession, servers: str, engine: str
) -> None:
    # The second partition has never had a record, and cannot hold back anything.
    topic = new_topic(servers, 2)
    text = f"""CREATE STREAM s (ts TIMESTAMP) FROM kafka '{topic}' OPTIONS (servers '{servers}')
        TIMESTAMP BY ts SOURCE BY PARTITION CLOCK SKEW 1 second;
        CREATE QUERY q AS SELECT kafka_partition, count(*) AS n FROM s [RANGE 2 seconds] GROUP BY kafka_partition"""
    with eventide.sql(text).start(engine=engine, spark=session if engine == "spark" else None) as running:
        now = datetime.now(UTC)
        send(servers, topic, [json.dumps({"ts": now.isoformat()}).encode()])
        while not running["q"].results().num_rows:
            assert running.exception() is None
            time.sleep(0.1)
        [row] = running["q"].results().to_pylist()
    assert (row["kind"], row["kafka_partition"], row["n"]) == ("final", 0, 1)


@pytest.mark.parametrize("engine", ENGINES)
def test_no_secret_of_a_topic_is_in_the_checkpoint_the_status_the_log_or_an_explanation(
    session: SparkSession, servers: str, engine: str, tmp_path: Path, here: Here, caplog: pytest.LogCaptureFixture
) -> None:
    topic, out = new_topic(servers), new_topic(servers)
    send(servers, topic, rows(3))
    secret = tmp_path / "key"
    secret.write_text("file-hunter3")
    # A broker without a password takes any; the clients note what they are given.
    own = f"kafka.ssl.key.password 'plain-hunter3', kafka.ssl.truststore.password secret('file:{secret}')"
    into = f"OPTIONS (servers '{servers}', kafka.ssl.key.password secret('file:{secret}'))"
    if engine == "local":
        own = own.replace("ssl.truststore", "ssl.keystore")
    text = f"{stream(topic, servers, '', options=f', {own}')} {COUNTS.format(by='k')} INTO kafka '{out}' {into};"
    (tmp_path / "s.sql").write_text(text)
    explained = here("explain", "s.sql")
    place, on = str(tmp_path / "state"), session if engine == "spark" else None
    with (
        caplog.at_level(logging.DEBUG, "eventide"),
        eventide.sql(text).start(engine=engine, spark=on, bounded=True, checkpoint=place) as running,
    ):
        running.awaitTermination()
        shown = f"{running.status()} {running!r} {explained.out} {explained.err} {caplog.text}"
    assert len(committed_rows(servers, out)) == 2
    kept = b"".join(file.read_bytes() for file in Path(place).rglob("*") if file.is_file())
    assert "hunter3" not in shown
    assert b"hunter3" not in kept
    assert topic in explained.out


def test_what_could_not_be_read_keeps_its_origin(session: SparkSession, servers: str, tmp_path: Path) -> None:
    topic = new_topic(servers)
    send(servers, topic, [*rows(1), b"{", b'{"t": "x"}'])
    text = stream(topic, servers, "", ", kafka_offset BIGINT") + COUNTS.format(by="k")
    for engine in ENGINES:
        ran(session, engine, text, tmp_path / engine)
        rejects = parquet.dataset(tmp_path / engine / "rejects" / "s", format="parquet").to_table().to_pylist()
        found = sorted((row["kafka_offset"], row["_malformed"]) for row in rejects)
        assert found == [(1, "{"), (2, '{"t": "x"}')]


def test_a_backlog_is_read_by_so_many_offsets_a_round_and_what_waits_is_told(
    session: SparkSession, servers: str, tmp_path: Path
) -> None:
    topic = new_topic(servers)
    send(servers, topic, rows(10))
    text = stream(topic, servers, "LIMIT 4 OFFSETS PER ROUND") + COUNTS.format(by="k")
    memory, seen = Memory(), list[dict[str, int]]()

    def observer(number: int, step: str) -> None:
        if step == "commit":
            seen.append(engine.status().streams[0].backlog)

    engine = SparkEngine(session, read_script(text).program, str(tmp_path), {"q": memory}, observer=observer)
    engine.start(bounded=True).await_end()
    assert sum(row["n"] for row in memory.rows("q")) == 10
    # Spark tells of a batch when it is done.
    assert {f"{topic}-0": 6} in seen
    assert engine.status().streams[0].backlog == {f"{topic}-0": 0}


def test_a_new_partition_is_a_new_source_read_from_its_beginning(
    session: SparkSession, servers: str, tmp_path: Path
) -> None:
    topic = new_topic(servers)
    send(servers, topic, rows(3))
    text = stream(topic, servers, "SOURCE BY PARTITION") + COUNTS.format(by="kafka_partition")
    memory = Memory()
    engine = SparkEngine(session, read_script(text).program, str(tmp_path), {"q": memory})
    engine.start()
    try:
        await_rows(engine, 3)
        grow(servers, topic, 2)
        send(servers, topic, rows(2), partition=1)
        await_rows(engine, 5)
        assert engine.status().streams[0].sources == 2
    finally:
        engine.stop()


@pytest.mark.parametrize("engine", ENGINES)
def test_a_new_topic_whose_name_fits_is_read_from_its_beginning(
    session: SparkSession, servers: str, tmp_path: Path, engine: str
) -> None:
    first = new_topic(servers, name=f"fits-{engine}-1")
    send(servers, first, rows(3))
    text = stream(f"^fits-{engine}-.*", servers, "SOURCE BY PARTITION") + COUNTS.format(by="kafka_topic")
    program = read_script(text).program
    running = made(session if engine == "spark" else None, program, tmp_path / "state", {"q": Memory()})
    with running:
        running.start()
        await_rows(running, 3)
        send(servers, new_topic(servers, name=f"fits-{engine}-2"), rows(2))
        await_rows(running, 5)
        assert running.status().streams[0].sources == 2
        wait_until(lambda: running.status().streams[0].backlog == {f"fits-{engine}-{one}-0": 0 for one in (1, 2)})
