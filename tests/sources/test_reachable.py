"""Brokers that do not answer are told."""

from __future__ import annotations

import socket

from eventide.plan.declared.stream import Input, Stream, columns
from eventide.sources.spark.errors import unreachable_brokers


def kafka(servers: str) -> Stream:
    options = (("kafka.bootstrap.servers", servers), ("subscribe", "cars"))
    return Stream("s", columns("t BIGINT"), time="t", input=Input("kafka", options=options))


def test_a_broker_that_does_not_answer_is_told_with_where_it_was_looked_for() -> None:
    """Nothing was said for three minutes."""
    with socket.create_server(("localhost", 0)) as server:
        there = f"localhost:{server.getsockname()[1]}"
        assert unreachable_brokers(kafka(f"localhost:1, {there}")) is None
    said = unreachable_brokers(kafka(f"localhost:1,{there}"))
    assert said is not None
    assert said.startswith(f"stream 's': no Kafka broker answers at localhost:1 (Connection refused), {there} (")


def test_other_streams_are_not_asked() -> None:
    assert unreachable_brokers(Stream("s", columns("t BIGINT"), time="t", input=Input("json", "in"))) is None
