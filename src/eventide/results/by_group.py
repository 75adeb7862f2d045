"""Errors of early answers group by group, and which rows are of one group.

The errors of early answers, group by group.

Law: of every group the windows that were scored, their mean error and the worst one; at most `MOST_GROUPS` groups are
kept, those with the latest windows.

>>> learned = ByGroup(("sensor",))
>>> learned.add(pa.table({"sensor": [1, 2]}), np.array([0.1, 0.0]), np.array([50, 50]))
>>> learned.add(pa.table({"sensor": [1]}), np.array([0.3]), np.array([60]))
>>> learned.report().to_pylist()
[{'sensor': 1, 'windows': 2, 'error': 0.2, 'worst': 0.3}, {'sensor': 2, 'windows': 1, 'error': 0.0, 'worst': 0.0}]

Which rows of two tables are of the same window and group.

Law: rows get the same number exactly when all the named columns are equal in both; NULL equals NULL, and NaN equals
NaN.

>>> a, b = pa.table({"k": ["x", None]}), pa.table({"k": [None, "y", "x"]})
>>> [numbers.tolist() for numbers in numbered([a, b], ["k"])]
[[0, 1], [1, 2, 0]]
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eventide.results.error import Floats


def numbered(tables: Sequence[pa.Table], names: Sequence[str]) -> list[NDArray[np.int64]]:
    """A number for each row of each table; equal numbers for rows that agree in all the named columns."""
    lengths = [table.num_rows for table in tables]
    numbers = np.zeros(sum(lengths), dtype=np.int64)
    for name in names:
        kind = tables[0].schema.field(name).type
        chunks = [chunk for table in tables for chunk in table.column(name).cast(kind).chunks]
        found = _encoded(pa.chunked_array(chunks, kind))
        _, numbers = np.unique(numbers * (int(found.max(initial=0)) + 1) + found, return_inverse=True)
    return np.split(numbers.astype(np.int64), np.cumsum(lengths)[:-1])


def _encoded(values: pa.ChunkedArray) -> NDArray[np.int64]:
    """Equal values as equal numbers from 0 on."""
    if len(values) == 0:
        return np.zeros(0, dtype=np.int64)
    try:
        coded = values.combine_chunks().dictionary_encode(null_encoding="encode")
    except pa.ArrowNotImplementedError:
        # Arrays, maps and structs: by what they look like.
        coded = pa.array([repr(value) for value in values.to_pylist()]).dictionary_encode()
    return np.asarray(coded.indices.to_numpy(zero_copy_only=False), dtype=np.int64)


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
