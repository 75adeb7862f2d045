"""Sources that do not answer are told, with what and where."""

from __future__ import annotations

import contextlib
import logging
import socket
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from eventide.engine.spark.engine import SparkEngine
from eventide.language.script import read_script
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.sources.spark_errors import outage, topics, unreachable

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def kafka(servers: str, **more: str) -> Stream:
    options = (("kafka.bootstrap.servers", servers), *(more or {"subscribe": "cars"}).items())
    return Stream("s", columns("t BIGINT"), time="t", input=Input("kafka", options=options))


def test_a_broker_that_does_not_answer_is_told_with_where_it_was_looked_for() -> None:
    """Nothing was said for three minutes."""
    with socket.create_server(("localhost", 0)) as server:
        there = f"localhost:{server.getsockname()[1]}"
        assert unreachable(kafka(f"localhost:1, {there}")) is None
    said = unreachable(kafka(f"localhost:1,{there}"))
    assert said is not None
    assert said.startswith(f"stream 's': no Kafka broker answers at localhost:1 (Connection refused), {there} (")
    assert "for the topic 'cars'" in said


def test_other_streams_are_not_asked() -> None:
    assert unreachable(Stream("s", columns("t BIGINT"), time="t", input=Input("json", "in"))) is None


def test_topics_are_known_however_they_were_named() -> None:
    assert topics(kafka("b:1", subscribe="cars, lanes")) == {"cars", "lanes"}
    assert topics(kafka("b:1", assign='{"cars": [0]}')) == {"cars"}
    assert topics(kafka("b:1", subscribePattern="c.*")) == set()


def test_what_spark_says_of_a_missing_topic_is_told_with_its_name() -> None:
    """It said that this server does not host this topic-partition."""
    raw = (
        "[STREAM_FAILED] Query [id = 7cb5, runId = a9aa] terminated with exception: org.apache.kafka.common.errors."
        "UnknownTopicOrPartitionException: This server does not host this topic-partition. SQLSTATE: XXKST"
    )
    assert (
        outage(RuntimeError(raw), [kafka("b:1")]) == "stream 's' (topic 'cars' of Kafka at b:1): there is no such topic"
    )
    assert outage(RuntimeError(raw.replace("UnknownTopicOrPartition", "SomeOther")), [kafka("b:1")]) is None


@pytest.mark.spark
@pytest.mark.slow
def test_a_server_that_comes_later_is_read_and_one_that_never_comes_does_not_keep_an_engine_from_its_end(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The engine ended with: terminated with exception: Connection refused."""
    with socket.socket() as server:
        server.bind(("localhost", 0))
        port = server.getsockname()[1]
        text = (
            f"CREATE STREAM words (value STRING) FROM socket OPTIONS (host 'localhost', port '{port}')\n"
            "TIMESTAMP BY ARRIVAL;\nCREATE QUERY counts AS SELECT count(*) AS n FROM words [RANGE 1 second];"
        )
        program = read_script(text, "words.sql").program
        with caplog.at_level(logging.WARNING), SparkEngine(spark, program, str(tmp_path / "one")) as engine:
            engine.start()
            while "no server answers at localhost" not in caplog.text:
                assert not engine.ended.is_set()
                time.sleep(0.05)
        assert engine.failure is None
        with SparkEngine(spark, program, str(tmp_path / "two")) as engine:
            engine.start()
            server.listen()
            server.settimeout(0.2)
            readers = []
            while engine.status().streams[0].rows < 2:
                assert not engine.ended.is_set()
                with contextlib.suppress(TimeoutError):
                    # Whoever only tries whether somebody listens gets the rows too, and does not read them.
                    readers.append(server.accept()[0])
                    readers[-1].sendall(b"a\nb\n")
            engine.stop()
            for reader in readers:
                reader.close()
        assert engine.await_end()
