"""Results as files in a directory: Parquet, JSON lines or CSV, for each query and round that gave rows.

Law: the file of query `speeds` and round 42 is `speeds-0000000042.parquet`. It appears whole or not at all; the same
round emitted again takes its place, or takes it away when there are no rows any more. Memory stays bounded however many
rows a round gives. The results of one query are `speeds-*.parquet`: nothing of another query matches that.

Many rows that are on the cluster do not come here: Spark's tasks write them, each its part, and
`speeds-0000000042.parquet` is a folder with `part-00000.parquet` and so on. Its rows are those that the file would
have, in the same order, and in text the same lines. Where tasks cannot reach the directory, this process writes the
file.

>>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
>>> from eventide.results.results import Results
>>> out = tempfile.mkdtemp()
>>> sink = Directory(out)
>>> sink.emit(Results.of_table("speeds", 42, pa.table({"detector": ["A"], "mean": [51.5]})))
>>> os.listdir(out), pq.read_table(out).to_pylist()
(['speeds-0000000042.parquet'], [{'detector': 'A', 'mean': 51.5}])
>>> sink.rewind("speeds", last=41)
>>> os.listdir(out)
[]

*Files* are written by the driver, or in parts by Spark's tasks. The bytes of a row are the same wherever it is written.

>>> import io
>>> file = io.BytesIO()
>>> rows = pa.record_batch({"detector": ["A", "B"], "mean": [51.5, 48.0]})
>>> ResultFile("csv", rows.schema).write(file, [rows], "the results of 'speeds'")
>>> print(file.getvalue().decode(), end="")
detector,mean
A,51.5
B,48.0

*Parts.* Each part is written into a file of a folder by one of Spark's tasks. When `write` has returned, every part is
there as a whole. What the outside refuses to a task is an error here, with the same words as if the driver had written.
A folder that tasks do not see, since it is on a disk of the driver's machine, is a `NotInTasksError`, and so is a job
that fails: then the driver can write instead.
"""

from __future__ import annotations

import logging
import os
import pickle
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING
from urllib.parse import quote, unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from eventide.errors import DeclarationError, EngineError
from eventide.results.results import Parts, Results
from eventide.sinks.folder import Folder, Writable, folder_at
from eventide.sinks.lines import LineWriter
from eventide.sinks.sink import FORMATS, Owner

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem


log = logging.getLogger(__name__)

OURS = re.compile(
    rf"(?P<dot>\.)?(?P<query>[^-]*)-(?P<round>\d{{10,}})\.(?:{'|'.join(FORMATS)})(?(dot)(?:\.[0-9a-f]+)?\.tmp)"
)
LARGE = 100_000
"""Above so many rows, results that are on the cluster are written there: below, starting tasks takes longer."""

MOST_FAILURES = 3
"""After so many rounds in a row that tasks could not write, it is not tried again."""
MARK = re.compile(r"_(?P<query>[^-]*)-(?P<id>[0-9a-f]+)-(?P<checkpoint>.*)\.owner")
MOST_NAMED = 120
"""Letters of a checkpoint's path in the name of a mark; names of files have an end."""


class Directory:
    """Writes results as files into a directory: a local path, or the URI of any file system that Arrow reaches.

    Law: the results of a query and round appear as a whole, and replace what was there of that round. Several queries
    can share a directory; no files but those named as above are ever touched.

    `format` is `parquet`, `json` (one object a line) or `csv` (with a header). With `filesystem` (of `pyarrow.fs`),
    `path` is a path there. Results of more than `large` rows that are on the cluster are written by Spark's tasks.

    >>> import tempfile
    >>> import pyarrow as pa
    >>> out = tempfile.mkdtemp()
    >>> Directory(out, "csv").emit(Results.of_table("speeds", 3, pa.table({"mean": [51.5]})))
    >>> os.listdir(out)
    ['speeds-0000000003.csv']
    >>> Directory("out", format="avro")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: results are not written as 'avro': choose parquet, json or csv
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        format: str = "parquet",
        filesystem: FileSystem | None = None,
        *,
        large: int = LARGE,
    ) -> None:
        if format not in FORMATS:
            raise DeclarationError(f"results are not written as {format!r}: choose parquet, json or csv")
        self.format = format
        self.large = large
        self._folder = folder_at(path, filesystem)
        is_far = filesystem is not None and filesystem.type_name != "local"
        self.place: str | None = None if is_far else self._folder.where
        """The directory by a name that another process knows, too."""
        self._failures = 0
        self._made = False
        self._newest: dict[str, int] = {}
        self._files: dict[str, ResultFile] = {}

    def emit(self, results: Results) -> None:
        """Write the file, or the parts, of this query and round, in place of older ones."""
        self._make()
        name = f"{_prefix(results.query)}{results.round:010d}.{self.format}"
        # Beyond the newest round there is nothing to replace. In an object store already looking for it takes a while.
        new = results.round > self._newest.get(results.query, results.round)
        if results.rows:
            if not self._gather(name, new, results):
                with self._folder.writing(name, new) as file:
                    self._file_of(results).write(file, results.batches(), _named(results))
            if results.query in self._newest:
                self._newest[results.query] = max(results.round, self._newest[results.query])
        elif not new:
            self._folder.remove(name)

    def rewind(self, query: str, last: int) -> None:
        """Remove the files of later rounds, and what a killed process has left unfinished."""
        self._make()
        for name in self._folder.names():
            ours = OURS.fullmatch(name)
            if ours and f"{ours['query']}-" == _prefix(query) and (ours["dot"] or int(ours["round"]) > last):
                self._folder.remove(name)
        self._newest[query] = last

    @property
    def where(self) -> str:
        """The directory, for messages."""
        return self._folder.where

    def holds(self, query: str) -> bool:
        """Whether there are results of a query."""
        found = (OURS.fullmatch(name) for name in self._folder.names())
        return any(ours and f"{ours['query']}-" == _prefix(query) and not ours["dot"] for ours in found)

    def missing(self, query: str, rounds: Iterable[int]) -> dict[int, str]:
        """The names of files that are not there, by round, of rounds that have written some.

        >>> import tempfile
        >>> Directory(tempfile.mkdtemp(), "csv").missing("speeds", [42])
        {42: 'speeds-0000000042.csv'}
        """
        found = (OURS.fullmatch(name) for name in self._folder.names())
        there = {int(o["round"]) for o in found if o and not o["dot"] and f"{o['query']}-" == _prefix(query)}
        return {n: f"{_prefix(query)}{n:010d}.{self.format}" for n in rounds if n not in there}

    def owner_of(self, query: str) -> Owner | None:
        """Whose the results of a query are; None where nobody has claimed them.

        >>> import tempfile
        >>> sink = Directory(tempfile.mkdtemp())
        >>> sink.claim("speeds", Owner("7f3a"))
        >>> sink.owner_of("speeds"), sink.owner_of("volumes")
        (Owner(id='7f3a', checkpoint=None), None)
        """
        marks = (MARK.fullmatch(name) for name in self._folder.names())
        for mark in marks:
            if mark and f"{mark['query']}-" == _prefix(query):
                return Owner(mark["id"], unquote(mark["checkpoint"]) or None)
        return None

    def claim(self, query: str, owner: Owner) -> None:
        """Mark the results of a query as those of an owner, and of no other."""
        self._make()
        mine = f"_{_prefix(query)}{owner.id}-{quote(owner.checkpoint or '', safe='')[-MOST_NAMED:]}.owner"
        marks = [mark for name in self._folder.names() if (mark := MARK.fullmatch(name))]
        if not any(mark.string == mine for mark in marks):
            with self._folder.writing(mine) as file:
                file.write(b"The files of this query in here belong to the checkpoint that this name tells.\n")
        for mark in marks:
            if f"{mark['query']}-" == _prefix(query) and mark.string != mine:
                self._folder.remove(mark.string)

    def close(self) -> None:
        """Nothing is left to do: every round was complete when `emit` returned."""
        self._files.clear()

    def _make(self) -> None:
        if not self._made:
            self._folder.make()
            self._made = True

    def _gather(self, name: str, new: bool, results: Results) -> bool:
        """Have the results written where they are; False where that cannot be."""
        if results.parts is None or results.rows <= self.large:
            return False
        if self._failures == 0 and not can_be_given(self._folder):
            self._failures = MOST_FAILURES
        if self._failures >= MOST_FAILURES:
            return False
        try:
            with self._folder.gathering(name, new) as folder:
                writer = PartWriter(folder, self.format, results.schema, _named(results))
                writer.write(results.parts)
        except NotInTasksError as error:
            # Whatever it is, a worker that died or one without Eventide: if it is no accident, the driver tells it.
            log.warning(
                "this process writes %s itself: %s",
                _named(results),
                error,
                extra={"event": "results written by the driver"},
            )
            self._failures = MOST_FAILURES if error.is_lasting else self._failures + 1
            return False
        self._failures = 0
        return True

    def _file_of(self, results: Results) -> ResultFile:
        found = self._files.get(results.query)
        if found is None or found.schema != results.schema:
            found = self._files[results.query] = ResultFile(self.format, results.schema)
        return found


def _named(results: Results) -> str:
    return f"the results of {results.query!r} in round {results.round}"


def _prefix(query: str) -> str:
    """How the names of a query's files begin. The hyphen at the end is the only one, so no two queries are mixed up.

    >>> _prefix("speeds"), _prefix("a-b/c"), _prefix("_x")
    ('speeds-', 'a%2Db%2Fc-', '%5Fx-')
    """
    name = quote(query, safe="").replace("-", "%2D")
    hidden = {"_": "%5F", ".": "%2E"}
    return hidden.get(name[:1], name[:1]) + name[1:] + "-"


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
        """Have Spark's tasks write all parts of the results."""
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
    """Whether a folder can be sent to another process: Arrow's own file systems can be pickled.

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
