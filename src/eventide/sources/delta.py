"""A Delta table as a stream of the local engine: what it holds at first, then what is appended, commit after commit.

Laws. The position names a version of the table, a file of it and a row, so no row comes twice or is missed. A file of a
commit is never changed, so a round that is run again has the same rows, and the past can be read again. *Only
appended*: a commit that deletes or changes rows is refused, as Spark refuses it; with the option `skipChangeCommits` it
is passed over. Files that were only rewritten (OPTIMIZE) bring no new rows.

>>> import tempfile
>>> from deltalake import write_deltalake
>>> from eventide.plan.declared.stream import Input, columns
>>> place = f"{tempfile.mkdtemp()}/t"
>>> write_deltalake(place, pa.table({"t": [1, 2]}))
>>> given = DeltaInput(Stream("s", columns("t BIGINT"), time="t", input=Input("delta", place)))
>>> given.take(9, 0).column("t").to_pylist()
[1, 2]
>>> write_deltalake(place, pa.table({"t": [3]}), mode="append")
>>> given.take(9, 0).column("t").to_pylist(), given.position()["version"]
([3], 1)
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote

import pyarrow as pa

from eventide.errors import DeclarationError, InputError, first_line
from eventide.plan.declared.stream import Stream
from eventide.sources.arrow_types import arrow_type, declared_table
from eventide.sources.commits import SKIP, CommittedInput
from eventide.sources.files.readers import OPENERS
from eventide.sources.options import input_of, needs_path

try:
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError
except ModuleNotFoundError as missing:  # pragma: no cover - the tests have it
    raise DeclarationError("FROM delta needs deltalake on the local engine: pip install 'eventide[delta]'") from missing


@dataclass(frozen=True)
class DeltaFile:
    """A file of a version, and the values that all its rows have in the columns by which the table is parted."""

    name: str
    parted: tuple[tuple[str, str | None], ...] = ()


class DeltaInput(CommittedInput[DeltaFile]):
    """The rows of a Delta table at a local path."""

    def __init__(self, stream: Stream) -> None:
        given = input_of(stream)
        owner = f"stream {stream.name!r}"
        self._path = needs_path(stream, given)
        options = {name.lower(): value for name, value in given.options}
        if unknown := options.keys() - {SKIP}:
            raise DeclarationError(f"{owner}: the local engine has no option {min(unknown)!r} for delta")
        self._skips = options.get(SKIP, "").lower() == "true"
        if not DeltaTable.is_deltatable(self._path):
            raise InputError(f"{owner}: there is no Delta table at {self._path}: check the path")
        super().__init__(stream, DeltaTable(self._path).version())

    def tables_of(self, file: DeltaFile, offset: int) -> Iterator[pa.Table]:
        """The rows of a file, with the columns by which the table is parted."""
        columns = {column.name.lower(): column for column in self._stream.columns}
        names = [column.name for column in self._stream.columns]
        for table in OPENERS["parquet"](os.path.join(self._path, file.name), names, offset):
            for name, value in file.parted:
                if name.lower() in columns:
                    kind = arrow_type(columns[name.lower()].type)
                    table = table.append_column(name, pa.array([value] * table.num_rows, pa.string()).cast(kind))
            yield declared_table(self._owner, self._stream.columns, table, self._path)

    def files_of(self, version: int, first: bool) -> list[DeltaFile]:
        """All files of the first version, and of later ones those that were added."""
        return self._of_snapshot(version) if first else self._of_commit(version)

    def next_version(self, version: int) -> int | None:
        """The next one, if it is in the log."""
        return version + 1 if self._has(version + 1) else None

    def _of_snapshot(self, version: int) -> list[DeltaFile]:
        try:
            actions = pa.table(DeltaTable(self._path, version=version).get_add_actions()).to_pylist()
        except DeltaError as failure:
            raise InputError(
                f"{self._owner}: version {version} of {self._path} is there no longer: {first_line(failure)}"
            ) from failure
        actions.sort(key=lambda one: (one["modification_time"], one["path"]))
        return [_file_of(one["path"], one.get("partition") or {}) for one in actions]

    def _of_commit(self, version: int) -> list[DeltaFile]:
        with open(self._log(version), encoding="utf-8") as lines:
            actions = [json.loads(line) for line in lines]
        if any(one["remove"].get("dataChange", True) for one in actions if "remove" in one):
            if self._skips:
                return []
            raise InputError(
                f"{self._owner}: version {version} of {self._path} deletes or changes rows, and a stream only grows: "
                "add OPTIONS (skipChangeCommits 'true') to pass over such versions"
            )
        added = [one["add"] for one in actions if "add" in one]
        if any(one.get("deletionVector") for one in added):
            raise InputError(f"{self._owner}: {self._path} has deletion vectors, which the local engine cannot read")
        return [_file_of(one["path"], one.get("partitionValues") or {}) for one in added if one["dataChange"]]

    def _has(self, version: int) -> bool:
        if os.path.exists(self._log(version)):
            return True
        if DeltaTable(self._path).version() >= version and not os.path.exists(self._log(version)):
            raise InputError(
                f"{self._owner}: the log of {self._path} has version {version} no longer: it was cleaned before it was "
                "read. Start anew with another checkpoint"
            )
        return False

    def _log(self, version: int) -> str:
        return os.path.join(self._path, "_delta_log", f"{version:020d}.json")


def read_delta(table: Stream) -> pa.Table:
    """The rows that a Delta table has now, for joins with it as it is."""
    place, owner = needs_path(table, input_of(table)), f"table {table.name!r}"
    if not DeltaTable.is_deltatable(place):
        raise InputError(f"{owner}: there is no Delta table at {place}: check the path")
    try:
        found = DeltaTable(place).to_pyarrow_table()
    except DeltaError as failure:
        raise InputError(f"{owner}: the Delta table at {place} cannot be read: {first_line(failure)}") from failure
    wanted = {column.name.lower() for column in table.columns}
    known = [name for name in found.column_names if name.lower() in wanted]
    return declared_table(owner, table.columns, found.select(known), place)


def _file_of(path: str, parted: dict[str, str | None]) -> DeltaFile:
    values = ((name, None if value is None else str(value)) for name, value in parted.items())
    return DeltaFile(unquote(path), tuple(values))
