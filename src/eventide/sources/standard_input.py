"""Standard input as a stream: lines of JSON, CSV or text, or Arrow batches, read ahead in a thread.

Laws. Rows are given as they arrive; the input ends when the writer closes its end. What was read from a pipe cannot be
read again, so a position cannot be sought: a restart is refused, unless nothing had been taken or all of it, or the
option `resume` is true, which says that the pipe now brings what comes next.

>>> import io
>>> from eventide.plan.declared.stream import Input, columns
>>> stream = Stream("s", columns("t BIGINT"), time="t", input=Input("stdin", options=(("format", "csv"),)))
>>> given = StandardInput(stream, io.BytesIO(b"t\\n1\\n2\\n"))
>>> given.take(1, 9)["t"].to_pylist(), given.take(9, 9)["t"].to_pylist(), given.take(9, 9), given.ended
([1], [2], None, True)

*Reading ahead.* A thread reads ahead, so that nobody waits for the writer longer than wanted. Pieces come out in the
order in which they went in. At most `AHEAD` pieces wait; then the writer has to.

>>> import io
>>> pipe = Pipe("stream 's'", pieces_of_bytes(io.BytesIO(b"abc")))
>>> while not pipe.at_end:
...     pipe.fill(1)
>>> pipe.read(2), pipe.read(2), pipe.read(2)
(b'abc', b'', b'')
"""

from __future__ import annotations

import os
import queue
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from typing import Any, BinaryIO

import pyarrow as pa

from eventide.errors import DeclarationError, InputError
from eventide.plan.declared.stream import Stream
from eventide.sources.arrow_types import declared_table
from eventide.sources.local_input import CountedInput
from eventide.sources.options import input_of
from eventide.sources.text.reader import LineFormat, TextRows

AHEAD = 64
PIECE = 1 << 20
"""Bytes that are read at once, at most."""


def pieces_of_bytes(source: BinaryIO) -> Iterator[bytes]:
    """Read bytes in pieces as they arrive."""
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
        """Read nothing more from the pipe."""
        self._closed = True


class StandardInput(CountedInput):
    """The rows of a pipe; the option `format` says what they are (by default json)."""

    def __init__(self, stream: Stream, source: BinaryIO | None = None) -> None:
        super().__init__()
        given = input_of(stream)
        self._stream = stream
        self._owner = f"stream {stream.name!r}"
        options = {name.lower(): value for name, value in given.options}
        kind = options.pop("format", "json")
        self._resume = options.pop("resume", "false").lower() == "true"
        if kind not in ("json", "csv", "text", "arrow"):
            raise DeclarationError(
                f"{self._owner} cannot read {kind} from standard input: give the option format as json, csv, text or "
                "arrow"
            )
        if given.path not in (None, "-"):
            raise DeclarationError(f"{self._owner}: standard input has no path, and {given.path!r} was given")
        raw = source if source is not None else _own_standard_input()
        self._text: TextRows | None = None
        if kind == "arrow":
            self._pipe = Pipe(self._owner, pieces_of_arrow(raw))
        else:
            self._pipe = Pipe(self._owner, pieces_of_bytes(raw))
            how = LineFormat(self._owner, stream.columns, kind, options)
            self._text = TextRows(how, "standard input", self._pipe, growing=True)
        self._rest: pa.Table | None = None

    def take(self, max_rows: int, wait: float) -> pa.Table | None:
        """The rows that have arrived."""
        deadline = time.monotonic() + wait
        while not self._ended:
            self._pipe.fill(0.0)
            arrived = self._arrived(max_rows)
            if arrived is not None and arrived.num_rows:
                self._rows += arrived.num_rows
                return arrived
            if arrived is None and self._pipe.at_end:
                # A last line without an end is one, now that nothing can follow it.
                self._ended = self._text is None or not self._text.growing
                if self._text is not None:
                    self._text.finish()
            elif arrived is None:
                rest = deadline - time.monotonic()
                if rest <= 0:
                    break
                self._pipe.fill(rest)
        return None

    def _arrived(self, max_rows: int) -> pa.Table | None:
        if self._text is not None:
            return self._text.read(max_rows)
        if self._rest is None or not self._rest.num_rows:
            batch = self._pipe.next_batch()
            if batch is None:
                return None
            table = pa.Table.from_batches([batch])
            self._rest = declared_table(self._owner, self._stream.columns, table, "standard input")
        arrived, self._rest = self._rest.slice(0, max_rows), self._rest.slice(max_rows)
        return arrived

    def position(self) -> dict[str, Any]:
        """How many rows were taken, and whether that was all."""
        return {"rows": self._rows, "ended": self._ended}

    def seek(self, position: dict[str, Any]) -> None:
        """Accept the position if nothing of it is lost."""
        self._rows = self._noted = int(position["rows"])
        self._ended = bool(position["ended"]) and not self._resume
        if self._rows and not self._ended and not self._resume:
            raise InputError(
                f"{self._owner}: {self._rows} rows were taken from standard input, which cannot be read again: start "
                "with a new checkpoint, read from a file, or give the option resume=true if the pipe brings what "
                "comes next"
            )

    def repeat(self, portion: dict[str, Any]) -> tuple[pa.Table | None, bool]:
        """Nothing: what a pipe has given, it does not give again."""
        return None, not portion["rows"]

    def close(self) -> None:
        """Read no more; the thread that waits for the writer ends with the process."""
        self._ended = True


def _own_standard_input() -> BinaryIO:
    """Standard input, opened a second time.

    A thread that waits inside Python's own `sys.stdin` when the interpreter ends brings it down: it cannot be closed.
    """
    try:
        return open(os.dup(sys.stdin.fileno()), "rb")
    except (OSError, ValueError):
        # No file behind it: a notebook, a test.
        return sys.stdin.buffer
