"""Records of Kafka as rows: what stands in their values, and what they have beside them.

Law: each record is one row, in the order of partitions and offsets, however they came. A value that is missing, or is
no single row, is malformed; what stands beside it stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from eventide.plan.declared.stream import Input, Stream
from eventide.plan.expressions.columns import Column
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.sources.arrow_types import matched, schema_of, spark_name
from eventide.sources.options import split_options, unknown_format
from eventide.sources.text.reader import LineFormat

if TYPE_CHECKING:
    from confluent_kafka import Message

Place = tuple[str, int]
"""A topic, and a partition of it."""

BLANKS = {"json": b" \t\r\n", "csv": bytes(range(0x21))}
START = datetime(1970, 1, 1, tzinfo=UTC)
BESIDE: dict[str, pa.DataType] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": pa.timestamp("us", "UTC"),
    "headers": pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
}
"""What a record has, by Spark's names."""


class Values(Protocol):
    """Makes rows of the values of records."""

    def table(self, values: Sequence[bytes | None]) -> pa.Table:
        """A row for each value, in their order; one that is missing, or no single row, is malformed."""
        ...


def values_of(owner: str, columns: Sequence[Column], options: dict[str, str]) -> Values:
    """The values that a stream reads into columns; `options` are those behind `value.`."""
    given = dict(options)
    kind = given.pop("format", "json")
    if not columns:
        return NoValues()
    if kind == "avro":
        from eventide.sources.avro_values import AvroValues

        return AvroValues.of(owner, columns, given).opened()
    if kind not in BLANKS:
        raise unknown_format(owner, kind)
    # Inside a value there is no first line that names columns.
    given.pop("header", None)
    return Lines(owner, columns, kind, given | ({"header": "false"} if kind == "csv" else {}))


class NoValues:
    """Of values nothing is wanted."""

    def table(self, values: Sequence[bytes | None]) -> pa.Table:
        """So many rows without columns, all of them good."""
        return pa.table({MALFORMED: pa.nulls(len(values), pa.string())})


class Lines:
    """Values that are lines of JSON or CSV."""

    def __init__(self, owner: str, columns: Sequence[Column], kind: str, options: dict[str, str]) -> None:
        self._blanks, self._of_objects = BLANKS[kind], kind == "json"
        self._lines = LineFormat(owner, columns, kind, options)

    def table(self, values: Sequence[bytes | None]) -> pa.Table:
        """What stands in the values."""
        bare = [(value or b"").strip(self._blanks) for value in values]
        good = [at for at, value in enumerate(bare) if value and not (self._of_objects and value[:1] == b"[")]
        block = b"\n".join(bare[at].replace(b"\r", b" ").replace(b"\n", b" ") for at in good) + b"\n"
        rows = self._lines.table(block, None)
        if len(good) == len(values):
            return rows
        others = [at for at, _ in enumerate(bare) if at not in set(good)]
        texts = pa.array([bare[at].decode("utf-8", "replace") for at in others], pa.string())
        nulls = [pa.nulls(len(others), field.type) for field in rows.schema if field.name != MALFORMED]
        broken = pa.table([*nulls, texts], schema=rows.schema)
        order = sorted(range(len(values)), key=[*good, *others].__getitem__)
        return pa.concat_tables([rows, broken]).take(pa.array(order, pa.int64()))


class Records:
    """Makes rows of records."""

    def __init__(self, stream: Stream, given: Input) -> None:
        self._columns, self._schema = stream.columns, schema_of(stream.columns)
        of_value, _ = split_options(given)
        raw = not of_value and all(column.name.lower() in BESIDE for column in stream.columns)
        prefix = "" if raw else "kafka_"
        beside = [c for c in stream.columns if raw or c.name.lower().startswith(prefix)]
        there = {prefix + name: spark_name(kind) for name, kind in BESIDE.items()}
        found = matched(f"stream {stream.name!r}", beside, there, "a record of kafka")
        self._beside = {column.name: name.removeprefix(prefix) for name, column in found}
        inside = [column for column in stream.columns if column.name not in self._beside]
        self._values = values_of(f"stream {stream.name!r}", inside, of_value)

    def table(self, records: Sequence[Message]) -> pa.Table:
        """The rows, those of a partition together: the same for the same offsets, however they came."""
        records = sorted(records, key=lambda record: (*place_of(record), offset_of(record)))
        values = self._values.table([_bytes(record.value()) for record in records])
        columns: list[pa.Array | pa.ChunkedArray] = []
        for field in self._schema:
            if field.name in self._beside:
                name = self._beside[field.name]
                column = pa.array([_beside(record, name) for record in records], BESIDE[name])
                columns.append(column.cast(field.type))
            else:
                columns.append(values.column(field.name))
        return pa.table(columns, schema=self._schema)


def _beside(record: Message, name: str) -> Any:
    if name == "timestamp":
        # None where the broker has noted none.
        _, millis = record.timestamp()
        return None if millis < 0 else START + timedelta(milliseconds=millis)
    if name == "headers":
        found: Any = record.headers()
        return None if found is None else [{"key": key, "value": _bytes(value)} for key, value in found]
    return getattr(record, name)()


def _bytes(value: str | bytes | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


def place_of(message: Message) -> Place:
    """Where a record is from."""
    return str(message.topic()), int(message.partition() or 0)


def millis_of(message: Message) -> int:
    """When it was written, in milliseconds since 1970; less than 0 where that is not known."""
    return int(message.timestamp()[1])


def offset_of(message: Message) -> int:
    """Its number in its partition."""
    return int(message.offset() or 0)
