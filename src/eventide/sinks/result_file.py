"""Write results as files of Parquet, JSON lines or CSV: by the driver, or in parts by Spark's tasks.

Law: memory stays bounded however many rows there are, and the bytes of a row are the same wherever it is written.

>>> import io
>>> file = io.BytesIO()
>>> rows = pa.record_batch({"detector": ["A", "B"], "mean": [51.5, 48.0]})
>>> ResultFile("csv", rows.schema).write(file, [rows], "the results of 'speeds'")
>>> print(file.getvalue().decode(), end="")
detector,mean
A,51.5
B,48.0

*Parts.* Each part is written into a file of a folder by one of Spark's tasks. When `write` has returned, every part is
there as a whole. What the outside refuses to a task is told here, in the same words as if the driver had written. A
folder that tasks do not see, since it is on a disk of the driver's machine, is a `NotInTasksError`, and so is a job
that fails: then the driver can write instead.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from eventide.errors import EngineError
from eventide.results.results import Parts
from eventide.sinks.folder import Folder, Writable
from eventide.sinks.lines import LineWriter

CHUNK_ROWS = 2**17
CHUNK_BYTES = 32 * 2**20


class ResultFile:
    """Writes rows of one schema in one format."""

    def __init__(self, format: str, schema: pa.Schema) -> None:
        self.format = format
        self.schema = schema

    @cached_property
    def _lines(self) -> LineWriter:
        return LineWriter(self.format, self.schema)

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


class NotInTasksError(EngineError):
    """Spark's tasks cannot write these results, and may never (`is_lasting`)."""

    def __init__(self, message: str, is_lasting: bool = False) -> None:
        super().__init__(message, is_lasting)
        self.is_lasting = is_lasting

    def __str__(self) -> str:
        return str(self.args[0])


@dataclass(frozen=True)
class PartWriter:
    """What a task is given: the folder to write into, the format, the columns, and what the rows are in words."""

    folder: Folder
    format: str
    schema: pa.Schema
    what: str

    def write(self, parts: Parts) -> None:
        """Have Spark's tasks write all parts."""
        try:
            answers = parts.map(self)
        except EngineError as error:
            raise NotInTasksError(str(error)) from error
        for answer in answers:
            if isinstance(answer, EngineError):
                raise answer
        if {answer for answer in answers if isinstance(answer, str)} - set(self.folder.parts("")):
            raise NotInTasksError(f"Spark's tasks have another disk at {self.folder.where}", is_lasting=True)

    def __call__(self, number: int, batches: Iterator[pa.RecordBatch]) -> str | EngineError:
        """Write a part, in a task; its name, or what was refused."""
        if not self.folder.exists():
            return NotInTasksError(f"Spark's tasks do not see {self.folder.where}", is_lasting=True)
        name = f"part-{number:05d}.{self.format}"
        try:
            with self.folder.writing(name, new=True) as file:
                _result_file(self.format, self.schema).write(file, self._read(batches), self.what)
        except EngineError as error:
            return error
        return name

    def _read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows; what fails here is not the fault of the folder."""
        try:
            yield from batches
        except (OSError, pa.ArrowException) as error:
            raise EngineError(f"cannot read {self.what}: {error}") from error


def can_be_given(folder: Folder) -> bool:
    """Whether another process can be told of a folder: Arrow's own file systems can be pickled.

    >>> from pyarrow import fs
    >>> from eventide.sinks.folder import folder_at
    >>> can_be_given(folder_at("out")), can_be_given(folder_at("out", fs._MockFileSystem()))
    (True, False)
    """
    try:
        pickle.dumps(folder)
    except (TypeError, AttributeError, NotImplementedError, pickle.PicklingError, pa.ArrowException):
        return False
    return True


@lru_cache(maxsize=8)
def _result_file(format: str, schema: pa.Schema) -> ResultFile:
    """One for each worker process, which Spark uses again and again: to plan the lines takes longer than some parts."""
    return ResultFile(format, schema)
