"""Topics with rows that were written out of order, and what a query over them has to say.

>>> rows = out_of_order(100, seed=1)
>>> len(rows), sorted(rows[0])
(100, ['k', 't', 'v'])
>>> sum(n for *_, n in expected(rows))
100
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import uuid4

import numpy as np
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

START = 1_700_000_000
WINDOW = 10
DISORDER = 5
"""Seconds by which a row may come behind another one."""

Answer = tuple[int, int, int, int]
"""The end of a window in seconds, a key, the sum of its values, how many there were."""


def out_of_order(count: int, seed: int, keys: int = 100, rows_per_second: int = 20) -> list[dict[str, int]]:
    """Rows, a little out of order."""
    dice = np.random.default_rng(seed)
    times = START + np.arange(count) // rows_per_second - dice.integers(0, DISORDER, count)
    columns = (times, dice.integers(0, keys, count), dice.integers(0, 50, count))
    return [{"t": t, "k": k, "v": v} for t, k, v in zip(*(c.tolist() for c in columns), strict=True)]


def expected(rows: Iterable[dict[str, int]]) -> list[Answer]:
    """The sum and the number of the values of each window and key."""
    sums, counts = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for row in rows:
        key = (row["t"] // WINDOW * WINDOW + WINDOW, row["k"])
        sums[key] += row["v"]
        counts[key] += 1
    return sorted((*key, sums[key], counts[key]) for key in counts)


def new_topic(servers: str, partitions: int) -> str:
    """A topic of one's own."""
    topic = f"t{uuid4().hex[:8]}"
    client = AdminClient({"bootstrap.servers": servers})
    client.create_topics([NewTopic(topic, partitions)])[topic].result()
    return topic


def send(servers: str, topic: str, rows: Sequence[dict[str, int]], partitions: int) -> None:
    """Write rows, one partition after the other in turns."""
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for number, row in enumerate(rows):
        record: dict[str, Any] = {"value": json.dumps(row).encode(), "partition": number % partitions}
        while True:
            try:
                producer.produce(topic, **record)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()
