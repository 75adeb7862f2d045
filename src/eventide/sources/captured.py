"""Changes of a table of PostgreSQL, found by asking again and again for rows with a greater version.

Laws. What is found is kept as a file beside the state of the checkpoint before any of it is read, and streams read
those files. So a round that is run again has the same rows, whatever the table has become; a restart asks from the last
file on; and a new query can read the past. Every version in a file is greater than all in the files before it. A row
without a version is never found, and neither is one that is committed after a row with a greater version was found: the
option `settle` leaves the newest rows alone for so long.

>>> from eventide.plan.declared.stream import columns
>>> given = Input("postgres", "prices", (("url", "postgresql://db/shop"), ("version", "changed"), ("poll", "500 ms")))
>>> prices = Stream("prices", columns("id STRING, price INT, changed TIMESTAMP"), "changed", input=given)
>>> capture_of(prices, Storage.at(".", make=False)).every
0.5
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from eventide.errors import DeclarationError, InputError
from eventide.plan.declared.captured import Captured, captured_by
from eventide.plan.declared.stream import Input, Stream
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.sources.files.files import Files
from eventide.sources.options import input_of
from eventide.storage.storage import Storage

log = logging.getLogger(__name__)

FOLDER = "captured"


def as_files(stream: Stream, storage: Storage) -> Stream:
    """The stream as one that reads what was captured, from a folder that is there."""
    place = f"{storage.where}/{FOLDER}/{stream.name}"
    Storage.at(place)
    return replace(stream, input=Input("parquet", place, max_rows=input_of(stream).max_rows))


def where_read(stream: Stream, storage: Storage) -> Stream:
    """The stream as it is read: by its files, if it is captured."""
    return as_files(stream, storage) if stream.is_captured else stream


class Capture:
    """Asks a table for new versions, at most every so many seconds, and keeps them as files."""

    def __init__(self, stream: Stream, storage: Storage, declared: Captured) -> None:
        self._stream, self._storage = stream, storage
        self._version, self._settle = declared.version, declared.settle
        self.every = declared.every
        self._folder = f"{FOLDER}/{stream.name}"
        self._number: int | None = None
        self._last: Any = None
        self._due = 0.0

    def look(self) -> None:
        """Keep what is new, if it is time to ask; a database that has gone away is asked again later."""
        if time.monotonic() < self._due:
            return
        first = self._number is None
        if first:
            self._continue()
        # Its package is an extra.
        from eventide.sources.postgres_table import read_postgres

        try:
            self._found(read_postgres(self._stream, self._version, self._last, self._settle), first)
        except InputError as error:
            if first:
                raise
            log.warning("asking again in %g s: %s", self.every, error, extra={"event": "changes not asked for"})
        self._due = time.monotonic() + self.every

    def _continue(self) -> None:
        """Go on behind the files that are there."""
        names = sorted(self._storage.list(self._folder))
        self._number = int(names[-1].rpartition("/")[2].partition(".")[0]) + 1 if names else 0
        for name in reversed(names):
            found = pq.read_table(pa.BufferReader(self._storage.read(name)), columns=[self._version])
            if found.num_rows:
                self._last = pc.max(found.column(0)).as_py()
                return

    def _found(self, rows: pa.Table, first: bool) -> None:
        assert self._number is not None
        # The first file is there in any case: it tells the columns.
        if not rows.num_rows and not (first and self._number == 0):
            return
        written = pa.BufferOutputStream()
        pq.write_table(rows.drop_columns([MALFORMED]), written)
        self._storage.write(f"{self._folder}/{self._number:010d}.parquet", written.getvalue())
        self._number += 1
        if rows.num_rows:
            self._last = pc.max(rows.column(self._version)).as_py()


def capture_of(stream: Stream, storage: Storage) -> Capture:
    """What asks the table of a stream."""
    try:
        declared = captured_by(input_of(stream).options)
    except DeclarationError as error:
        raise DeclarationError(f"stream {stream.name!r}: {error}") from error
    return Capture(stream, storage, replace(declared, version=stream.column(declared.version).name))


class Captures:
    """All captures of a program on Spark: asked at the start, then again and again; Spark finds their files."""

    def __init__(self, streams: Iterable[Stream], storage: Storage) -> None:
        self._all = [capture_of(stream, storage) for stream in streams if stream.is_captured]

    @property
    def every(self) -> float | None:
        """Seconds after which the first of them asks again; None where there is none."""
        return min((one.every for one in self._all), default=None)

    def look(self) -> None:
        """Keep what is new of all tables whose time has come."""
        for one in self._all:
            one.look()

    def ask(self, stopping: threading.Event) -> None:
        """Look until the engine stops."""
        while not stopping.wait(self.every):
            self.look()


class CapturedInput(Files):
    """The files that a capture keeps, and the capture: asked while the local engine looks for rows."""

    def __init__(self, stream: Stream, storage: Storage) -> None:
        super().__init__(as_files(stream, storage))
        self._capture = capture_of(stream, storage)

    def _look(self, max_rows: int) -> pa.Table | None:
        self._capture.look()
        return super()._look(max_rows)
