"""An Iceberg table as a Spark data source under the format name `eventide_iceberg`, for every version of Spark.

Laws. An offset is a version of the table and a number of its files, and what it means never changes (`snapshots`). The
driver plans; files are read by Spark's tasks, each by one, with pyiceberg, which the workers have to have. A round
takes whole files, at most `maxFilesPerTrigger`; in a bounded run the table ends where it stood at the start.

>>> [field.name for field in readable(pa.schema([("t", pa.timestamp("us", "UTC")), ("k", pa.large_string())]))]
['t', 'k']
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructField, StructType

from eventide.errors import DeclarationError
from eventide.plan.declared.stream import Stream
from eventide.sources.commits import TablePlace
from eventide.sources.iceberg.snapshots import IcebergFile, Snapshots, snapshots_of

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxFiles, SupportsTriggerAvailableNow
except ModuleNotFoundError as missing:  # pragma: no cover - Spark 4.1 knows no limits of such a source
    raise DeclarationError("FROM iceberg needs Spark 4.2 or newer: take the local engine") from missing

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "eventide_iceberg"


class Slice(InputPartition):
    """The rows of a file, with these columns."""

    def __init__(self, file: IcebergFile, schema: pa.Schema) -> None:
        self.file = file
        self.schema = schema


class IcebergReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The files of a table, snapshot after snapshot."""

    def __init__(self, snapshots: Snapshots, schema: pa.Schema, max_files: int | None) -> None:
        self._snapshots = snapshots
        self._schema = schema
        self._max_files = max_files
        self._last: int | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """The offset at the start: before the first file of the table as it is now."""
        return _offset(TablePlace(version := self._snapshots.current(), version))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """At most so many files in a round."""
        return ReadAllAvailable() if self._max_files is None else ReadMaxFiles(self._max_files)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Remember where the table stands: a bounded run ends there."""
        self._last = self._snapshots.current()

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The offset behind the files of the next round."""
        end, files = TablePlace(**start), limit.max_files if isinstance(limit, ReadMaxFiles) else None
        for place, _ in self._files(end, None):
            if files == 0:
                break
            end, files = replace(place, file=place.file + 1), None if files is None else files - 1
        return _offset(end)

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        """The files between two offsets, each for a task."""
        return [Slice(file, self._schema) for _, file in self._files(TablePlace(**start), TablePlace(**end))]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of a file as Arrow batches."""
        assert isinstance(partition, Slice)
        for batch in partition.file.batches():
            yield batch.select(partition.schema.names).cast(partition.schema)

    def _files(self, start: TablePlace, end: TablePlace | None) -> Iterator[tuple[TablePlace, IcebergFile]]:
        """The files from one place on up to another, each with its own place."""
        version: int | None = start.version
        while version is not None and (self._last is None or end is not None or version <= self._last):
            files = self._snapshots.files(version, first=version == start.start)
            for number in range(start.file if version == start.version else 0, len(files)):
                place = TablePlace(start.start, version, number)
                if end is not None and place >= end:
                    return
                yield place, files[number]
            version = None if end is not None and version >= end.version else self._snapshots.after(version)


class IcebergSource(DataSource):
    """`spark.readStream.format("eventide_iceberg")`, with the table and its catalog in the option `snapshots`."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return FORMAT

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader of a table."""
        limit = self.options.get("maxfilespertrigger")
        snapshots = Snapshots(**json.loads(self.options["snapshots"]))
        return IcebergReader(snapshots, to_arrow_schema(schema, timezone="UTC"), None if limit is None else int(limit))


def read_iceberg(spark: SparkSession, stream: Stream, limits: Mapping[str, str]) -> DataFrame:
    """The table that a stream declares, with the columns that it has of those that are wanted."""
    snapshots = snapshots_of(stream)
    spark.dataSource.register(IcebergSource)
    reader = spark.readStream.format(FORMAT).schema(readable(snapshots.schema()))
    return reader.options(snapshots=json.dumps(asdict(snapshots)), **limits).load()


def readable(schema: pa.Schema) -> StructType:
    """The types of Spark for columns of a table; any of them may be NULL."""
    columns = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    return StructType([StructField(column.name, column.dataType) for column in columns])


def _offset(place: TablePlace) -> dict[str, int]:
    return {"start": place.start, "version": place.version, "file": place.file}
