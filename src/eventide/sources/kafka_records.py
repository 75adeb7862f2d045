"""Records of Kafka as rows: what stands in their values, and what they have beside them.

Law: each record is one row, in the order of partitions and offsets, however they came. A value that is missing, or is
no single row, is malformed; what stands beside it stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from eventide.errors import DeclarationError
from eventide.plan.declared.stream import Input, Stream
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.sources.arrow_types import matched, schema_of, spark_name
from eventide.sources.options import split_options
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
        self._kind = of_value.pop("format", "json")
        if self._kind not in BLANKS:
            raise DeclarationError(f"stream {stream.name!r}: value.format {self._kind!r} is not known: use json or csv")
        if self._kind == "json":
            of_value.pop("header", None)
        elif not of_value:
            of_value = {"header": "false"}
        self._lines = LineFormat(f"stream {stream.name!r}", inside, self._kind, of_value) if inside else None

    def table(self, records: Sequence[Message]) -> pa.Table:
        """The rows, those of a partition together: the same for the same offsets, however they came."""
        records = sorted(records, key=lambda record: (*place_of(record), offset_of(record)))
        values = self._values([_bytes(record.value()) for record in records])
        columns: list[pa.Array | pa.ChunkedArray] = []
        for field in self._schema:
            if field.name in self._beside:
                name = self._beside[field.name]
                column = pa.array([_beside(record, name) for record in records], BESIDE[name])
                columns.append(column.cast(field.type))
            else:
                columns.append(values.column(field.name))
        return pa.table(columns, schema=self._schema)

    def _values(self, values: list[bytes | None]) -> pa.Table:
        """What stands in the values; one that is missing, or no single row, is malformed."""
        if self._lines is None:
            return pa.table({MALFORMED: pa.nulls(len(values), pa.string())})
        bare = [(value or b"").strip(BLANKS[self._kind]) for value in values]
        good = [at for at, value in enumerate(bare) if value and not (self._kind == "json" and value[:1] == b"[")]
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
