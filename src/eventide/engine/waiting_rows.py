"""Rows that wait until time has passed them.

Law: no row is lost or doubled: what has been added and not yet let go is held. A store is a value. Rows lie in few
tables, each in the order of time and twice as large as the next at least, so that a round touches few of them, and a
row is copied no more often than the logarithm of how many there are.

>>> rows = WaitingRows().added(pa.table({"__t": [5, 3]})).added(pa.table({"__t": [4]}))
>>> rows.rows, rows.first, rows.times.tolist()
(3, 3, [3, 4, 5])
>>> passed, rest = rows.parted(4)
>>> sorted(time for table in passed for time in table.column("__t").to_pylist()), rest.rows
([3, 4], 1)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from eventide.eventtime.instant import FOREVER, Instants


@dataclass(frozen=True)
class WaitingRows:
    """Tables with a column `__t`, none of them empty, the largest first."""

    tables: tuple[pa.Table, ...] = ()

    @classmethod
    def of(cls, tables: Iterable[pa.Table]) -> WaitingRows:
        """All of these."""
        return cls().added(*tables)

    @property
    def rows(self) -> int:
        """How many there are."""
        return sum(table.num_rows for table in self.tables)

    @property
    def bytes(self) -> int:
        """Their memory."""
        return sum(table.nbytes for table in self.tables)

    @property
    def first(self) -> int:
        """The earliest time; FOREVER if there is none."""
        return min((int(table.column("__t")[0].as_py()) for table in self.tables), default=FOREVER)

    @property
    def times(self) -> Instants:
        """Their times, ascending, each once."""
        found = [_times(table) for table in self.tables]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)

    def added(self, *fresh: pa.Table) -> WaitingRows:
        """With these rows too."""
        tables = list(self.tables)
        for table in fresh:
            if table.num_rows == 0:
                continue
            while tables and tables[-1].num_rows < 2 * table.num_rows:
                table = pa.concat_tables([tables.pop(), table])
            order = np.argsort(_times(table), kind="stable")
            tables.append(table.combine_chunks().take(pa.array(order)))
        return WaitingRows(tuple(tables))

    def parted(self, time: int) -> tuple[list[pa.Table], WaitingRows]:
        """The rows at or before a time, and the rest."""
        if self.first > time:
            return [], self
        passed, rest = [], []
        for table in self.tables:
            place = int(np.searchsorted(_times(table), time, side="right"))
            passed += [table.slice(0, place)] if place else []
            rest += [table.slice(place)] if place < table.num_rows else []
        return passed, WaitingRows(tuple(sorted(rest, key=lambda table: -int(table.num_rows))))


def _times(table: pa.Table) -> Instants:
    return np.asarray(table.column("__t").to_numpy(), dtype=np.int64)
