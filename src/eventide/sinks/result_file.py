"""The rows of results as a file of Parquet, JSON lines or CSV, whoever writes it: the driver, or one of Spark's tasks.

Law: memory stays bounded however many rows there are, and the bytes of a row are the same wherever it is written.

>>> import io
>>> file = io.BytesIO()
>>> rows = pa.record_batch({"detector": ["A", "B"], "mean": [51.5, 48.0]})
>>> ResultFile("csv", rows.schema).write(file, [rows], "the results of 'speeds'")
>>> print(file.getvalue().decode(), end="")
detector,mean
A,51.5
B,48.0
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from eventide.errors import EngineError
from eventide.sinks.folder import Writable
from eventide.sinks.lines import Lines

CHUNK_ROWS = 2**17
CHUNK_BYTES = 32 * 2**20


class ResultFile:
    """Writes rows of one schema in one format."""

    def __init__(self, format: str, schema: pa.Schema) -> None:
        self.format = format
        self.schema = schema

    @cached_property
    def _lines(self) -> Lines:
        return Lines(self.format, self.schema)

    def write(self, file: Writable, batches: Iterable[pa.RecordBatch], what: str) -> None:
        """Fill a file with all of these rows; an error says what they are."""
        chunks = in_chunks(batches, self.schema)
        if self.format == "parquet":
            _write_parquet(file, chunks, self.schema)
            return
        try:
            file.write(self._lines.head.encode())
            for chunk in chunks:
                file.write(self._lines.of(chunk))
        except duckdb.Error as error:
            self.__dict__.pop("_lines", None)
            raise EngineError(
                f"cannot write {what} as {self.format}: {str(error).splitlines()[0]}. Cast that column to another "
                "type, or choose parquet"
            ) from error


def in_chunks(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.Table]:
    """The same rows in pieces of a good size: neither as small as batches may be, nor more than fits in memory.

    >>> batch = pa.record_batch({"a": list(range(1000))})
    >>> [chunk.num_rows for chunk in in_chunks([batch] * 200, batch.schema)]
    [132000, 68000]
    """
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        # A wide row may take so much that fewer of them make a chunk.
        step = min(CHUNK_ROWS, 1 + batch.num_rows * CHUNK_BYTES // max(1, batch.nbytes))
        for start in range(0, batch.num_rows, step):
            piece = batch.slice(start, step)
            held.append(piece)
            rows, size = rows + piece.num_rows, size + piece.nbytes
            if rows >= CHUNK_ROWS or size >= CHUNK_BYTES:
                yield pa.Table.from_batches(held, schema)
                held, rows, size = [], 0, 0
    if held:
        yield pa.Table.from_batches(held, schema)


def _write_parquet(file: Writable, chunks: Iterable[pa.Table], schema: pa.Schema) -> None:
    writer = pq.ParquetWriter(file, schema)
    try:
        for chunk in chunks:
            writer.write_table(chunk, row_group_size=CHUNK_ROWS)
        writer.close()
    except BaseException:
        # Otherwise the writer would try once more to finish the file, when it is forgotten.
        writer.is_open = False
        raise
