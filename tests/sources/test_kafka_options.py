"""What is told of Kafka without a broker: within seconds, with what and where; and what SQL makes of its words."""

from __future__ import annotations

from contextlib import closing

import pytest

from eventide.errors import DeclarationError, InputError
from eventide.language.script import read_script
from eventide.plan.declared.stream import Stream
from eventide.sources.kafka import KafkaInput
from scripts.servers import free_port


def declared(words: str, options: str = "") -> Stream:
    return read_script(
        f"CREATE STREAM s (t BIGINT) {words} OPTIONS (servers 'localhost:1'{options}) DELAY 1"
    ).program.streams[0]


def test_a_broker_that_is_not_there_is_told_with_its_address() -> None:
    servers = f"127.0.0.1:{free_port()}"
    text = f"CREATE STREAM s (t BIGINT) FROM kafka 'cars' OPTIONS (servers '{servers}') DELAY 1"
    told = rf"stream 's': no Kafka broker answers at {servers}"
    with closing(KafkaInput(read_script(text).program.streams[0])) as given, pytest.raises(InputError, match=told):
        given.take(1, 0.0)


def test_a_topic_is_said_as_spark_knows_it_and_read_from_the_beginning() -> None:
    given = declared("FROM kafka 'cars'").input
    assert given is not None
    assert (given.format, given.path) == ("kafka", None)
    found = {"subscribe": "cars", "kafka.bootstrap.servers": "localhost:1", "startingOffsets": "earliest"}
    assert dict(given.options) == found
    pattern = declared("FROM kafka '^c.*'", ", starting 'latest'").input
    assert pattern is not None
    assert dict(pattern.options) == {
        "subscribePattern": "^c.*",
        "kafka.bootstrap.servers": "localhost:1",
        "startingOffsets": "latest",
    }


def test_partitions_are_sources_in_one_word() -> None:
    text = "CREATE STREAM s (t BIGINT{}) FROM kafka '{}' SOURCE BY {} OPTIONS (servers 'a:1') DELAY 1 TIMESTAMP BY t"
    made = {
        ("", "cars", "PARTITION"): ("kafka_partition",),
        ("", "cars, trucks", "PARTITION"): ("kafka_topic", "kafka_partition"),
        (", partition STRING", "cars", "partition"): ("partition",),
        ("", "cars", "kafka_key"): ("kafka_key",),
    }
    for words, sources in made.items():
        stream = read_script(text.format(*words)).program.streams[0]
        assert stream.source == sources
        assert {"t", *sources} == {column.name for column in stream.columns}


def test_what_a_client_does_not_take_is_told() -> None:
    with pytest.raises(DeclarationError, match="the local engine has no option group for kafka: options of the client"):
        KafkaInput(declared("FROM kafka 'cars'", ", group 'mine'"))
    with pytest.raises(DeclarationError, match=r"value\.format 'xml' is not known: use json, csv or avro"):
        KafkaInput(declared("FROM kafka 'cars'", ", value.format 'xml'"))
    with pytest.raises(DeclarationError, match="needs a topic and servers"):
        KafkaInput(read_script("CREATE STREAM s (t BIGINT) FROM kafka 'cars' DELAY 1").program.streams[0])
