"""Topics of a real broker, made and filled for tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic


def new_topic(servers: str, partitions: int = 1, name: str | None = None) -> str:
    """A topic of one's own."""
    topic = name or f"t{uuid4().hex[:8]}"
    client = AdminClient({"bootstrap.servers": servers})
    client.create_topics([NewTopic(topic, partitions)])[topic].result()
    return topic


def grow(servers: str, topic: str, partitions: int) -> None:
    """Give a topic more partitions."""
    client = AdminClient({"bootstrap.servers": servers})
    client.create_partitions([NewPartitions(topic, partitions)])[topic].result()


def forget(servers: str, topic: str, before: int) -> None:
    """Delete the records of the first partition before an offset."""
    client, place = AdminClient({"bootstrap.servers": servers}), TopicPartition(topic, 0, before)
    client.delete_records([place])[place].result()


def send(servers: str, topic: str, values: Iterable[bytes | None], partition: int = 0, **more: Any) -> None:
    """Send records, and wait until the broker has them."""
    producer = Producer({"bootstrap.servers": servers})
    for value in values:
        producer.produce(topic, value, partition=partition, **more)
    assert producer.flush(20) == 0


def send_in_transaction(servers: str, topic: str, values: Sequence[bytes], commit: bool) -> None:
    """Send records that count together, or not at all."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": uuid4().hex})
    producer.init_transactions()
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value, partition=0)
    producer.flush()
    if commit:
        producer.commit_transaction()
    else:
        producer.abort_transaction()
