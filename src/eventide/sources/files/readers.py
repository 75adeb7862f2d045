"""Read one file from a given place on: tables that know their schema (Parquet, ORC, Arrow), and text.

*Tables.* `read` gives the next rows in file order, `offset` is the number of rows given so far; a reader opened with
that offset gives the rest. Only the declared columns are read from Parquet and ORC.

*Text.* Files of CSV, JSON or plain lines, packed or not, are read from any byte on.

>>> import os, tempfile
>>> from eventide.plan.expressions.columns import columns
>>> path = os.path.join(tempfile.mkdtemp(), "a.json")
>>> with open(path, "w") as file:
...     _ = file.write('{"t": 1}\\n{"t": 2}\\n')
>>> how = LineFormat("stream 's'", columns("t BIGINT"), "json")
>>> first = TextFile(how, path, 0)
>>> first.read(1)["t"].to_pylist(), TextFile(how, path, first.offset).read(9)["t"].to_pylist()
([1], [2])
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import pyarrow as pa

from eventide.errors import InputError
from eventide.plan.declared.stream import Stream
from eventide.sources.arrow_types import declared_table
from eventide.sources.text.lines import opened
from eventide.sources.text.reader import LineFormat, TextRows

BATCH = 131_072


class FileReader(Protocol):
    """Reads one file forward, from any place on."""

    @property
    def offset(self) -> int:
        """How far it was read: rows, or bytes of lines."""
        ...

    def read(self, max_rows: int) -> pa.Table | None:
        """The next rows, or None at the end."""
        ...

    def close(self) -> None:
        """Let go of the file."""
        ...


class TableFile:
    """A file of Arrow batches, of which the first `offset` rows were already read."""

    def __init__(self, stream: Stream, path: str, kind: str, offset: int) -> None:
        self._owner = f"stream {stream.name!r}"
        self._columns = stream.columns
        self._path = path
        self._kind = kind
        self._rest: pa.Table | None = None
        self._offset = offset
        try:
            self._tables = OPENERS[kind](path, [column.name for column in stream.columns], offset)
        except (OSError, pa.ArrowException) as failure:
            raise self._unreadable(failure) from failure

    @property
    def offset(self) -> int:
        """Rows read so far."""
        return self._offset

    def _unreadable(self, failure: Exception) -> InputError:
        return InputError(f"{self._owner}: {self._path} cannot be read as {self._kind}: {failure}")

    def read(self, max_rows: int) -> pa.Table | None:
        """The next rows, or None at the end."""
        while self._rest is None or self._rest.num_rows == 0:
            try:
                table = next(self._tables, None)
            except (OSError, pa.ArrowException) as failure:
                raise self._unreadable(failure) from failure
            if table is None:
                return None
            self._rest = declared_table(self._owner, self._columns, table, self._path)
        head = self._rest.slice(0, max_rows)
        self._rest = self._rest.slice(max_rows)
        self._offset += head.num_rows
        return head

    def close(self) -> None:
        """The file is closed when its iterator is dropped."""
        self._tables = iter(())


def _parquet(path: str, names: list[str], offset: int) -> Iterator[pa.Table]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        groups: list[int] = []
        for number in range(file.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            if not groups and offset >= rows:
                offset -= rows
            else:
                groups.append(number)
        wanted = _spelled(names, file.schema_arrow.names)
        instants = {column.path for column in map(file.schema.column, range(len(file.schema))) if _is_int96(column)}
        for batch in file.iter_batches(BATCH, row_groups=groups, columns=wanted):
            yield _with_zone(pa.Table.from_batches([batch]), instants).slice(min(offset, batch.num_rows))
            offset -= min(offset, batch.num_rows)


def _is_int96(column: Any) -> bool:
    return bool(column.physical_type == "INT96")


def _with_zone(table: pa.Table, instants: set[str]) -> pa.Table:
    """Spark writes instants as INT96 unless told otherwise, and these do not say that they are UTC."""
    for place, name in enumerate(table.column_names):
        if name in instants:
            table = table.set_column(place, name, table.column(name).cast(pa.timestamp("us", "UTC")))
    return table


def _orc(path: str, names: list[str], offset: int) -> Iterator[pa.Table]:
    from pyarrow import orc

    file = orc.ORCFile(path)
    wanted = _spelled(names, file.schema.names)
    for number in range(file.nstripes):
        table = pa.Table.from_batches([file.read_stripe(number, columns=wanted)])
        yield table.slice(min(offset, table.num_rows))
        offset -= min(offset, table.num_rows)


def _arrow(path: str, names: list[str], offset: int) -> Iterator[pa.Table]:
    with pa.memory_map(path) as source:
        for batch in _arrow_batches(source):
            yield pa.Table.from_batches([batch]).slice(min(offset, batch.num_rows))
            offset -= min(offset, batch.num_rows)


def _arrow_batches(source: Any) -> Iterator[pa.RecordBatch]:
    """The batches of an Arrow file or of a stream of Arrow batches that was saved as a file."""
    if source.read(6) == b"ARROW1":
        file = pa.ipc.open_file(source)
        for number in range(file.num_record_batches):
            yield file.get_batch(number)
        return
    source.seek(0)
    yield from pa.ipc.open_stream(source)


def _spelled(names: list[str], there: list[str]) -> list[str]:
    """The declared names as the file spells them; the rest is left unread, and missing ones are an error later."""
    wanted = {name.lower() for name in names}
    return [name for name in there if name.lower() in wanted] or there[:1]


OPENERS = {"parquet": _parquet, "orc": _orc, "arrow": _arrow}


class TextFile:
    """A file of lines, of which the first `offset` bytes were already read."""

    def __init__(self, how: LineFormat, path: str, offset: int) -> None:
        self._how = how
        self._path = path
        try:
            self._rows = TextRows(how, path, opened(path))
            if offset:
                self._rows.read_header()
                names = self._rows.names
                self._rows.close()
                self._rows = TextRows(how, path, opened(path))
                self._rows.skip_to(offset, names)
        except OSError as failure:
            raise self._unreadable(failure) from failure

    @property
    def offset(self) -> int:
        """Bytes read so far."""
        return self._rows.offset

    def read(self, max_rows: int) -> pa.Table | None:
        """The rows of the next lines, or None at the end."""
        try:
            return self._rows.read(max_rows)
        except (OSError, EOFError) as failure:
            raise self._unreadable(failure) from failure

    def _unreadable(self, failure: Exception) -> InputError:
        return InputError(f"{self._how.owner}: {self._path} cannot be read as {self._how.kind}: {failure}")

    def close(self) -> None:
        """Let go of the file."""
        self._rows.close()
