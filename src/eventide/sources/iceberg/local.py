"""An Iceberg table as a stream of the local engine, with the laws of `commits` and `snapshots`.

>>> import tempfile
>>> from eventide.plan.declared.stream import Input, columns
>>> from eventide.storage.iceberg import catalog_of
>>> lake = {"warehouse": tempfile.mkdtemp()}
>>> catalog_of(lake).create_namespace("lake")
>>> table = catalog_of(lake).create_table("lake.t", pa.schema([("t", pa.int64())]))
>>> table.append(pa.table({"t": [1, 2]}))
>>> place = Input("iceberg", "lake.t", tuple(lake.items()))
>>> given = IcebergInput(Stream("s", columns("t BIGINT"), time="t", input=place))
>>> given.take(9, 0).column("t").to_pylist()
[1, 2]
>>> table.append(pa.table({"t": [3]}))
>>> given.take(9, 0).column("t").to_pylist(), given.position()["version"]
([3], 2)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from eventide.plan.declared.stream import Stream
from eventide.sources.arrow_types import declared_table
from eventide.sources.commits import CommittedInput
from eventide.sources.iceberg.snapshots import IcebergFile, snapshots_of


class IcebergInput(CommittedInput[IcebergFile]):
    """The rows of an Iceberg table."""

    def __init__(self, stream: Stream) -> None:
        self._snapshots = snapshots_of(stream)
        super().__init__(stream, self._snapshots.current())

    def files_of(self, version: int, first: bool) -> Sequence[IcebergFile]:
        """All files of the first version, and of later ones those that were added."""
        return self._snapshots.files(version, first)

    def next_version(self, version: int) -> int | None:
        """The next one, if it is there."""
        return self._snapshots.after(version)

    def tables_of(self, file: IcebergFile, offset: int) -> Iterator[pa.Table]:
        """The rows of a file."""
        for batch in file.batches(offset):
            table = pa.Table.from_batches([batch])
            yield declared_table(self._owner, self._stream.columns, table, self._snapshots.name)
