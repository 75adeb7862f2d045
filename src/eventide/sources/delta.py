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
from dataclasses import asdict, dataclass, replace
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from eventide.errors import DeclarationError, InputError, first_line
from eventide.plan.declared.stream import Stream
from eventide.sources.arrow_types import arrow_type, declared_table
from eventide.sources.files.readers import OPENERS
from eventide.sources.local_input import PolledInput
from eventide.sources.options import input_of, needs_path

try:
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError
except ModuleNotFoundError as missing:  # pragma: no cover - the tests have it
    raise DeclarationError("FROM delta needs deltalake on the local engine: pip install 'eventide[delta]'") from missing

HISTORY_ROWS = 1_000_000
"""Rows of the past that are taken at a time."""
SKIP = "skipchangecommits"


@dataclass(frozen=True, order=True)
class DeltaPlace:
    """A place in a table: so many rows of a file of a version were read. It was begun with all of version `start`."""

    start: int
    version: int
    file: int = 0
    row: int = 0


@dataclass(frozen=True)
class DeltaFile:
    """A file of a version, and the values that all its rows have in the columns by which the table is parted."""

    name: str
    parted: tuple[tuple[str, str | None], ...] = ()


class DeltaInput(PolledInput):
    """The rows of a Delta table at a local path."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        given = input_of(stream)
        self._stream = stream
        self._owner = f"stream {stream.name!r}"
        self._path = needs_path(stream, given)
        options = {name.lower(): value for name, value in given.options}
        if unknown := options.keys() - {SKIP}:
            raise DeclarationError(f"{self._owner}: the local engine has no option {min(unknown)!r} for delta")
        self._skips = options.get(SKIP, "").lower() == "true"
        if not DeltaTable.is_deltatable(self._path):
            raise InputError(f"{self._owner}: there is no Delta table at {self._path}: check the path")
        version = DeltaTable(self._path).version()
        self._at = self._noted = DeltaPlace(version, version)
        self._listed: tuple[int, list[DeltaFile]] | None = None
        self._open: tuple[DeltaPlace, Iterator[pa.Table]] | None = None
        self._rest: pa.Table | None = None

    @property
    def ended(self) -> bool:
        """False: something may always be appended."""
        return False

    def _look(self, max_rows: int) -> pa.Table | None:
        tables: list[pa.Table] = []
        wanted = max_rows
        while wanted > 0 and (table := self._next(wanted)) is not None:
            tables.append(table)
            wanted -= table.num_rows
        return pa.concat_tables(tables) if tables else None

    def _next(self, wanted: int, until: DeltaPlace | None = None) -> pa.Table | None:
        """Some rows of the file at which it is; None where there are none now, or that is the place to stop."""
        while until is None or self._at < until:
            files = self._files()
            if self._at.file < len(files):
                if until is not None and (self._at.version, self._at.file) == (until.version, until.file):
                    wanted = min(wanted, until.row - self._at.row)
                if (table := self._rows(files[self._at.file], wanted)) is not None:
                    self._at = replace(self._at, row=self._at.row + table.num_rows)
                    return table
                self._move(replace(self._at, file=self._at.file + 1, row=0))
            elif self._has(self._at.version + 1):
                self._move(DeltaPlace(self._at.start, self._at.version + 1))
            else:
                return None
        return None

    def _rows(self, file: DeltaFile, wanted: int) -> pa.Table | None:
        """The next rows of a file; None at its end."""
        if self._open is None:
            self._open = self._at, self._tables(file, self._at.row)
        while self._rest is None or self._rest.num_rows == 0:
            try:
                self._rest = next(self._open[1], None)
            except (OSError, pa.ArrowException) as failure:
                raise InputError(
                    f"{self._owner}: a file of {self._path} cannot be read: {first_line(failure)}. Was it vacuumed?"
                ) from failure
            if self._rest is None:
                return None
        head, self._rest = self._rest.slice(0, wanted), self._rest.slice(wanted)
        return head

    def _tables(self, file: DeltaFile, offset: int) -> Iterator[pa.Table]:
        columns = {column.name.lower(): column for column in self._stream.columns}
        names = [column.name for column in self._stream.columns]
        for table in OPENERS["parquet"](os.path.join(self._path, file.name), names, offset):
            for name, value in file.parted:
                if name.lower() in columns:
                    kind = arrow_type(columns[name.lower()].type)
                    table = table.append_column(name, pa.array([value] * table.num_rows, pa.string()).cast(kind))
            yield declared_table(self._owner, self._stream.columns, table, self._path)

    def _move(self, place: DeltaPlace) -> None:
        self._at, self._open, self._rest = place, None, None

    # What a version brings

    def _files(self) -> list[DeltaFile]:
        """The files of the version at which it is: all of the first one, and of later ones those that were added."""
        if self._listed is None or self._listed[0] != self._at.version:
            first = self._at.version == self._at.start
            self._listed = self._at.version, self._of_snapshot() if first else self._of_commit()
        return self._listed[1]

    def _of_snapshot(self) -> list[DeltaFile]:
        try:
            actions = pa.table(DeltaTable(self._path, version=self._at.version).get_add_actions()).to_pylist()
        except DeltaError as failure:
            raise InputError(
                f"{self._owner}: version {self._at.version} of {self._path} is there no longer: {first_line(failure)}"
            ) from failure
        actions.sort(key=lambda one: (one["modification_time"], one["path"]))
        return [_file_of(one["path"], one.get("partition") or {}) for one in actions]

    def _of_commit(self) -> list[DeltaFile]:
        version = self._at.version
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

    # Positions

    def position(self) -> dict[str, Any]:
        """The version, the file and the row."""
        return asdict(self._at)

    def seek(self, position: dict[str, Any]) -> None:
        """Read on from a saved position."""
        self._move(DeltaPlace(**position))
        self._noted, self._listed = self._at, None

    def portion(self) -> dict[str, Any]:
        """From where to where was read since this was last asked."""
        before, self._noted = self._noted, self._at
        return {"from": asdict(before), "to": asdict(self._at)}

    def repeat(self, portion: dict[str, Any]) -> tuple[pa.Table | None, bool]:
        """Read the same rows again."""
        until = DeltaPlace(**portion["to"])
        try:
            self._move(DeltaPlace(**portion["from"]))
            tables = list(self._up_to(until, HISTORY_ROWS))
        except InputError:
            return None, False
        self._noted = self._at
        return (pa.concat_tables(tables) if tables else None), self._at == until

    def history(self, position: dict[str, Any]) -> Iterator[pa.Table]:
        """All rows before a position, some at a time."""
        until = DeltaPlace(**position)
        other = DeltaInput(self._stream)
        other.seek(asdict(DeltaPlace(until.start, until.start)))
        yield from other._up_to(until, HISTORY_ROWS)

    def _up_to(self, until: DeltaPlace, rows: int) -> Iterator[pa.Table]:
        while (table := self._next(rows, until)) is not None:
            yield table

    def close(self) -> None:
        """Let go of the file that is open."""
        self._open = None


def _file_of(path: str, parted: dict[str, str | None]) -> DeltaFile:
    values = ((name, None if value is None else str(value)) for name, value in parted.items())
    return DeltaFile(unquote(path), tuple(values))
