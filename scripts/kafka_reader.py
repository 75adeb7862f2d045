"""What whoever reads committed records finds in a topic."""

from __future__ import annotations

import json
from typing import Any
from uuid import uuid4

from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition


def committed_records(servers: str, topic: str) -> list[Message]:
    """All records of a topic that are committed now, partition by partition."""
    settings = {
        "bootstrap.servers": servers,
        "group.id": uuid4().hex,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    found: list[Message] = []
    try:
        numbers = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in numbers])
        ended = set[int | None]()
        while len(ended) < len(numbers):
            for message in consumer.consume(10_000, 1.0):
                if message.error() is None:
                    found.append(message)
                else:
                    ended.add(message.partition())
    finally:
        consumer.close()
    return found


def committed_rows(servers: str, topic: str) -> list[dict[str, Any]]:
    """The values of these records."""
    return [json.loads(message.value() or b"null") for message in committed_records(servers, topic)]
