"""A table of a lake as an input of the local engine: what it has at first, then what is appended, commit after commit.

Laws. The position names a version of the table, a file of it and a row, so no row comes twice or is missed. A file of a
commit is never changed, so a round that is run again has the same rows, and the past can be read again. What a version
brings, and how a file is read, each kind of table says for itself.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import asdict, dataclass, replace
from typing import Any, Generic, TypeVar

import pyarrow as pa

from eventide.errors import InputError, first_line
from eventide.plan.declared.stream import Stream
from eventide.sources.local_input import PolledInput

HISTORY_ROWS = 1_000_000
"""Rows of the past that are taken at a time."""
SKIP = "skipchangecommits"
"""The option by which commits that delete or change rows are passed over."""

File = TypeVar("File")


@dataclass(frozen=True, order=True)
class TablePlace:
    """A place in a table: so many rows of a file of a version were read. It was begun with all of version `start`."""

    start: int
    version: int
    file: int = 0
    row: int = 0


class CommittedInput(PolledInput, Generic[File]):
    """The rows of a table that was at version `version` when it was begun."""

    def __init__(self, stream: Stream, version: int) -> None:
        super().__init__(stream)
        self._stream = stream
        self._owner = f"stream {stream.name!r}"
        self._at = self._noted = TablePlace(version, version)
        self._listed: tuple[int, Sequence[File]] | None = None
        self._open: Iterator[pa.Table] | None = None
        self._rest: pa.Table | None = None

    @abstractmethod
    def files_of(self, version: int, first: bool) -> Sequence[File]:
        """The files of a version: all of the first one, and of later ones those that were added."""

    @abstractmethod
    def next_version(self, version: int) -> int | None:
        """The version after that one; None where there is none yet."""

    @abstractmethod
    def tables_of(self, file: File, offset: int) -> Iterator[pa.Table]:
        """The rows of a file behind so many, some at a time, with the declared columns."""

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

    def _next(self, wanted: int, until: TablePlace | None = None) -> pa.Table | None:
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
            elif (version := self.next_version(self._at.version)) is not None:
                self._move(TablePlace(self._at.start, version))
            else:
                return None
        return None

    def _rows(self, file: File, wanted: int) -> pa.Table | None:
        """The next rows of a file; None at its end."""
        if self._open is None:
            self._open = self.tables_of(file, self._at.row)
        while self._rest is None or self._rest.num_rows == 0:
            try:
                self._rest = next(self._open, None)
            except (OSError, pa.ArrowException) as failure:
                raise InputError(
                    f"{self._owner}: a file of version {self._at.version} cannot be read: {first_line(failure)}. Was "
                    "it vacuumed?"
                ) from failure
            if self._rest is None:
                return None
        head, self._rest = self._rest.slice(0, wanted), self._rest.slice(wanted)
        return head

    def _files(self) -> Sequence[File]:
        if self._listed is None or self._listed[0] != self._at.version:
            version = self._at.version
            self._listed = version, self.files_of(version, version == self._at.start)
        return self._listed[1]

    def _move(self, place: TablePlace) -> None:
        self._at, self._open, self._rest = place, None, None

    # Positions

    def position(self) -> dict[str, Any]:
        """The version, the file and the row."""
        return asdict(self._at)

    def seek(self, position: dict[str, Any]) -> None:
        """Read on from a saved position."""
        self._move(TablePlace(**position))
        self._noted, self._listed = self._at, None

    def portion(self) -> dict[str, Any]:
        """From where to where was read since this was last asked."""
        before, self._noted = self._noted, self._at
        return {"from": asdict(before), "to": asdict(self._at)}

    def repeat(self, portion: dict[str, Any]) -> tuple[pa.Table | None, bool]:
        """Read the same rows again."""
        until = TablePlace(**portion["to"])
        try:
            self._move(TablePlace(**portion["from"]))
            tables = list(self._up_to(until, HISTORY_ROWS))
        except InputError:
            return None, False
        self._noted = self._at
        return (pa.concat_tables(tables) if tables else None), self._at == until

    def history(self, position: dict[str, Any]) -> Iterator[pa.Table]:
        """All rows before a position, some at a time."""
        until = TablePlace(**position)
        other = copy(self)
        other.seek(asdict(TablePlace(until.start, until.start)))
        yield from other._up_to(until, HISTORY_ROWS)

    def _up_to(self, until: TablePlace, rows: int) -> Iterator[pa.Table]:
        while (table := self._next(rows, until)) is not None:
            yield table

    def close(self) -> None:
        """Let go of the file that is open."""
        self._open = None
