"""Topics of Kafka as an input of the local engine: offsets are positions, and the same offsets are the same rows.

Law: a position has the next offset of every partition, and a portion the offsets between which a round has read; so a
round that a crash broke off has exactly its rows again, as long as the broker keeps them. What was read is noted in the
checkpoint alone, never in Kafka. Partitions that come later are read from their beginning. Rows of a transaction that
was not committed are not read. Partitions that wait are read side by side, by the times of their records, so that in
catching up no row is late because another partition was read first.

A record is a row: the columns of its value, which is JSON or a line of CSV (option `value.format`), and beside them
`kafka_key`, `kafka_topic`, `kafka_partition`, `kafka_offset`, `kafka_timestamp` and `kafka_headers` where the stream
declares them, as on Spark. They stay also where the value is malformed.

>>> topics_of(Input("kafka", options=(("subscribe", "cars, trucks"),))), topics_of(Input("kafka", path="^c.*"))
((('cars', 'trucks'), None), ((), '^c.*'))
"""

from __future__ import annotations

import heapq
import json
import logging
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from eventide.errors import DeclarationError, InputError
from eventide.masking import masked_text
from eventide.plan.declared.stream import Input, Stream
from eventide.sources.kafka_records import Place, Records, millis_of, offset_of, place_of
from eventide.sources.options import input_of, split_options

try:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition
except ModuleNotFoundError as missing:
    raise DeclarationError(
        "FROM kafka needs confluent-kafka: pip install 'eventide[kafka]', or use the Spark engine"
    ) from missing

log = logging.getLogger(__name__)

ANSWER_SECONDS = 5.0
"""A broker that has not answered then is not there."""
LOOK_AGAIN = 5.0
"""Seconds between two looks for new partitions."""
AGAIN_SECONDS = 30.0
"""So long rows that were read before have to come again."""
BATCH = 10_000
MOST_WAITING = 100_000
"""So many records of fast partitions are held while a slow one is waited for."""
SLOW_SECONDS = 1.0
"""So long a partition is waited for that has more records, and does not give them."""
OF_SPARK = frozenset({"startingoffsets", "subscribe", "subscribepattern", "includeheaders", "failondataloss"})
SERVERS = "kafka.bootstrap.servers"


def topics_of(given: Input) -> tuple[tuple[str, ...], str | None]:
    """The topics that an input names, or the pattern of their names, which begins with ^."""
    options = {name.lower(): value for name, value in given.options}
    named = options.get("subscribe", given.path or "")
    pattern = options.get("subscribepattern", named if named.startswith("^") else None)
    return (() if pattern else tuple(filter(None, map(str.strip, named.split(","))))), pattern


def ranges_of(position: dict[str, Any]) -> dict[Place, tuple[int, int]]:
    """Of each partition the first offset that was to be read, and the next.

    >>> ranges_of({"offsets": [["cars", 0, 23, 5]]})
    {('cars', 0): (5, 23)}
    """
    return {(str(topic), int(number)): (int(first), int(end)) for topic, number, end, first in position["offsets"]}


class KafkaInput:
    """The records of the topics that a stream names. `look_again`: seconds between two looks for new partitions."""

    def __init__(self, stream: Stream, look_again: float = LOOK_AGAIN) -> None:
        given = input_of(stream)
        self._owner = f"stream {stream.name!r}"
        self._records = Records(stream, given)
        self._topics, self._pattern = topics_of(given)
        options = {name.lower(): value for name, value in split_options(given)[1].items()}
        self._servers = options.get(SERVERS) or options.get("servers", "")
        if not self._servers or not (self._topics or self._pattern):
            raise DeclarationError(
                f"{self._owner} needs a topic and servers: FROM kafka 'topic' OPTIONS (servers 'localhost:9092')"
            )
        self._starting = options.get("startingoffsets", "latest")
        self._most = given.max_offsets
        self._look_again = look_again
        self._consumer = self._opened(options)
        self._next: dict[Place, int] = {}
        self._began: dict[Place, int] = {}
        self._taken: dict[Place, list[int]] = {}
        self._ends: set[Place] = set()
        self._waiting: dict[Place, deque[Message]] = {}
        self._aligned = time.monotonic()
        self.lag: dict[str, int] = {}
        """How many records wait in each partition, as far as the broker has told."""
        self._looked = 0.0
        self._known = False

    def _opened(self, options: dict[str, str]) -> Consumer:
        own = {name[len("kafka.") :]: value for name, value in options.items() if name.startswith("kafka.")}
        unknown = [name for name in options if not name.startswith("kafka.") and name not in OF_SPARK | {"servers"}]
        if unknown:
            raise DeclarationError(
                f"{self._owner}: the local engine has no option {unknown[0]} for kafka: options of the client itself "
                f"begin with kafka., such as kafka.security.protocol"
            )
        fixed = {
            "bootstrap.servers": self._servers,
            "group.id": "eventide",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "auto.offset.reset": "error",
            "isolation.level": "read_committed",
            "error_cb": lambda error: log.warning(
                "%s: Kafka at %s: %s", self._owner, self._servers, error.str(), extra={"event": "kafka error"}
            ),
        }
        try:
            return Consumer(own | fixed, logger=log)
        except (KafkaException, TypeError, ValueError) as error:
            reason = masked_text(str(error))
            raise DeclarationError(f"{self._owner}: Kafka's client does not take these options: {reason}") from None

    # What there is to read

    def _partitions(self) -> list[Place]:
        """The partitions of all topics, as a broker tells them now."""
        try:
            found = self._consumer.list_topics(timeout=ANSWER_SECONDS).topics
        except KafkaException as error:
            raise InputError(
                f"{self._owner}: no Kafka broker answers at {self._servers}: {masked_text(error.args[0].str())}. "
                "Does it run, and is the option servers its address?"
            ) from None
        names = [name for name in self._topics if name in found and found[name].error is None]
        if self._pattern is not None:
            names = sorted(name for name in found if re.match(self._pattern, name) and not name.startswith("__"))
        if missing := [name for name in self._topics if name not in names]:
            there = ", ".join(sorted(name for name in found if not name.startswith("__"))) or "none"
            raise InputError(
                f"{self._owner}: Kafka at {self._servers} has no topic {missing[0]!r}; there are: {there}. Make it, or "
                "name another"
            )
        return [(name, number) for name in names for number in sorted(found[name].partitions)]

    def _look(self) -> None:
        """Find the partitions there are; those that are new are read from their beginning."""
        if self._known and time.monotonic() - self._looked < self._look_again:
            return
        self._looked = time.monotonic()
        try:
            fresh = [place for place in self._partitions() if place not in self._next]
        except InputError as error:
            if not self._known:
                raise
            # It was there, and may come back: what is asked for meanwhile is nothing.
            log.warning("%s", error, extra={"event": "kafka error"})
            return
        for place in fresh:
            self._next[place] = self._first(place, "earliest" if self._known else self._starting)
            self._began[place] = self._next[place]
        self._known = True
        if fresh:
            self._assign(self._next)

    def _first(self, place: Place, starting: str) -> int:
        least, end = self._bounds(place)
        if starting.lower() in ("earliest", "latest"):
            return least if starting.lower() == "earliest" else end
        try:
            wanted = int(json.loads(starting)[place[0]][str(place[1])])
        except (ValueError, KeyError, TypeError):
            raise DeclarationError(
                f"{self._owner}: startingOffsets {starting!r} says nothing of partition {place[1]} of {place[0]!r}: "
                'write earliest, latest or {"topic": {"0": 23, "1": -2}}'
            ) from None
        return {OFFSET_BEGINNING: least, -1: end}.get(wanted, wanted)

    def _bounds(self, place: Place) -> tuple[int, int]:
        """The first offset that the broker still has, and the one behind the last."""
        try:
            least, end = self._consumer.get_watermark_offsets(TopicPartition(*place), timeout=ANSWER_SECONDS)
        except KafkaException as error:
            raise InputError(
                f"{self._owner}: Kafka at {self._servers} does not tell the offsets of {place[0]!r}: "
                f"{error.args[0].str()}"
            ) from None
        return int(least), int(end)

    def _assign(self, offsets: dict[Place, int]) -> None:
        self._ends -= offsets.keys()
        self._waiting = {}
        self._consumer.assign([TopicPartition(*place, offset) for place, offset in offsets.items()])

    # Taking

    @property
    def ended(self) -> bool:
        """Never: a topic may always go on."""
        return False

    @property
    def caught_up(self) -> bool:
        """Whether every partition was read to its end."""
        return self._known and self._ends >= self._next.keys() and not any(self._waiting.values())

    def take(self, max_rows: int, wait: float) -> pa.Table | None:
        """The next records by their times, those of a partition in the order of their offsets."""
        self._look()
        wanted = min(max_rows, self._most or max_rows)
        self._fill(wanted, time.monotonic() + wait)
        found = self._oldest(wanted)
        if not found:
            return None
        for message in found:
            place = place_of(message)
            start, _, rows = self._taken.setdefault(place, [self._next[place], 0, 0])
            self._next[place] = offset_of(message) + 1
            self._taken[place] = [start, self._next[place], rows + 1]
        self.lag = self._waiting_records()
        return self._records.table(found)

    def _fill(self, wanted: int, deadline: float) -> None:
        """Take over what has arrived; wait for the first record, and for partitions that are behind the others."""
        held = sum(map(len, self._waiting.values()))
        while held < wanted or self._behind():
            rest = deadline - time.monotonic() if not held or self._behind() else 0.0
            messages = self._consumer.consume(1, max(0.0, rest))
            messages += self._consumer.consume(BATCH, 0.0) if messages else []
            if not messages or held > MOST_WAITING:
                return
            for record in self._heard(messages):
                self._waiting.setdefault(place_of(record), deque()).append(record)
            held = sum(map(len, self._waiting.values()))

    def _behind(self) -> bool:
        """Whether a partition that has not ended has given nothing yet: its records may be older than all others."""
        return any(not self._waiting.get(place) for place in self._next.keys() - self._ends)

    def _oldest(self, wanted: int) -> list[Message]:
        """The waiting records by their times; a partition that is slow is not waited for long."""
        found: list[Message] = []
        now = time.monotonic()
        if not self._behind() or sum(map(len, self._waiting.values())) > MOST_WAITING:
            self._aligned = now
        patient = now - self._aligned < SLOW_SECONDS
        # Of records of the same millisecond, partitions give one in turns.
        heads = [(millis_of(queue[0]), 0, place) for place, queue in self._waiting.items() if queue]
        heapq.heapify(heads)
        while heads and len(found) < wanted and not (patient and self._behind()):
            _, given, place = heads[0]
            queue = self._waiting[place]
            found.append(queue.popleft())
            if queue:
                heapq.heapreplace(heads, (millis_of(queue[0]), given + 1, place))
            else:
                heapq.heappop(heads)
        return found

    def _heard(self, messages: Iterable[Message]) -> list[Message]:
        """Those that are records; what the others say is noted."""
        records = []
        for message in messages:
            error, place = message.error(), place_of(message)
            if error is None:
                self._ends.discard(place)
                records.append(message)
            elif error.code() == KafkaError._PARTITION_EOF:
                self._ends.add(place)
            elif error.code() == KafkaError._AUTO_OFFSET_RESET:
                raise InputError(
                    f"{self._owner}: the records of partition {place[1]} of {place[0]!r} from offset "
                    f"{self._next[place]} on are gone at {self._servers}: it keeps them too short a time. Start anew "
                    "with another checkpoint"
                )
            else:
                log.warning(
                    "%s: Kafka at %s: %s", self._owner, self._servers, error.str(), extra={"event": "kafka error"}
                )
        return records

    def position(self) -> dict[str, Any]:
        """The next offset of every partition, and the first that was to be read."""
        return {"offsets": [[*place, offset, self._began.get(place, 0)] for place, offset in self._next.items()]}

    def seek(self, position: dict[str, Any]) -> None:
        """Go on from there."""
        ranges = ranges_of(position)
        self._next = {place: offset for place, (_, offset) in ranges.items()}
        self._began = {place: first for place, (first, _) in ranges.items()}
        self._known = bool(self._next)
        self._taken = {}
        if self._known:
            # At the start a broker has to be there.
            self._partitions()
            self._assign(self._next)

    def portion(self) -> dict[str, Any]:
        """Between which offsets was read since this was last asked, and how many records there were."""
        taken, self._taken = self._taken, {}
        return {"offsets": [[*place, *read] for place, read in taken.items()]}

    def repeat(self, portion: dict[str, Any]) -> tuple[pa.Table | None, bool]:
        """Read between the same offsets again."""
        ranges = {(str(topic), int(number)): tuple(read) for topic, number, *read in portion["offsets"]}
        exact = all(self._next.setdefault(place, read[0]) == read[0] for place, read in ranges.items())
        found = self._between(ranges) if exact else []
        counts = dict.fromkeys(ranges, 0)
        for message in found:
            counts[place_of(message)] += 1
        exact = exact and all(counts[place] == read[2] for place, read in ranges.items())
        if exact:
            self._next |= {place: read[1] for place, read in ranges.items()}
            self._began = {place: read[0] for place, read in ranges.items()} | self._began
        self._known = bool(self._next)
        self._assign(self._next)
        return (self._records.table(found) if found and exact else None), exact

    def history(self, position: dict[str, Any]) -> Iterator[pa.Table]:
        """All records before a position that the broker still has, some at a time, from where reading began."""
        ranges: dict[Place, tuple[int, ...]] = {}
        for place, (first, end) in ranges_of(position).items():
            ranges[place] = (max(first, self._bounds(place)[0]), end)
        for found in self._spans({place: read for place, read in ranges.items() if read[0] < read[1]}):
            yield self._records.table(found)
        self._assign(self._next)

    def _between(self, ranges: dict[Place, tuple[int, ...]]) -> list[Message]:
        """The records between offsets; none where the broker does not give them all."""
        try:
            return [message for found in self._spans(ranges) for message in found]
        except InputError:
            return []

    def _spans(self, ranges: dict[Place, tuple[int, ...]]) -> Iterator[list[Message]]:
        """The records between offsets, some at a time."""
        if ranges:
            self._assign({place: read[0] for place, read in ranges.items()})
        open_ones = set(ranges)
        deadline = time.monotonic() + AGAIN_SECONDS
        while open_ones:
            messages = self._heard(self._consumer.consume(BATCH, 0.1))
            found = [message for message in messages if offset_of(message) < ranges[place_of(message)][1]]
            open_ones -= {place_of(m) for m in messages if offset_of(m) >= ranges[place_of(m)][1] - 1} | self._ends
            if found:
                deadline = time.monotonic() + AGAIN_SECONDS
                yield found
            elif open_ones and time.monotonic() > deadline:
                raise InputError(
                    f"{self._owner}: Kafka at {self._servers} does not give records that it has given before"
                )

    def _waiting_records(self) -> dict[str, int]:
        found = {}
        for place, offset in list(self._next.items()):
            _, end = self._consumer.get_watermark_offsets(TopicPartition(*place), cached=True)
            found[f"{place[0]}-{place[1]}"] = max(0, end - offset)
        return found

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()
