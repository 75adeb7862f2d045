"""Transactions of Kafka, each of which notes a round: what was committed is known after any crash.

Law: `run` commits the records of a round and the note of it together, or neither; a round that is noted already is not
written again. The note is the offset that a consumer group of the same name as the transactions has committed, a thing
that Kafka keeps together with the records, and that nobody reads but us. A producer that opens under a name ends what
its predecessor has left open, so after `opened` the note cannot change any more.

>>> Note.of(8, "4"), Note.of(-1001, "")
(Note(round=7, shares=4), Note(round=-1, shares=0))
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from eventide.errors import EngineError
from eventide.masking import masked_text

log = logging.getLogger(__name__)

PATIENCE = 60.0
"""So many seconds a round waits for a broker that has gone away."""
ANSWER_SECONDS = 10.0
"""Seconds until a question to the broker has failed."""

LASTING = frozenset(
    (
        KafkaError.TOPIC_AUTHORIZATION_FAILED,
        KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        KafkaError.GROUP_AUTHORIZATION_FAILED,
        KafkaError.CLUSTER_AUTHORIZATION_FAILED,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError._UNKNOWN_TOPIC,
        KafkaError._AUTHENTICATION,
        KafkaError._INVALID_ARG,
    )
)
"""What does not go away by trying again."""


@dataclass(frozen=True)
class Note:
    """The newest round under a name; `shares`: into how many it was cut, 0 where it was written as a whole."""

    round: int = -1
    shares: int = 0

    @classmethod
    def of(cls, offset: int, metadata: str | None) -> Note:
        """As the broker keeps it: offsets below 0 mean that there is none."""
        return cls(max(offset, 0) - 1, int(metadata or 0))


class Transactions:
    """Transactions under a name, one after the other; `settings` are those of the client, `topic` one that exists."""

    def __init__(self, settings: Mapping[str, Any], topic: str, name: str) -> None:
        self._settings = dict(settings)
        self._topic = topic
        self._name = name
        self._producer: Producer | None = None
        self._consumer: Consumer | None = None
        self._note = Note()

    def opened(self, what: str) -> Note:
        """The newest round that was committed under this name."""
        self._patiently(what, self._ready)
        return self._note

    def run(self, note: Note, send: Callable[[Producer], None], what: str) -> None:
        """Send the records of a round and note it, unless that has happened."""

        def work() -> None:
            producer = self._ready()
            if self._note.round >= note.round:
                return
            producer.begin_transaction()
            send(producer)
            assert self._consumer is not None
            noted = TopicPartition(self._topic, 0, note.round + 1, str(note.shares or ""))
            producer.send_offsets_to_transaction([noted], self._consumer.consumer_group_metadata(), ANSWER_SECONDS)
            producer.commit_transaction(PATIENCE)
            self._note = note

        self._patiently(what, work)

    def close(self) -> None:
        """Leave the broker; every round was committed when `run` returned."""
        if self._consumer is not None:
            self._consumer.close()
        self._producer = self._consumer = None

    def _ready(self) -> Producer:
        if self._producer is None:
            # A fetch of offsets needs them settled: what is open under this name is ended first.
            producer = Producer(self._settings | {"transactional.id": self._name}, logger=log)
            producer.init_transactions(ANSWER_SECONDS)
            self._consumer = Consumer(
                self._settings | {"group.id": self._name, "enable.auto.commit": False}, logger=log
            )
            [found] = self._consumer.committed([TopicPartition(self._topic, 0)], ANSWER_SECONDS)
            if found.error is not None:
                raise KafkaException(found.error)
            self._note = Note.of(found.offset, found.metadata)
            self._producer = producer
        return self._producer

    def _patiently(self, what: str, work: Callable[[], object]) -> None:
        """Do it; if a broker does not answer, or a transaction was broken off, again with a new producer."""
        deadline = time.monotonic() + PATIENCE
        pause = 0.1
        while True:
            try:
                work()
                return
            except KafkaException as error:
                reason = error.args[0]
                self.close()
                if reason.code() in LASTING or time.monotonic() > deadline:
                    raise EngineError(f"{what}: {masked_text(reason.str())}") from None
                log.warning(
                    "%s, trying again: %s", what, masked_text(reason.str()), extra={"event": "sink tried again"}
                )
            time.sleep(pause)
            pause = min(2 * pause, 2.0)
