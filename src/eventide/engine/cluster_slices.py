"""Slices on the cluster: Parquet files that Spark wrote, merged by Spark when windows close.

Law: the same statements over the same slices as on the driver, and so the same answers. Only what steers comes to the
driver: which panes a file holds and how many rows went into it. Answers stay in files too, and are read part by part.

A store is a value, as on the driver.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.backend import Backend
from eventide.engine.checkpoint import Checkpoint
from eventide.engine.record import StateFile
from eventide.engine.taken import Answer
from eventide.errors import DataFaultError
from eventide.eventtime.instant import NEVER, Instants
from eventide.plan.bound import Bound
from eventide.plan.broken_values import careful_values
from eventide.plan.merge_text import LISTED, compact_text, in_order, merge_text
from eventide.plan.slice_columns import slice_ddl

if TYPE_CHECKING:
    import pyarrow.parquet as pq

MOST_CHUNKS = 32
"""More chunks than this are merged into one: each is a listing, an opening and a task for Spark."""

BATCH_ROWS = 65_536


@dataclass(frozen=True)
class Chunk:
    """What one round, or a merge of several, left in files: its panes, and how many rows went into it."""

    files: tuple[StateFile, ...]
    panes: tuple[int, ...]
    rows: int

    @property
    def bytes(self) -> int:
        """The size of the files."""
        return sum(file.bytes for file in self.files)

    def with_more(self, other: Chunk) -> Chunk:
        """Both, as one."""
        panes = tuple(sorted({*self.panes, *other.panes}))
        return Chunk((*self.files, *other.files), panes, self.rows + other.rows)

    def saved(self) -> list[Any]:
        """Plain data for the round record."""
        return [[file.name for file in self.files], list(self.panes), self.rows]


class Cluster:
    """Writes and reads the Parquet files of a checkpoint, with Spark."""

    def __init__(self, backend: Backend, checkpoint: Checkpoint) -> None:
        self.backend = backend
        self.checkpoint = checkpoint
        self._storage = checkpoint.storage
        self._stored = 0

    def store_round(self, query: Bound, sql: str, round: int) -> Chunk:
        """Reduce the rows of a round into files."""
        folder = self._folder(query, round)
        self.backend.store(sql, self._storage.uri(folder))
        return self._chunk(query, folder)

    def store_over(self, query: Bound, sql: str, chunks: Sequence[Chunk], round: int) -> Chunk:
        """Make slices of slices."""
        folder = self._folder(query, round)
        self._run(query, sql, chunks, {}, folder)
        return self._chunk(query, folder)

    def moved(self, query: Bound, table: pa.Table, round: int) -> Chunk:
        """Put slices of the driver into a file."""
        import pyarrow.parquet as pq

        sink = pa.BufferOutputStream()
        pq.write_table(table, sink, compression="zstd", coerce_timestamps="us")
        folder = self._folder(query, round)
        self._storage.write(f"{folder}/moved.parquet", sink.getvalue())
        return self._chunk(query, folder)

    def answer(self, query: Bound, chunks: Sequence[Chunk], windows: pa.Table, changed: Chunk | None) -> Answer:
        """The results of windows, in files that are gone after the round."""
        folder = self._folder_of_answer(query)
        lossy = False
        try:
            self._merge(query, chunks, windows, changed, folder)
        except DataFaultError:
            lossy = True
            self._merge(careful_values(query), chunks, windows, changed, folder)
        files = self._adopted(folder)
        rows = sum(self._opened(file).metadata.num_rows for file in files)
        return Answer(rows, lambda: self._tables(files), lossy)

    def _merge(
        self, query: Bound, chunks: Sequence[Chunk], windows: pa.Table, changed: Chunk | None, folder: str
    ) -> None:
        text = merge_text(query, "slices", "windows", None if changed is None else "changed")
        # To sort what nobody asked to be in order would be one shuffle more.
        text += in_order(query) if query.query.order else ""
        self._run(query, text, chunks, {"windows": windows.rename_columns(LISTED)}, folder, changed)

    def table(self, chunks: Sequence[Chunk]) -> pa.Table | None:
        """All slices, on the driver."""
        tables = [part for chunk in chunks for part in self._tables(chunk.files)]
        return pa.concat_tables(tables) if tables else None

    def _run(
        self,
        query: Bound,
        sql: str,
        chunks: Sequence[Chunk],
        tables: dict[str, pa.Table],
        folder: str,
        changed: Chunk | None = None,
    ) -> None:
        uri = self._storage.uri
        named = {"slices": chunks} if changed is None else {"slices": chunks, "changed": [changed]}
        files = {
            name: ([uri(file.name) for chunk in given for file in chunk.files], slice_ddl(query))
            for name, given in named.items()
        }
        self.backend.store_over(sql, files, tables, uri(folder))

    def _folder(self, query: Bound, round: int) -> str:
        self._stored += 1
        return f"slices/{query.query.name}/{round:010d}-{self._stored}"

    def _folder_of_answer(self, query: Bound) -> str:
        self._stored += 1
        return f"slices/_answers/{query.query.name}-{self._stored}"

    def _adopted(self, folder: str) -> tuple[StateFile, ...]:
        return self.checkpoint.adopt(folder)

    def _chunk(self, query: Bound, folder: str) -> Chunk:
        files = self._adopted(folder)
        columns = ["__pane"] if query.keeps_rows else ["__pane", "__n"]
        panes: set[int] = set()
        rows = 0
        for file in files:
            for batch in self._opened(file).iter_batches(BATCH_ROWS, columns=columns):
                panes.update(pc.unique(batch.column("__pane")).to_pylist())
                rows += batch.num_rows if query.keeps_rows else pc.sum(batch.column("__n")).as_py()
        return Chunk(tuple(file for file in files if self._opened(file).metadata.num_rows), tuple(sorted(panes)), rows)

    def _tables(self, files: Sequence[StateFile]) -> Iterator[pa.Table]:
        for file in files:
            for batch in self._opened(file).iter_batches(BATCH_ROWS):
                yield pa.Table.from_batches([batch])

    def _opened(self, file: StateFile) -> pq.ParquetFile:
        # Not loaded with the engine: on one machine there are no such files.
        import pyarrow.parquet as pq

        return pq.ParquetFile(pa.BufferReader(self._storage.read(file.name)))


@dataclass(frozen=True)
class ClusterSlices:
    """What one query keeps, on the cluster."""

    query: Bound
    cluster: Cluster
    chunks: tuple[Chunk, ...] = ()
    round: int = 0
    placement = "cluster"

    @property
    def rows(self) -> int:
        """Rows that went into the slices."""
        return sum(chunk.rows for chunk in self.chunks)

    @property
    def bytes(self) -> int:
        """The size of the files."""
        return sum(chunk.bytes for chunk in self.chunks)

    @property
    def panes(self) -> Instants:
        """The panes that hold something, ascending."""
        return np.unique(np.array([pane for chunk in self.chunks for pane in chunk.panes], dtype=np.int64))

    def added(self, chunk: Chunk) -> ClusterSlices:
        """With what a round left."""
        return replace(self, chunks=(*self.chunks, chunk)) if chunk.files else self

    def closing(self, bound: int) -> ClusterSlices:
        """The same, in fewer files if there are many."""
        if len(self.chunks) <= MOST_CHUNKS:
            return self
        sql = "SELECT * FROM slices" if self.query.keeps_rows else compact_text(self.query, "slices")
        return replace(self, chunks=(self.cluster.store_over(self.query, sql, self.chunks, self.round),))

    def freed(self, needed: int) -> ClusterSlices:
        """Without the files in which every pane is before `needed`."""
        if needed == NEVER:
            return self
        return replace(self, chunks=tuple(chunk for chunk in self.chunks if chunk.panes[-1] >= needed))

    def answer(self, windows: pa.Table, changed: Chunk | None = None) -> Answer:
        """The results of windows, listed as pairs of pane and window; with `changed`, of the groups in it alone."""
        wanted = set(pc.unique(windows.column("pane")).to_pylist())
        chunks = [chunk for chunk in self.chunks if not wanted.isdisjoint(chunk.panes)]
        return self.cluster.answer(self.query, chunks, windows, changed)

    def without(self, chunk: Chunk, edge: int) -> Chunk:
        """A chunk without the panes before `edge`."""
        sql = f"SELECT * FROM slices WHERE __pane >= {edge}"
        return self.cluster.store_over(self.query, sql, [chunk], self.round)
