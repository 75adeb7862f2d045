"""The files of relations in a checkpoint: how rows get there, how they come back, and what they are called.

Laws. A file is written once and never changed. A name is used again only for a round that is run again, whose files
nobody has named. Where there is a cluster, files are Parquet, which Spark and the driver read alike; without one they
are Arrow's own, which cost less.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from uuid import uuid4
from weakref import WeakKeyDictionary

import pyarrow as pa

from eventide.engine.checkpoint.checkpoint import Checkpoint, encoded
from eventide.engine.checkpoint.record import StateFile
from eventide.engine.relations.relation import Layout, Relation, Summary

BATCH_ROWS = 65_536
SEQUENCES_A_ROUND = 2**20


class RelationFiles:
    """Writes and reads the relations of an engine; `begin` a round before it writes for it."""

    def __init__(self, checkpoint: Checkpoint, shared: bool) -> None:
        self.checkpoint = checkpoint
        self.shared = shared
        """Whether others than the driver read the files."""
        self._storage = checkpoint.storage
        self._round = 0
        self._is_ahead = False
        self._numbers = count()
        self._sequences = count()
        self._persisted: WeakKeyDictionary[Relation, Relation] = WeakKeyDictionary()

    def begin(self, round: int, ahead: bool = False) -> None:
        """From now on files are written for this round; `ahead` of it what it goes on from is made, and stays."""
        goes_on, self._is_ahead = self._is_ahead and round == self._round, ahead
        if not goes_on:
            self._round, self._numbers = round, count()
            self._sequences = count(round * SEQUENCES_A_ROUND)

    def sequence(self) -> int:
        """A number that no relation has had."""
        return next(self._sequences)

    def uri(self, name: str) -> str:
        """Where a file or folder is, for Spark."""
        return self._storage.uri(name)

    def folder(self) -> str:
        """A new folder for Spark to write to."""
        return f"slices/{self._round:010d}-{next(self._numbers)}"

    def adopted(self, folder: str) -> tuple[StateFile, ...]:
        """The files that Spark wrote."""
        return self.checkpoint.adopt(folder)

    def discard(self, folder: str) -> None:
        """Spark wrote no row: what it left is garbage."""
        self.checkpoint.adopt(folder)

    def persisted(self, relation: Relation) -> Relation:
        """The relation with its rows in a file as well; asked again, it is the same file."""
        if relation not in self._persisted:
            assert relation.table is not None
            name = f"{self.folder()}.{'parquet' if self.shared else 'arrow'}"
            self._persisted[relation] = replace(relation, files=(self._written(name, relation.table),))
        return self._persisted[relation]

    def _written(self, name: str, table: pa.Table) -> StateFile:
        return self.checkpoint.write_table(name, table)

    def loaded(self, relation: Relation) -> Relation:
        """The rows of files on the driver too."""
        if relation.table is not None:
            return relation
        tables = [self.checkpoint.read_table(file) for file in relation.files]
        schema = relation.layout.schema
        table = pa.concat_tables([table.select(schema.names).cast(schema) for table in tables])
        return Relation(relation.layout, table, relation.files, lossy=relation.lossy)

    def restored(self, layout: Layout, saved: dict[str, object], files: dict[str, StateFile]) -> Relation:
        """A relation as a record names it, on the cluster."""
        names = saved["files"]
        assert isinstance(names, list)
        return Relation(layout, None, tuple(files[name] for name in names), Summary.restored(saved))

    def batches(self, relation: Relation) -> Iterator[pa.Table]:
        """The rows of files, part by part."""
        for file in relation.files:
            yield from tables_in(self._storage.opened(file.name), relation.layout.schema)

    @contextmanager
    def apart(self, names: frozenset[str]) -> Iterator[RelationFiles]:
        """Files for a question outside of the rounds: keeps these files until it ends, then removes what it wrote.

        It writes in a folder of its own, which no record ever names; a crash leaves it as garbage.
        """
        folder = f"slices/_apart-{uuid4().hex}"
        with self.checkpoint.holding(names, folder):
            other = ApartFiles(self.checkpoint, folder)
            try:
                yield other
            finally:
                other.remove()


class ApartFiles(RelationFiles):
    """Writes the files of one question that is asked beside the rounds."""

    def __init__(self, checkpoint: Checkpoint, place: str) -> None:
        super().__init__(checkpoint, shared=True)
        self._storage = checkpoint.storage.apart()
        self._place = place

    def folder(self) -> str:
        """A new folder for Spark to write to."""
        return f"{self._place}/{next(self._numbers)}"

    def adopted(self, folder: str) -> tuple[StateFile, ...]:
        """The files that Spark wrote; nobody will verify them, as they are read at once and never again."""
        names = self._storage.list(folder)
        return tuple(StateFile(name, self._storage.size(name), "") for name in names)

    def discard(self, folder: str) -> None:
        """Do nothing: all files of the folder go in the end."""

    def _written(self, name: str, table: pa.Table) -> StateFile:
        data = encoded(name, table)
        self._storage.write(name, data)
        return StateFile(name, data.size, "")

    def remove(self) -> None:
        """Remove all that was written."""
        self._storage.remove_folder(self._place)


def tables_in(file: pa.NativeFile, columns: pa.Schema) -> Iterator[pa.Table]:
    """The rows of a Parquet file that Spark wrote, some at a time."""
    # Not loaded with the engine: on one machine there are no such files.
    import pyarrow.parquet as pq

    # A session of the user's may write times in a form that reaches further than nanoseconds do.
    for batch in pq.ParquetFile(file, coerce_int96_timestamp_unit="us").iter_batches(BATCH_ROWS):
        yield pa.Table.from_batches([batch]).select(columns.names).cast(columns)
