"""Errors of early answers, broken down by group and by point of the slide.

Law: of every group the windows that were scored, their mean error and the worst one; at most `MOST_GROUPS` groups are
kept, those with the latest windows.

>>> learned = ByGroup(("sensor",))
>>> learned.add(pa.table({"sensor": [1, 2]}), np.array([0.1, 0.0]), np.array([50, 50]))
>>> learned.add(pa.table({"sensor": [1]}), np.array([0.3]), np.array([60]))
>>> learned.report().to_pylist()
[{'sensor': 1, 'windows': 2, 'error': 0.2, 'worst': 0.3}, {'sensor': 2, 'windows': 1, 'error': 0.0, 'worst': 0.0}]

*Matching.* Which rows of two tables are of the same window and group? Rows get the same number exactly when all the
named columns are equal in both; NULL equals NULL, and NaN equals NaN.

>>> a, b = pa.table({"k": ["x", None]}), pa.table({"k": [None, "y", "x"]})
>>> [numbers.tolist() for numbers in numbered([a, b], ["k"])]
[[0, 1], [1, 2, 0]]

*By point.* What early answers are worth at each point of the slide is learned. A point of the slide is known by its
nearest twentieth, up to the end of the slide after the window's own. At each of them, and for each column, the errors
of windows are averaged; a window counts half as much after `HALF_LIFE` more of them at that point, so the mean is
recent. Between known points it is interpolated; beyond them, the nearest counts. Completeness, the share of a
window's rows that are there at a point, is learned in the same way, rows over rows. An error that is unknown (NaN)
changes no mean.

>>> learned = ByPoint(columns=1)
>>> learned.add(np.array([0.5, 1.0]), np.array([[0.2], [0.0]]), early=np.array([8, 10]), final=np.array([10, 10]))
>>> round(float(learned.error(0.75)[0]), 3), round(learned.completeness(0.75), 3), learned.completeness(0.5)
(0.1, 0.9, 0.8)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from typing import Any

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
        summary = self.table.select(list(self._groups))
        for name, column in (("windows", windows), ("error", errors / windows)):
            summary = summary.append_column(name, pa.array(column))
        return summary.append_column("worst", self.table.column("__worst"))


PER_SLIDE = 20
"""So many points of a slide are kept apart."""
POINTS = 2 * PER_SLIDE + 1
HALF_LIFE = 50
"""After so many more windows, a window counts half."""
FADED = 1e-9
"""What counts less is forgotten."""


def place_of(points: Floats) -> NDArray[np.intp]:
    """The number of the nearest point that is kept.

    >>> place_of(np.array([0.0, 0.76, 9.0])).tolist()
    [0, 15, 40]
    """
    return np.clip(np.rint(points * PER_SLIDE), 0, POINTS - 1).astype(np.intp)


class ByPoint:
    """Fading sums over windows, for every point of the slide."""

    def __init__(self, columns: int) -> None:
        self.windows = np.zeros(POINTS)
        self.errors = np.zeros((POINTS, columns))
        self.worst = np.zeros((POINTS, columns))
        self.unknown = np.zeros((POINTS, columns))
        self.early_rows = np.zeros(POINTS)
        self.final_rows = np.zeros(POINTS)

    def add(self, points: Floats, errors: Floats, early: NDArray[np.int64], final: NDArray[np.int64]) -> None:
        """Learn from windows: of each the point, its mean error by column, its rows then and in the end."""
        places = place_of(points)
        fading = 0.5 ** (np.bincount(places, minlength=POINTS) / HALF_LIFE)
        self.windows *= fading
        self.errors *= fading[:, None]
        self.unknown *= fading[:, None]
        self.early_rows *= fading
        self.final_rows *= fading
        np.add.at(self.windows, places, 1.0)
        unknown = np.isnan(errors)
        errors = np.where(unknown, 0.0, errors)
        np.add.at(self.unknown, places, unknown)
        np.add.at(self.errors, places, errors)
        np.maximum.at(self.worst, places, errors)
        np.add.at(self.early_rows, places, early)
        np.add.at(self.final_rows, places, final)

    def error(self, point: float) -> Floats:
        """The error to expect at a point, by column; NaN before anything is known.

        >>> ByPoint(columns=2).error(0.5).tolist()
        [nan, nan]
        """
        windows = self.windows[:, None] - self.unknown
        return np.array([_between(point, sums, of) for sums, of in zip(self.errors.T, windows.T, strict=True)])

    def completeness(self, point: float) -> float:
        """The share of a window's rows to expect at a point; NaN before anything is known."""
        known = np.nonzero(self.final_rows)[0]
        if len(known) == 0:
            return math.nan
        return float(np.interp(point * PER_SLIDE, known, self.early_rows[known] / self.final_rows[known]))

    def copy(self) -> ByPoint:
        """A copy with the same sums."""
        other = copy(self)
        for name in _SUMS:
            setattr(other, name, getattr(self, name).copy())
        return other

    def saved(self) -> dict[str, Any]:
        """The sums as plain data, of the points that are known."""
        known = np.nonzero(self.windows)[0]
        sums = {name: getattr(self, name)[known].tolist() for name in _SUMS}
        return {"points": known.tolist(), "columns": self.errors.shape[1], **sums}

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> ByPoint:
        """Errors by point, from what `saved` gave.

        >>> learned = ByPoint(1)
        >>> learned.add(np.array([0.5]), np.array([[0.2]]), np.array([8]), np.array([10]))
        >>> ByPoint.restored(learned.saved()).error(0.5).tolist()
        [0.2]
        """
        learned = cls(saved["columns"])
        for name in _SUMS:
            if saved["points"] and name in saved:
                getattr(learned, name)[saved["points"]] = saved[name]
        return learned


def _between(point: float, sums: Floats, windows: Floats) -> float:
    """The mean at a point, between the nearest ones that are known; NaN where none is."""
    known = np.nonzero(windows > FADED)[0]
    return float(np.interp(point * PER_SLIDE, known, sums[known] / windows[known])) if len(known) else math.nan


_SUMS = ("windows", "errors", "worst", "unknown", "early_rows", "final_rows")
