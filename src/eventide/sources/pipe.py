"""What comes through a pipe, read ahead in a thread, so that nobody has to wait for the writer longer than he wants.

Law: pieces come out in the order in which they went in. At most `AHEAD` pieces wait; then the writer has to.

>>> import io
>>> pipe = Pipe("stream 's'", pieces_of_bytes(io.BytesIO(b"abc")))
>>> while not pipe.at_end:
...     pipe.fill(1)
>>> pipe.read(2), pipe.read(2), pipe.read(2)
(b'abc', b'', b'')
"""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from eventide.errors import InputError

AHEAD = 64
PIECE = 1 << 20
"""Bytes that are read at once, at most."""


def pieces_of_bytes(source: BinaryIO) -> Iterator[bytes]:
    """Bytes as they arrive."""
    read = getattr(source, "read1", source.read)
    while piece := read(PIECE):
        yield piece


def pieces_of_arrow(source: BinaryIO) -> Iterator[pa.RecordBatch]:
    """Batches of an Arrow stream as they arrive."""
    with pa.ipc.open_stream(source) as batches:
        yield from batches


class Pipe:
    """Pieces of one kind. `fill` moves what has arrived to where `read` and `next_batch` find it."""

    def __init__(self, owner: str, pieces: Iterator[Any]) -> None:
        self._owner = owner
        self._waiting: queue.Queue[Any] = queue.Queue(AHEAD)
        self._arrived: deque[Any] = deque()
        self._closed = False
        threading.Thread(target=self._pump, args=(pieces,), name="standard input", daemon=True).start()

    def _pump(self, pieces: Iterator[Any]) -> None:
        try:
            for piece in pieces:
                self._waiting.put(piece)
            self._waiting.put(None)
        except Exception as failure:
            self._waiting.put(failure)

    @property
    def at_end(self) -> bool:
        """Whether the writer has closed its end and everything has arrived (it may not have been read yet)."""
        return self._closed

    def fill(self, wait: float) -> None:
        """Take over what has arrived; if nothing has, wait so many seconds for the first piece."""
        while not self._closed:
            try:
                piece = self._waiting.get(timeout=wait) if wait > 0 else self._waiting.get_nowait()
            except queue.Empty:
                return
            wait = 0.0
            if piece is None:
                self._closed = True
            elif isinstance(piece, Exception):
                self._closed = True
                raise InputError(f"{self._owner}: standard input cannot be read: {piece}") from piece
            else:
                self._arrived.append(piece)

    def read(self, size: int = -1, /) -> bytes:
        """The bytes that have arrived, however many; none if there are none yet."""
        joined = b"".join(self._arrived)
        self._arrived.clear()
        return joined

    def next_batch(self) -> pa.RecordBatch | None:
        """The next batch that has arrived."""
        return self._arrived.popleft() if self._arrived else None

    def close(self) -> None:
        """Nothing more is read."""
        self._closed = True
