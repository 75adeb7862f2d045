"""The rows of a stream in Python: a streaming DataFrame of Spark, or Arrow data at hand or to come.

Law: what cannot be a stream is refused when it is given, with what to give instead. An iterator can be read once.

>>> given_rows(pa.table({"ts": [1], "speed": [50]})).columns
(Column(name='ts', type='BIGINT'), Column(name='speed', type='BIGINT'))
>>> given_rows(42)
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: 42 is no stream: give a streaming DataFrame (spark.readStream), an Arrow table, or \
an iterator of Arrow batches

*Arrow batches.* One batch is one round (micro-batch). Rows come in the order of the batches, each batch as a round of
its own, so that time moves as it would have moved while they arrived. An iterator is drawn from in a thread of its own:
while it has nothing, the clock goes on. The position is the number of rows taken; to continue from it the same rows are
passed over.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from eventide.errors import DeclarationError, EventideError, InputError
from eventide.plan.declared.stream import Stream
from eventide.plan.expressions.columns import Column, spark_type
from eventide.sources.arrow_types import spark_name
from eventide.sources.local_input import Batches
from eventide.sources.spark_errors import refuse_connect

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AHEAD = 2
"""Batches that are drawn before they are asked for."""

PATIENCE = 5.0
"""Seconds that an iterator has for each batch of a round that is run again."""


class ArrowRows:
    """The batches of a collection, or of an iterator that may let one wait."""

    def __init__(self, stream: Stream, batches: Iterable[pa.RecordBatch | pa.Table], waits: bool) -> None:
        self._stream = stream
        self._next = _DrawnBatches(batches) if waits else _ReadyBatches(batches)
        self._rest: Batches | None = None
        self._rows = 0
        self._noted = 0
        self.ended = False

    @property
    def caught_up(self) -> bool:
        """Whether it has ended: what an iterator has now is not distinguished from what it will have."""
        return self.ended

    def take(self, max_rows: int, wait: float) -> pa.Table | None:
        """The next batch, or as much of it as is wanted; None when there is nothing now."""
        while not self.ended:
            if self._rest is None:
                try:
                    self._rest = Batches(self._stream, [self._next.batch(wait)])
                except queue.Empty:
                    return None
                except StopIteration:
                    self.ended = True
                    return None
            rows = self._rest.take(max_rows, 0.0)
            if rows is not None:
                self._rows += rows.num_rows
                return rows
            self._rest = None
        return None

    def position(self) -> dict[str, Any]:
        """How many rows were taken."""
        return {"rows": self._rows}

    def seek(self, position: dict[str, Any]) -> None:
        """Draw and pass over as many rows."""
        while self._rows < int(position["rows"]) and not self.ended:
            self.take(int(position["rows"]) - self._rows, 0.05)
        self._noted = self._rows

    def portion(self) -> dict[str, Any]:
        """How many rows were taken since this was last asked."""
        rows, self._noted = self._rows - self._noted, self._rows
        return {"rows": rows}

    def repeat(self, portion: dict[str, Any]) -> tuple[pa.Table | None, bool]:
        """Take as many rows again, if the iterator gives them soon."""
        tables: list[pa.Table] = []
        wanted = int(portion["rows"])
        while wanted and (rows := self.take(wanted, PATIENCE)) is not None:
            tables.append(rows)
            wanted -= rows.num_rows
        return pa.concat_tables(tables) if tables else None, wanted == 0

    def close(self) -> None:
        """Draw no more batches from the iterable."""
        self._next.close()


class _ReadyBatches:
    """Batches that are all there."""

    def __init__(self, batches: Iterable[pa.RecordBatch | pa.Table]) -> None:
        self._batches: Iterator[pa.RecordBatch | pa.Table] = iter(batches)

    def batch(self, wait: float) -> pa.RecordBatch | pa.Table:
        return next(self._batches)

    def close(self) -> None:
        """Nothing to let go of."""


class _DrawnBatches:
    """Batches that a thread draws from an iterator which may let it wait."""

    def __init__(self, batches: Iterable[pa.RecordBatch | pa.Table]) -> None:
        self._batches = batches
        self._queue: queue.Queue[pa.RecordBatch | pa.Table | BaseException] = queue.Queue(AHEAD)
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def batch(self, wait: float) -> pa.RecordBatch | pa.Table:
        if self._thread is None:
            self._thread = threading.Thread(target=self._draw, name="eventide-batches", daemon=True)
            self._thread.start()
        found = self._queue.get(timeout=max(wait, 0.001))
        if isinstance(found, StopIteration | EventideError):
            raise found
        if isinstance(found, BaseException):
            raise InputError(
                f"the iterator of batches failed: {type(found).__name__}: {found}. What came before is safe"
            ) from found
        return found

    def _draw(self) -> None:
        try:
            for batch in self._batches:
                self._put(batch)
                if self._closed.is_set():
                    return
            self._put(StopIteration())
        except BaseException as failure:
            self._put(failure)

    def _put(self, found: pa.RecordBatch | pa.Table | BaseException) -> None:
        while not self._closed.is_set():
            try:
                self._queue.put(found, timeout=0.1)
                return
            except queue.Full:
                continue

    def close(self) -> None:
        """The thread ends with the batch it is waiting for."""
        self._closed.set()


Given: TypeAlias = "DataFrame | pa.Table | pa.RecordBatch | pa.RecordBatchReader | Iterable[pa.RecordBatch | pa.Table]"
"""What a user may make a stream of."""


class SparkRows:
    """A streaming DataFrame as the input of a stream."""

    def __init__(self, frame: DataFrame) -> None:
        refuse_connect(frame, "this DataFrame")
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
        self._started = False

    def opened(self, stream: Stream) -> ArrowRows:
        """The input of the local engine; an iterator is given away only once."""
        if self._once and self._started:
            raise DeclarationError(
                f"the batches of stream {stream.name!r} were given to a query before, and an iterator gives them once: "
                "make the stream anew, or start the queries together with eventide.start(q1, q2)"
            )
        self._started = True
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
