"""Change data of a database as Debezium writes it: each change as a row of the table, with its time and what it was.

Laws. A row that was inserted, updated or read in a snapshot has the values of `after`; one that was deleted has those of
`before`, which has the key at least, and is `removed`. Its time, `changed_at`, is that of the change in the database
(`source.ts_ms`), or else that of Debezium (`ts_ms`). Messages with a schema around them (`payload`) are read as well as
those without. A tombstone, a message without a value, says nothing new and is left out.

>>> from eventide.plan.declared.stream import Input, columns
>>> given = Input("json", "changes", options=(("envelope", "debezium"),))
>>> prices = Stream("prices", columns("id STRING, price INT, changed_at TIMESTAMP, removed BOOLEAN"), "changed_at", input=given)
>>> [column.name for column in raw(prices).columns], raw(prices).input.options
(['before', 'after', 'op', 'ts_ms', 'source', 'payload'], ())
"""  # noqa: E501 - an example

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.plan.declared.stream import CHANGED_AT, ENVELOPE, REMOVED, Stream, Timestamps
from eventide.plan.expressions.columns import Column, quoted
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.sources.arrow_types import schema_of
from eventide.sources.local_input import LocalInput, RereadableInput

OWN = "kafka_"
"""How columns begin that stand beside the message."""


def raw(stream: Stream) -> Stream:
    """The stream of messages."""
    assert stream.input is not None
    row = f"STRUCT<{', '.join(f'{quoted(column.name)}: {column.type}' for column in _of_table(stream))}>"
    parts = (f"before {row}", f"after {row}", "op STRING", "ts_ms BIGINT", "source STRUCT<ts_ms: BIGINT>")
    columns = tuple(Column(*part.split(" ", 1)) for part in parts)
    inside = ", ".join(f"{column.name}: {column.type}" for column in columns)
    options = tuple((name, value) for name, value in stream.input.options if name.lower() != ENVELOPE)
    return Stream(
        stream.name,
        (*columns, Column("payload", f"STRUCT<{inside}>"), *_beside(stream)),
        timestamps=Timestamps.INTERNAL,
        input=replace(stream.input, options=options),
    )


def unpacked_sql(stream: Stream) -> tuple[str, list[str]]:
    """In Spark's SQL: which messages say something, and the columns of the stream."""

    def part(name: str) -> str:
        return f"coalesce(payload.{name}, {name})"

    row = f"coalesce({part('after')}, {part('before')})"
    values = {column.name: f"{row}.{quoted(column.name)}" for column in _of_table(stream)}
    values[CHANGED_AT] = f"timestamp_millis(coalesce({part('source')}.ts_ms, {part('ts_ms')}))"
    values[REMOVED] = f"{part('op')} = 'd'"
    chosen = [f"{values.get(c.name, quoted(c.name))} AS {quoted(c.name)}" for c in stream.columns]
    return f"{MALFORMED} IS NULL OR {MALFORMED} != ''", [*chosen, MALFORMED]


def unpacked(stream: Stream, messages: pa.Table) -> pa.Table:
    """The same for a table of Arrow."""
    says = pc.fill_null(pc.not_equal(messages.column(MALFORMED), ""), True)
    messages = messages.filter(says)

    def part(name: str) -> Any:
        return pc.coalesce(pc.struct_field(messages.column("payload"), [name]), messages.column(name))

    row = pc.coalesce(part("after"), part("before"))
    values: dict[str, Any] = {column.name: pc.struct_field(row, [column.name]) for column in _of_table(stream)}
    millis = pc.coalesce(pc.struct_field(part("source"), ["ts_ms"]), part("ts_ms"))
    values[CHANGED_AT] = pc.multiply(millis, 1000).cast(pa.timestamp("us", "UTC"))
    values[REMOVED] = pc.equal(part("op"), "d")
    values |= {column.name: messages.column(column.name) for column in _beside(stream)}
    schema = schema_of(stream.columns)
    chosen = [values[column.name].cast(schema.field(column.name).type) for column in stream.columns]
    return pa.table([*chosen, messages.column(MALFORMED)], schema=schema)


def _of_table(stream: Stream) -> Sequence[Column]:
    return [c for c in stream.columns if c.name not in (CHANGED_AT, REMOVED) and not c.name.startswith(OWN)]


def _beside(stream: Stream) -> tuple[Column, ...]:
    return tuple(column for column in stream.columns if column.name.startswith(OWN))


@dataclass
class EnvelopeInput:
    """An input of the local engine whose rows come in messages."""

    stream: Stream
    messages: LocalInput

    @property
    def ended(self) -> bool:
        """Whether there will be no more messages."""
        return self.messages.ended

    @property
    def caught_up(self) -> bool:
        """Whether all messages that are there now have been taken."""
        return self.messages.caught_up

    @property
    def lag(self) -> dict[str, int]:
        """How many messages wait in each partition of a topic."""
        return dict(getattr(self.messages, "lag", {}))

    def take(self, max_rows: int, wait: float) -> pa.Table | None:
        """The next rows."""
        found = self.messages.take(max_rows, wait)
        return None if found is None else unpacked(self.stream, found)

    def position(self) -> dict[str, Any]:
        """How far messages were taken."""
        return self.messages.position()

    def seek(self, position: dict[str, Any]) -> None:
        """Continue from a position noted before."""
        self.messages.seek(position)

    def portion(self) -> dict[str, Any]:
        """Which messages were taken since this was last asked."""
        return self.messages.portion()

    def repeat(self, portion: dict[str, Any]) -> tuple[pa.Table | None, bool]:
        """Take the rows of the same messages again."""
        found, exact = self.messages.repeat(portion)
        return None if found is None else unpacked(self.stream, found), exact

    def close(self) -> None:
        """Let go of the messages."""
        self.messages.close()


class RereadableEnvelopeInput(EnvelopeInput):
    """The same, where messages can be read again from the beginning."""

    def history(self, position: dict[str, Any]) -> Iterator[pa.Table]:
        """All rows before a position, some at a time."""
        assert isinstance(self.messages, RereadableInput)
        for found in self.messages.history(position):
            yield unpacked(self.stream, found)


def opened(stream: Stream, messages: LocalInput) -> LocalInput:
    """The input of a stream, over that of its messages."""
    kind = RereadableEnvelopeInput if isinstance(messages, RereadableInput) else EnvelopeInput
    return kind(stream, messages)
