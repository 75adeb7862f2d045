"""The errors of early answers, group by group.

Law: of every group the windows that were scored, their mean error and the worst one; at most `MOST_GROUPS` groups are
kept, those with the latest windows.

>>> learned = ByGroup(("sensor",))
>>> learned.add(pa.table({"sensor": [1, 2]}), np.array([0.1, 0.0]), np.array([50, 50]))
>>> learned.add(pa.table({"sensor": [1]}), np.array([0.3]), np.array([60]))
>>> learned.report().to_pylist()
[{'sensor': 1, 'windows': 2, 'error': 0.2, 'worst': 0.3}, {'sensor': 2, 'windows': 1, 'error': 0.0, 'worst': 0.0}]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eventide.results.error import Floats
from eventide.results.same_group import numbered

MOST_GROUPS = 10_000
SUMS = ("__windows", "__error", "__worst", "__last")


class ByGroup:
    """One row for each group, with sums over its windows; nothing for a query without groups."""

    def __init__(self, groups: tuple[str, ...], table: pa.Table | None = None) -> None:
        self._groups = groups
        self.table = table

    def add(self, rows: pa.Table, errors: Floats, ends: NDArray[np.int64]) -> None:
        """Learn from scored rows: their groups, errors, and the ends of their windows."""
        if not self._groups or rows.num_rows == 0:
            return
        new = rows.select(list(self._groups))
        ones = np.ones(rows.num_rows, dtype=np.int64)
        for name, column in zip(SUMS, (ones, errors, errors, ends), strict=True):
            new = new.append_column(name, pa.array(column))
        both = new if self.table is None else pa.concat_tables([self.table, new])
        [numbers] = numbered([both], list(self._groups))
        groups, first, line = np.unique(numbers, return_index=True, return_inverse=True)
        windows, errors, worst, last = (both.column(name).to_numpy() for name in SUMS)
        highest, latest = np.zeros(len(groups)), np.full(len(groups), np.iinfo(np.int64).min)
        np.maximum.at(highest, line, worst)
        np.maximum.at(latest, line, last)
        merged = both.take(pa.array(first)).select(list(self._groups))
        sums = (np.bincount(line, windows).astype(np.int64), np.bincount(line, errors), highest, latest)
        for name, column in zip(SUMS, sums, strict=True):
            merged = merged.append_column(name, pa.array(column))
        if merged.num_rows > MOST_GROUPS:
            merged = merged.take(pa.array(np.sort(np.argsort(latest, kind="stable")[-MOST_GROUPS:])))
        self.table = merged.combine_chunks()

    def report(self) -> pa.Table:
        """Groups with the number of their windows, mean and worst errors."""
        if self.table is None:
            return pa.table({"windows": pa.array([], pa.int64()), "error": pa.array([], pa.float64())})
        windows, errors = self.table.column("__windows").to_numpy(), self.table.column("__error").to_numpy()
        told = self.table.select(list(self._groups))
        for name, column in (("windows", windows), ("error", errors / windows)):
            told = told.append_column(name, pa.array(column))
        return told.append_column("worst", self.table.column("__worst"))
