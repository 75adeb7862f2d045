"""Results in a topic of a real Kafka broker: each round once, all of it or nothing, whoever dies."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from eventide.errors import EngineError
from eventide.results.results import Results
from eventide.sinks import Kafka
from eventide.sinks.sink import Owner
from eventide.testing.sink_contract import from_cluster, sample
from scripts.kafka_reader import committed_records, committed_rows
from scripts.kafka_server import KafkaServer
from tests.sources.kafka_engine import run, values
from tests.sources.kafka_topics import new_topic, send, send_in_transaction

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow
KILLS = 20


@pytest.fixture
def servers(kafka_server: KafkaServer) -> str:
    return kafka_server.servers


def opened(servers: str, topic: str, **more: object) -> Kafka:
    """A sink as an engine has it that goes on from its checkpoint."""
    sink = Kafka(servers, topic, **more)  # type: ignore[arg-type]
    sink.claim("q", Owner("the checkpoint"))
    sink.rewind("q", -1)
    return sink


def totals(servers: str, topic: str) -> list[tuple[int, str, int]]:
    return sorted((row["round"], row["device"], row["total"]) for row in committed_rows(servers, topic))


def test_a_result_is_a_record_with_groups_as_key_and_columns_as_value_or_headers(servers: str) -> None:
    topic = new_topic(servers, 2)
    table = pa.table(
        {
            "kind": ["early", "final"],
            "window_start": pa.array([0, 0], pa.timestamp("us", "UTC")),
            "window_end": pa.array([60_000_000, 60_000_000], pa.timestamp("us", "UTC")),
            "road": ["a", "a\nb"],
            "mean": [1.5, None],
        }
    )
    batches = table.to_batches()
    results = Results("q", 0, 2, table.schema, lambda: iter(batches), key=("window_start", "window_end", "road"))
    opened(servers, topic, headers=["kind", "window_end"]).emit(results)
    records = {record.key(): record for record in committed_records(servers, topic)}
    assert records.keys() == {b"a", b"a\nb"}
    assert records[b"a"].value() == b'{"window_start":"1970-01-01T00:00:00.000000Z","road":"a","mean":1.5}'
    assert records[b"a\nb"].headers() == [("kind", b"final"), ("window_end", b"1970-01-01T00:01:00.000000Z")]
    opened(servers, topic, key=["road", "mean"]).emit(Results("r", 0, 2, table.schema, lambda: iter(batches)))
    keys = {record.key() for record in committed_records(servers, topic)}
    assert {b'{"road":"a","mean":1.5}', b'{"road":"a\\nb","mean":null}'} <= keys


def test_a_round_that_comes_again_is_passed_over_also_by_another_process(servers: str) -> None:
    topic = new_topic(servers)
    first = opened(servers, topic)
    for round in (0, 1, 1):
        first.emit(sample("q", round, rows=3))
    second = opened(servers, topic)
    for round in (1, 2):
        second.emit(sample("q", round, rows=2))
    assert [row[0] for row in totals(servers, topic)] == [0, 0, 0, 1, 1, 1, 2, 2]


def test_what_a_process_has_left_open_is_never_seen_and_written_by_the_next(servers: str) -> None:
    topic = new_topic(servers)
    dying = opened(servers, topic)

    def batches() -> object:
        yield from sample("q", 0, rows=3).batches()
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        dying.emit(Results("q", 0, 3, sample("q", 0, 1).schema, batches))  # type: ignore[arg-type]
    opened(servers, topic).emit(sample("q", 0, rows=4))
    assert len(committed_rows(servers, topic)) == 4


def test_a_topic_that_is_missing_and_a_broker_that_is_not_there_are_told_at_the_start(servers: str) -> None:
    with pytest.raises(EngineError, match=f"Kafka at {servers} has no topic 'not-there': make it, or name another"):
        opened(servers, "not-there")
    with pytest.raises(EngineError, match=r"no Kafka broker answers at 127.0.0.1:1: .*Does it run"):
        opened("127.0.0.1:1", "t")


@pytest.mark.spark
def test_a_large_round_leaves_from_the_tasks_and_each_share_is_written_once(
    servers: str, spark: SparkSession, tmp_path: Path
) -> None:
    topic = new_topic(servers, 2)
    send_in_transaction(servers, topic, [b"{}"], commit=False)
    make = from_cluster(lambda: opened(servers, topic, large=10), spark, tmp_path)
    make().emit(sample("q", 0, rows=1000, batch_rows=100))
    assert totals(servers, topic) == [(0, f"device {n}", n) for n in sorted(range(1000), key=lambda n: f"device {n}")]
    # The same round with the driver, as after a crash that moved its rows: every share is known to be there.
    opened(servers, topic, large=10).emit(sample("q", 0, rows=1000))
    assert len(committed_rows(servers, topic)) == 1000


def recording(servers: str) -> str:
    made = random.Random(7)
    topic = new_topic(servers, 3)
    # One after the other in turns: the times of records are their order.
    for number, value in enumerate(values(made, count=300)):
        send(servers, topic, [value], partition=number % 3)
    return topic


def test_killed_twenty_times_with_the_broker_once_every_result_is_in_the_topic_once(
    kafka_server: KafkaServer, tmp_path: Path
) -> None:
    servers = kafka_server.servers
    topic = recording(servers)
    calm, killed = new_topic(servers, 2), new_topic(servers, 2)
    run(tmp_path / "calm", servers, topic, into=calm)
    kills = 0
    for life in range(KILLS):
        command = [sys.executable, "-m", "tests.sources.kafka_engine", str(tmp_path / "killed"), servers, topic]
        # Within the transaction, between it and the record, and after that.
        step, delay = ("advance", "emit", "emit", "commit")[life % 4], (0, 5, 20, 60)[life // 4 % 4]
        ended = subprocess.run([*command, step, str(life), killed, str(delay)], check=False)
        kills += ended.returncode == -signal.SIGKILL
        if life == KILLS // 2:
            kafka_server.process.kill()
            kafka_server.process.start()
    run(tmp_path / "killed", servers, topic, into=killed)
    assert kills == KILLS
    names = ("window_start", "k", "kind", "total", "n")
    expected, found = (
        sorted(tuple(row[name] for name in names) for row in committed_rows(servers, out)) for out in (calm, killed)
    )
    assert sum(row[-1] for row in expected) == 300
    assert found == expected
