"""Results as records of a Kafka topic, exactly once.

Law: a round is one transaction of our own producer, which also notes the round. A consumer with the isolation level
`read_committed` sees all of a round or nothing, and each round once, through kill -9 of either side: a round that runs
again after a crash is the same round (its rows, its clock), and is passed over if it was committed. What a topic has
is there for ever: unlike other sinks, this one cannot take a round back. If an older record of the checkpoint is
continued from, the rounds between are passed over as well.

Each value is a JSON object with the columns of a result, or a record of Avro. The key is, by default, the groups.

*Large results* that are on the cluster are cut into shares by their keys, and Spark's tasks write each share in a
transaction of its own. That a round is cut is noted before, so a share is written once, whoever writes it in the end.
They become visible one after the other, not all at once.

>>> Kafka("db:9092", "speeds", key=["road"]).where
"the topic 'speeds' of Kafka at db:9092"
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any
from uuid import uuid4

import duckdb
import pyarrow as pa

from eventide.errors import DeclarationError, EngineError
from eventide.masking import masked_text
from eventide.results.results import WINDOW, Results
from eventide.sinks.lines import LineWriter
from eventide.sinks.sink import Owner
from eventide.sinks.values import Json, Values, each_line

try:
    from confluent_kafka import KafkaException, Producer
    from confluent_kafka.admin import AdminClient

    from eventide.sinks.kafka_transactions import ANSWER_SECONDS, Note, Transactions
except ModuleNotFoundError as missing:
    raise DeclarationError("INTO kafka needs confluent-kafka: pip install 'eventide[kafka]'") from missing

LARGE = 100_000
"""Above so many rows, results that are on the cluster are sent from there."""
SHARES = 8
"""Into so many transactions a large round is cut."""


class Records:
    """Makes records of result rows of one schema, and gives them to a producer."""

    def __init__(
        self, topic: str, schema: pa.Schema, values: Values, key: tuple[str, ...], headers: tuple[str, ...]
    ) -> None:
        self._topic, self._schema, self._key, self._headers = topic, schema, list(key), list(headers)
        self._values = values.writer(_part(schema, [name for name in schema.names if name not in headers]))
        self._is_text = len(key) == 1 and pa.types.is_string(schema.field(key[0]).type)
        self._key_lines = None if self._is_text or not key else LineWriter("json", _part(schema, key))
        self._head_lines = LineWriter("json", _part(schema, headers)) if headers else None

    def send(self, producer: Producer, batches: Iterable[pa.RecordBatch]) -> None:
        """Give all rows to a producer, which sends them while it takes more."""
        for batch in batches:
            table = pa.Table.from_batches([batch], self._schema)
            values = self._values(table.drop_columns(self._headers))
            keys = self._keys(table)
            if self._head_lines is not None:
                self._send_with_headers(
                    producer, values, keys, each_line(self._head_lines, table.select(self._headers))
                )
                continue
            records = [{"value": value, "key": key} for value, key in zip(values, keys, strict=True)]
            while records:
                sent = producer.produce_batch(self._topic, records)
                # What did not fit waits until some of it has gone.
                producer.poll(0.0 if sent == len(records) else 0.1)
                records = records[sent:]

    def _send_with_headers(
        self, producer: Producer, values: list[bytes], keys: list[bytes | None], heads: list[bytes]
    ) -> None:
        for value, key, head in zip(values, keys, heads, strict=True):
            headers: list[tuple[str, str | bytes | None]]
            headers = [(name, None if one is None else _text(one)) for name, one in json.loads(head).items()]
            while True:
                try:
                    producer.produce(self._topic, value, key, headers=headers)
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0.0)

    def _keys(self, table: pa.Table) -> list[bytes | None]:
        """A single text is its own key; anything else is a JSON object."""
        if self._key_lines is not None:
            return [*each_line(self._key_lines, table.select(self._key))]
        texts = table.column(self._key[0]).to_pylist() if self._key else [None] * table.num_rows
        return [None if text is None else text.encode() for text in texts]


@lru_cache(maxsize=8)
def _records(topic: str, schema: pa.Schema, values: Values, key: tuple[str, ...], headers: tuple[str, ...]) -> Records:
    """One for each process: to plan the lines takes longer than a small round."""
    return Records(topic, schema, values, key, headers)


@dataclass(frozen=True)
class Round:
    """What is needed to write a round, or a share of it, anywhere: Spark's tasks get it from the driver."""

    settings: Mapping[str, Any] = field(repr=False)
    topic: str
    name: str
    note: Note
    what: str
    schema: pa.Schema
    values: Values
    key: tuple[str, ...]
    headers: tuple[str, ...]
    apart: tuple[str, ...]
    """The columns by which rows are shared out."""

    @property
    def records(self) -> Records:
        """What makes records of its rows."""
        return _records(self.topic, self.schema, self.values, self.key, self.headers)

    def send(self, producer: Producer, batches: Iterable[pa.RecordBatch]) -> None:
        """Give all rows to a producer."""
        self.records.send(producer, batches)

    def __call__(self, share: int, batches: Callable[[], Iterator[pa.RecordBatch]]) -> EngineError | None:
        """Write a share, in a task; what was refused."""
        transactions = Transactions(self.settings, self.topic, f"{self.name}-{share}")
        try:
            transactions.run(Note(self.note.round), lambda p: self.send(p, self._of_share(share, batches())), self.what)
        except EngineError as error:
            return error
        finally:
            transactions.close()
        return None

    def _of_share(self, share: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        # By their places, so that no name of a user's is ever part of the SQL.
        places = [f"c{place}" for place in range(len(self.apart))]
        chosen = f"SELECT hash({', '.join(places)}) % {self.note.shares} = {share} AS x FROM apart"
        with duckdb.connect(config={"threads": 1}) as connection:
            for batch in batches:
                apart = pa.Table.from_batches([batch]).select(list(self.apart)).rename_columns(places)
                connection.register("apart", apart)
                yield batch.filter(connection.sql(chosen).to_arrow_table().column("x").combine_chunks())


class Kafka:
    """Writes results into a topic, each as a record with a JSON value.

    Law: a consumer that reads committed records alone sees the results of each round once, all at once.

    `key` names the columns of the key, by default the groups; `headers` those that stand in headers and not in the
    value. `values`: JSON, or `Avro`. `settings` are those of the client (librdkafka). `id` tells apart who writes: an
    engine gives the id of its checkpoint. Results of more than `large` rows that are on the cluster are sent by Spark's
    tasks.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        *,
        key: Sequence[str] = (),
        headers: Sequence[str] = (),
        values: Values | None = None,
        settings: Mapping[str, str] | None = None,
        id: str | None = None,
        large: int = LARGE,
    ) -> None:
        self._servers = servers
        self._topic = topic
        self._key = tuple(key)
        self._headers = tuple(headers)
        self._values = values or Json()
        self._settings = {**(settings or {}), "bootstrap.servers": servers}
        self._id = id or uuid4().hex
        self._large = large
        self._open: dict[str, Transactions] = {}

    def emit(self, results: Results) -> None:
        """Write a round in one transaction, unless it was written before."""
        if not results.rows:
            return
        name = f"eventide-{self._id}-{results.query}"
        what = f"the results of {results.query!r} in round {results.round} cannot be written into {self.where}"
        transactions = self._open.setdefault(name, Transactions(self._settings, self._topic, name))
        before = transactions.opened(what)
        is_cut = before == Note(results.round, before.shares) and before.shares > 0
        if before.round >= results.round and not is_cut:
            return
        shares = before.shares if is_cut else SHARES if results.parts and results.rows > self._large else 0
        written = self._round(results, name, Note(results.round, shares), what)
        # A registry is asked before a transaction begins, which would not wait for long.
        assert written.records
        if not shares:
            transactions.run(written.note, lambda producer: written.send(producer, results.batches()), what)
            return
        transactions.run(written.note, lambda producer: None, what)
        # What was cut on the cluster before a crash may be here now: shares are the same wherever they are made.
        errors = results.parts.share(shares, written) if results.parts else self._here(shares, written, results)
        for error in filter(None, errors):
            raise error

    def _here(self, shares: int, written: Round, results: Results) -> list[EngineError | None]:
        return [written(share, results.batches) for share in range(shares)]

    def rewind(self, query: str, last: int) -> None:
        """Look whether the topic is there; rounds that it has stay, and are passed over when they come again."""
        try:
            client = AdminClient({**self._settings})
            found = client.list_topics(self._topic, timeout=ANSWER_SECONDS).topics[self._topic]
        except KafkaException as error:
            raise EngineError(
                f"no Kafka broker answers at {self._servers}: {masked_text(error.args[0].str())}. Does it run, and is "
                "the option servers its address?"
            ) from None
        except ValueError as error:
            raise DeclarationError(f"Kafka's client does not take these options: {masked_text(str(error))}") from None
        if found.error is not None:
            raise EngineError(f"Kafka at {self._servers} has no topic {self._topic!r}: make it, or name another")

    def close(self) -> None:
        """Leave the broker; every round was complete when `emit` returned."""
        for transactions in self._open.values():
            transactions.close()
        self._open.clear()

    @property
    def where(self) -> str:
        """The topic, for messages."""
        return f"the topic {self._topic!r} of Kafka at {self._servers}"

    def holds(self, query: str) -> bool:
        """Never: what stands in a topic is not deleted, whoever wrote it."""
        return False

    def owner_of(self, query: str) -> Owner | None:
        """Nobody: several may write into a topic, each in transactions of its own."""
        return None

    def claim(self, query: str, owner: Owner) -> None:
        """Write in the name of this checkpoint, by which its transactions are found again."""
        self._id = owner.id

    def _round(self, results: Results, name: str, note: Note, what: str) -> Round:
        schema = results.schema
        key = self._key or tuple(column for column in results.key if column not in WINDOW)
        for column in (*key, *self._headers):
            if column not in schema.names:
                has = ", ".join(schema.names)
                raise EngineError(f"{column!r} is no column of {results.query!r}; it has {has}")
        apart = results.key or tuple(f.name for f in schema if not _may_differ(f.type))
        if set(WINDOW) <= set(results.key):
            # Of values that change, all rows of a key are written one after the other, in one share.
            apart = ("kind", *apart)
        return Round(self._settings, self._topic, name, note, what, schema, self._values, key, self._headers, apart)


def _may_differ(kind: Any) -> bool:
    """Whether values may come out a little different when they are computed again."""
    return pa.types.is_floating(kind) or pa.types.is_nested(kind)


def _part(schema: pa.Schema, names: Sequence[str]) -> pa.Schema:
    return pa.schema([schema.field(name) for name in names])


def _text(value: object) -> bytes:
    return (value if isinstance(value, str) else json.dumps(value)).encode()
