"""Arrow batches from Python as the input of a stream: one batch is one round.

Law: rows come in the order of the batches, each batch as a round of its own, so that time moves as it would have moved
while they arrived. An iterator is drawn from in a thread of its own: while it has nothing, the clock goes on. The
position is the number of rows taken; to continue from it the same rows are passed over.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from eventide.errors import EventideError, InputError
from eventide.plan.declared.stream import Stream
from eventide.sources.batches import Batches

AHEAD = 2
"""Batches that are drawn before they are asked for."""


class ArrowRows:
    """The batches of a collection, or of an iterator that may let one wait."""

    def __init__(self, stream: Stream, batches: Iterable[pa.RecordBatch | pa.Table], waits: bool) -> None:
        self._stream = stream
        self._next = _Drawn(batches) if waits else _AtHand(batches)
        self._rest: Batches | None = None
        self._rows = 0
        self.ended = False

    @property
    def caught_up(self) -> bool:
        """What an iterator has now cannot be told from what it will have."""
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

    def close(self) -> None:
        """Draw no more."""
        self._next.close()


class _AtHand:
    """Batches that are all there."""

    def __init__(self, batches: Iterable[pa.RecordBatch | pa.Table]) -> None:
        self._batches: Iterator[pa.RecordBatch | pa.Table] = iter(batches)

    def batch(self, wait: float) -> pa.RecordBatch | pa.Table:
        return next(self._batches)

    def close(self) -> None:
        """Nothing to let go of."""


class _Drawn:
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
