"""What an Iceberg table brings: all files of one snapshot, then those that later snapshots append.

Laws. A version is the number of a snapshot (its sequence number), so versions of a table only grow. The files of a
first version come in the order in which they were written, without the rows that were deleted from them. *Only
appended*: a snapshot that deletes or changes rows is refused; with the option `skipChangeCommits` it is passed over.
Files that were only rewritten (compaction) bring no new rows. What has expired before it was read is an error, never a
gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io import FileIO
from pyiceberg.io.pyarrow import ArrowScan, schema_to_pyarrow
from pyiceberg.manifest import ManifestContent, ManifestEntry, ManifestEntryStatus
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.snapshots import Operation, Snapshot

from eventide.errors import InputError
from eventide.plan.declared.stream import Stream
from eventide.sources.commits import SKIP
from eventide.sources.options import input_of, needs_path
from eventide.storage.iceberg import table_at


@dataclass(frozen=True)
class IcebergFile:
    """A file of a table, and what a reader of it has to know of the table."""

    task: FileScanTask
    metadata: TableMetadata
    io: FileIO
    names: tuple[str, ...]

    def batches(self, offset: int = 0) -> Iterator[pa.RecordBatch]:
        """The rows behind so many, in the order in which they stand there."""
        schema = self.metadata.schema().select(*self.names, case_sensitive=False)
        for batch in ArrowScan(self.metadata, self.io, schema, AlwaysTrue()).to_record_batches([self.task]):
            skipped = min(offset, batch.num_rows)
            offset -= skipped
            if skipped < batch.num_rows:
                yield batch.slice(skipped)


@dataclass(frozen=True)
class Snapshots:
    """The table `name` of a catalog, for the columns of a stream; `owner` is who reads it, for messages."""

    owner: str
    name: str
    options: Mapping[str, str] = field(repr=False)
    columns: Sequence[str]
    skips: bool = False

    def current(self) -> int:
        """The newest version; 0 where the table has no rows yet."""
        snapshot = self._table().current_snapshot()
        return 0 if snapshot is None else _number(snapshot)

    def after(self, version: int) -> int | None:
        """The version after that one; None where there is none yet."""
        later = None
        for snapshot in self._lineage(self._table()):
            if _number(snapshot) <= version:
                return later
            later = _number(snapshot)
        if later is not None and later > version + 1:
            raise InputError(
                f"{self.owner}: a snapshot of {self.name} after {version} expired before it was read. Start anew with "
                "another checkpoint"
            )
        return later

    def files(self, version: int, first: bool) -> list[IcebergFile]:
        """All files of a first version, and of later ones those that were added."""
        table = self._table()
        snapshot = next((one for one in self._lineage(table) if _number(one) == version), None)
        if snapshot is None:
            if version == 0:
                return []
            raise InputError(f"{self.owner}: snapshot {version} of {self.name} is there no longer: it has expired")
        if not first and snapshot.summary is not None and snapshot.summary.operation != Operation.APPEND:
            if snapshot.summary.operation == Operation.REPLACE or self.skips:
                return []
            raise InputError(
                f"{self.owner}: snapshot {version} of {self.name} deletes or changes rows, and a stream only grows: "
                "add OPTIONS (skipChangeCommits 'true') to pass over such snapshots"
            )
        entries = _entries(table, snapshot)
        if first:
            tasks = {one.file.file_path: one for one in table.scan(snapshot_id=snapshot.snapshot_id).plan_files()}
            ordered = sorted(entries, key=lambda one: one.sequence_number or 0)
            found = [tasks[one.data_file.file_path] for one in ordered if one.data_file.file_path in tasks]
        else:
            found = [FileScanTask(one.data_file) for one in entries if _is_added(one, snapshot)]
        return [IcebergFile(task, table.metadata, table.io, self._names(table)) for task in found]

    def schema(self) -> pa.Schema:
        """The columns that the table has of those that are wanted, in Arrow's types."""
        table = self._table()
        return schema_to_pyarrow(table.schema().select(*self._names(table), case_sensitive=False), {}, False)

    def _names(self, table: Table) -> tuple[str, ...]:
        there = {name.lower() for name in table.schema().column_names}
        return tuple(name for name in self.columns if name.lower() in there)

    def _lineage(self, table: Table) -> Iterator[Snapshot]:
        """The current snapshot, and those that it came from."""
        snapshot = table.current_snapshot()
        while snapshot is not None:
            yield snapshot
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else table.snapshot_by_id(parent)

    def _table(self) -> Table:
        table = table_at(self.name, self.options)
        if table is None:
            raise InputError(f"{self.owner}: there is no Iceberg table {self.name}: check its name and its catalog")
        if table.format_version < 2:
            raise InputError(
                f"{self.owner}: {self.name} has version 1 of Iceberg's format, whose snapshots have no numbers: "
                "upgrade it (ALTER TABLE .. SET TBLPROPERTIES ('format-version' = '2'))"
            )
        return table


def snapshots_of(stream: Stream) -> Snapshots:
    """The table that a stream declares."""
    given = input_of(stream)
    options = dict(given.options)
    skips = [options.pop(name) for name in list(options) if name.lower() == SKIP]
    names = [column.name for column in stream.columns]
    return Snapshots(
        f"stream {stream.name!r}", needs_path(stream, given), options, names, [one.lower() for one in skips] == ["true"]
    )


def _number(snapshot: Snapshot) -> int:
    return snapshot.sequence_number or 0


def _entries(table: Table, snapshot: Snapshot) -> list[ManifestEntry]:
    manifests = (one for one in snapshot.manifests(table.io) if one.content == ManifestContent.DATA)
    return [entry for one in manifests for entry in one.fetch_manifest_entry(table.io, discard_deleted=True)]


def _is_added(entry: ManifestEntry, snapshot: Snapshot) -> bool:
    return entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id == snapshot.snapshot_id
