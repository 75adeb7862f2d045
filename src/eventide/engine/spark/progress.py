"""What Spark says of its sources: how much waits in each partition of a topic, and whether anything does.

>>> waiting_records('{"cars":{"0":7,"1":5}}', '{"cars":{"0":3,"1":5}}')
{'cars-0': 4, 'cars-1': 0}
>>> waiting_records("11", "11")
{}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

IDLE = "Waiting for"
"""How Spark's message begins while it has found nothing to read: data, or the next trigger."""


def backlogs(query: StreamingQuery | None, streams: Sequence[str]) -> dict[str, dict[str, int]]:
    """How many records wait in each partition, by stream, as of the last batch."""
    progress = None
    with suppress(Exception):
        # Spark may be ending, or be gone; that is for whoever waits for the engine to hear.
        progress = None if query is None else query.lastProgress
    if progress is None or len(progress.sources) != len(streams):
        return {}
    found = zip(streams, progress.sources, strict=True)
    return {name: waiting_records(one.latestOffset, one.endOffset) for name, one in found}


def has_read_all(query: StreamingQuery, streams: Sequence[str]) -> bool:
    """Whether Spark has looked, and nothing waits in any partition."""
    if any(count for partitions in backlogs(query, streams).values() for count in partitions.values()):
        return False
    status = query.status
    return not status["isDataAvailable"] and status["message"].startswith(IDLE)


def waiting_records(latest: str | None, read: str | None) -> dict[str, int]:
    """How many records wait in each partition, by the offsets that Spark tells; nothing where it tells others."""
    try:
        ends, at = json.loads(latest or "null"), json.loads(read or "null")
        found = {(topic, number): end for topic, ends_of in ends.items() for number, end in ends_of.items()}
        return {f"{topic}-{number}": max(0, end - at[topic][number]) for (topic, number), end in found.items()}
    except (ValueError, AttributeError, KeyError, TypeError):
        return {}
