"""What a stream is made of: a streaming DataFrame of Spark's, or Arrow data at hand or to come.

Law: what cannot be a stream is refused when it is given, with what to give instead. An iterator can be read once.

>>> given_rows(pa.table({"ts": [1], "speed": [50]})).columns
(Column(name='ts', type='BIGINT'), Column(name='speed', type='BIGINT'))
>>> given_rows(42)
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: 42 is no stream: give a streaming DataFrame (spark.readStream), an Arrow table, or \
an iterator of Arrow batches
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from eventide.api.arrow_rows import ArrowRows
from eventide.errors import DeclarationError
from eventide.plan.declared.stream import Stream
from eventide.plan.expressions.columns import Column, spark_type
from eventide.sources.schema import spark_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Given: TypeAlias = "DataFrame | pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable[pa.RecordBatch | pa.Table]"
"""What a user may make a stream of."""


class SparkRows:
    """A streaming DataFrame."""

    def __init__(self, frame: DataFrame) -> None:
        if not frame.isStreaming:
            raise DeclarationError(
                "this DataFrame is not a stream: make it with spark.readStream; for data that is all at hand give "
                "df.toArrow()"
            )
        self.frame = frame
        self.columns = tuple(_column(field.name, field.dataType.simpleString()) for field in frame.schema.fields)


class ArrowData:
    """Arrow tables or batches; `once` when they come from an iterator."""

    def __init__(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch | pa.Table], once: bool) -> None:
        self.columns = tuple(Column(field.name, spark_name(field.type)) for field in schema)
        self._batches = batches
        self._once = once
        self._taken = False

    def opened(self, stream: Stream) -> ArrowRows:
        """The input of the local engine; an iterator is given away only once."""
        if self._once and self._taken:
            raise DeclarationError(
                f"the batches of stream {stream.name!r} were given to a query before, and an iterator gives them once: "
                "make the stream anew, or start the queries together with eventide.start(q1, q2)"
            )
        self._taken = True
        return ArrowRows(stream, self._batches, waits=self._once)


def given_rows(given: Given) -> SparkRows | ArrowData:
    """What was given, if it can be a stream."""
    if _is_frame(given):
        return SparkRows(given)  # type: ignore[arg-type]
    if isinstance(given, pa.Table):
        return ArrowData(given.schema, given.to_batches(), once=False)
    if isinstance(given, pa.RecordBatch):
        return ArrowData(given.schema, [given], once=False)
    if isinstance(given, pa.RecordBatchReader):
        return ArrowData(given.schema, given, once=True)
    if hasattr(given, "__arrow_c_stream__"):
        reader = pa.RecordBatchReader.from_stream(given)
        return ArrowData(reader.schema, reader, once=True)
    if isinstance(given, Iterable) and not isinstance(given, str | bytes):
        return _of_batches(given)
    raise DeclarationError(
        f"{given!r} is no stream: give a streaming DataFrame (spark.readStream), an Arrow table, or an iterator of "
        "Arrow batches"
    )


def _of_batches(given: Iterable[Any]) -> ArrowData:
    """Batches without a schema of their own: the first one tells it."""
    if isinstance(given, Sequence):
        batches: Iterable[Any] = given
        first = given[0] if given else None
    else:
        drawn: Iterator[Any] = iter(given)
        first = next(drawn, None)
        batches = chain([first], drawn)
    if not isinstance(first, pa.Table | pa.RecordBatch):
        what = "holds nothing" if first is None else f"gives {type(first).__name__}, not Arrow batches"
        raise DeclarationError(
            f"this {type(given).__name__} {what}: give Arrow tables or batches; where none may come at first, "
            "pa.RecordBatchReader.from_batches(schema, batches)"
        )
    return ArrowData(first.schema, batches, once=not isinstance(given, Sequence))


def _is_frame(given: object) -> bool:
    return any(base.__name__ == "DataFrame" and base.__module__.startswith("pyspark.") for base in type(given).__mro__)


def _column(name: str, kind: str) -> Column:
    try:
        return Column(name, spark_type(kind))
    except Exception as failure:
        raise DeclarationError(
            f"the column {name!r} is of type {kind}, which a stream cannot have: drop it or cast it first"
        ) from failure
