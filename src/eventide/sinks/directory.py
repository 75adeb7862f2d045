"""Results as files in a directory: Parquet, JSON lines or CSV, one file for each query and round that gave rows.

Law: the file of query `speeds` and round 42 is `speeds-0000000042.parquet`. It appears whole or not at all; the same
round emitted again takes its place, or takes it away when there are no rows any more. Memory stays bounded however many
rows a round gives. The results of one query are the files `speeds-*.parquet`: no other query's files match that.

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
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from eventide.errors import DeclarationError, EngineError
from eventide.results.results import Results
from eventide.sinks.folder import Writable, folder_at
from eventide.sinks.formats import FORMATS
from eventide.sinks.lines import Lines

OURS = re.compile(rf"(?P<dot>\.)?(?P<query>[^-]*)-(?P<round>\d{{10,}})\.(?:{'|'.join(FORMATS)})(?(dot)\.tmp)")
MARK = re.compile(r"_(?P<query>[^-]*)-(?P<id>[0-9a-f]+)-(?P<checkpoint>.*)\.owner")
MOST_NAMED = 120
"""Letters of a checkpoint's path in the name of a mark; names of files have an end."""

CHUNK_ROWS = 2**17
CHUNK_BYTES = 32 * 2**20


@dataclass(frozen=True)
class Owner:
    """Whose results these are: the id of a checkpoint, and where it was, if it was to stay."""

    id: str
    checkpoint: str | None = None


class Directory:
    """Writes results into the directory at `path`: a local path or the URI of any file system that Arrow reaches.

    `format` is `parquet`, `json` (one object a line) or `csv` (with a header). With `filesystem` (of `pyarrow.fs`),
    `path` is a path there. Several queries can share a directory. In it, only files that are named as above are ever
    touched.

    >>> Directory("out", format="avro")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: results are not written as 'avro': choose parquet, json or csv
    """

    def __init__(self, path: str | os.PathLike[str], format: str = "parquet", filesystem: Any | None = None) -> None:
        if format not in FORMATS:
            raise DeclarationError(f"results are not written as {format!r}: choose parquet, json or csv")
        self.format = format
        self._folder = folder_at(path, filesystem)
        self._made = False
        self._newest: dict[str, int] = {}
        self._lines: dict[str, tuple[pa.Schema, Lines]] = {}

    def emit(self, results: Results) -> None:
        """Write the file of this query and round, in place of an older one."""
        self._make()
        name = f"{_prefix(results.query)}{results.round:010d}.{self.format}"
        if results.rows:
            with self._folder.writing(name) as file:
                self._fill(file, results)
            if results.query in self._newest:
                self._newest[results.query] = max(results.round, self._newest[results.query])
        # A round beyond the newest file has none to remove. In an object store already looking for one takes a while.
        elif results.round <= self._newest.get(results.query, results.round):
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
        self._lines.clear()

    def _make(self) -> None:
        if not self._made:
            self._folder.make()
            self._made = True

    def _fill(self, file: Writable, results: Results) -> None:
        chunks = in_chunks(results.batches(), results.schema)
        if self.format == "parquet":
            _write_parquet(file, chunks, results.schema)
            return
        try:
            lines = self._lines_of(results)
            file.write(lines.head.encode())
            for chunk in chunks:
                file.write(lines.of(chunk))
        except duckdb.Error as error:
            self._lines.pop(results.query, None)
            raise EngineError(
                f"cannot write the results of {results.query!r} in round {results.round} as {self.format}: "
                f"{str(error).splitlines()[0]}. Cast that column to another type, or choose parquet"
            ) from error

    def _lines_of(self, results: Results) -> Lines:
        schema, lines = self._lines.get(results.query, (None, None))
        if lines is None or results.schema != schema:
            lines = Lines(self.format, results.schema)
            self._lines[results.query] = results.schema, lines
        return lines


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


def _prefix(query: str) -> str:
    """How the names of a query's files begin. The hyphen at the end is the only one, so no two queries are mixed up.

    >>> _prefix("speeds"), _prefix("a-b/c"), _prefix("_x")
    ('speeds-', 'a%2Db%2Fc-', '%5Fx-')
    """
    name = quote(query, safe="").replace("-", "%2D")
    hidden = {"_": "%5F", ".": "%2E"}
    return hidden.get(name[:1], name[:1]) + name[1:] + "-"
