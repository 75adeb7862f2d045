"""The accuracy of a query's early answers, measured when the final ones come.

Law: an early row waits for the final row of its window and group, and is scored against it (`error.py` has the
formulas). When its window is over without one, it has *vanished*; a final row of a window that was asked for, in a
group of which there was no early row, is *unforeseen*. Of several early rows of one window, group and point, the last
one counts. A window that was asked for at some point counts once in all means, whatever the number of its groups.
(Prodding thesis, sections 3.4, 4.3 and 6.2 (c): running accuracy, by prodding aggressiveness.)

>>> accuracy = Accuracy(groups=(), values={"total": "total"})
>>> row = {"window_start": [0], "window_end": [50]}
>>> accuracy.emitted(pa.table({**row, "rows": [4], "total": [110]}), point=0.9, clock=45)
>>> scored = accuracy.settle(pa.table({**row, "rows": [5], "total": [135]}), closed=50, clock=62)
>>> scored.errors.round(3).tolist(), accuracy.summary().gain
([[0.185]], 17.0)
>>> expected = accuracy.expected(0.9)
>>> round(expected.errors["total"], 3), expected.completeness
(0.185, 0.8)
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eventide.eventtime.early.triggers import RECENT
from eventide.eventtime.pattern import Pattern
from eventide.results.breakdown import ByGroup, ByPoint, numbered, place_of
from eventide.results.error import Comparison, FailSafeComparison, Floats, errors

WINDOW = ("window_start", "window_end")
MANY = 4096
"""From so many waiting rows on, they are looked through for rows that came again."""


@dataclass(frozen=True)
class ScoredWindows:
    """Windows that were scored: their ends, the points at which they were asked for, and mean errors by column."""

    ends: NDArray[np.int64]
    points: Floats
    errors: Floats
    judged: NDArray[np.bool_]

    def worst_column(self) -> Floats:
        """Of each window the error of the worst column that is judged: what a control has to keep in bounds.

        NaN where none of them is known.
        """
        return _worst(self.errors[:, self.judged])


@dataclass(frozen=True)
class ErrorEstimate:
    """What is known of an early row before the final one comes; None where nothing is."""

    errors: Mapping[str, float | None]
    completeness: float | None


@dataclass(frozen=True)
class AccuracySummary:
    """How early answers did: of all windows so far, but for `recent`, which is of about the last 50."""

    windows: int
    error: float | None
    recent: float | None
    worst: float | None
    gain: float | None
    vanished: int
    unforeseen: int


class Accuracy:
    """Early rows of one query that wait for their final ones, and what was learned from those that have met them.

    `groups` are the group columns. `values` are the columns to score: each early column with the final one to compare
    it with; `comparisons` has those of the user, by early column. The columns `judged` (all of them, if they are not
    named) are those that summaries and controls go by. What a comparison cannot tell is left out of all means.
    """

    def __init__(
        self,
        groups: tuple[str, ...],
        values: Mapping[str, str],
        comparisons: Mapping[str, Comparison] | None = None,
        judged: Collection[str] | None = None,
    ) -> None:
        self.groups = groups
        self.values = dict(values)
        self._comparisons = {
            name: FailSafeComparison(name, comparison) for name, comparison in (comparisons or {}).items()
        }
        self._judged = np.array([judged is None or name in judged for name in self.values], dtype=bool)
        self.waiting: pa.Table | None = None
        self.by_point = ByPoint(len(self.values))
        self.by_group = ByGroup(groups)
        self._many = MANY
        self._counts = dict.fromkeys(("windows", "vanished", "unforeseen"), 0)
        self._sums = dict.fromkeys(("error", "worst", "gain", "recent", "recently"), 0.0)

    # Early rows

    def emitted(self, early: pa.Table, point: float | Floats, clock: int) -> None:
        """Note early rows that were emitted, at a point of their slides and by the clock."""
        if early.num_rows == 0:
            return
        points = np.broadcast_to(np.asarray(point, dtype=np.float64), early.num_rows)
        emitted = early.select(
            [*WINDOW, "rows", *self.groups, *(name for name in self.values if name not in self.groups)]
        )
        emitted = emitted.append_column("__point", pa.array(points)).append_column(
            "__clock", pa.array(np.full(early.num_rows, clock, dtype=np.int64))
        )
        self.waiting = emitted if self.waiting is None else pa.concat_tables([self.waiting, emitted])
        if self.waiting.num_rows > self._many:
            self.waiting = self._latest(self.waiting)
            self._many = max(MANY, 2 * self.waiting.num_rows)

    def _latest(self, waiting: pa.Table) -> pa.Table:
        """Without rows that came again at the same point."""
        places = pa.array(place_of(waiting.column("__point").to_numpy()))
        [numbers] = numbered([waiting.append_column("__place", places)], [*WINDOW, *self.groups, "__place"])
        _, first_from_behind = np.unique(numbers[::-1], return_index=True)
        return waiting.take(pa.array(np.sort(len(numbers) - 1 - first_from_behind))).combine_chunks()

    # Final rows

    def settle(self, final: pa.Table | None, closed: int, clock: int) -> ScoredWindows:
        """Score early rows against the final ones of a round.

        Windows with their last instant at or before `closed` are over. Rows of others that have not met their final row
        go on waiting.
        """
        if self.waiting is None or self.waiting.num_rows == 0:
            return self._nothing()
        waiting = self._latest(self.waiting)
        over = waiting.column("window_end").cast(pa.int64()).to_numpy() - 1 <= closed
        if final is None or final.num_rows == 0:
            self._counts["vanished"] += int(over.sum())
            self.waiting = waiting.filter(pa.array(~over))
            return self._nothing()
        emitted, true = numbered([waiting, final], [*WINDOW, *self.groups])
        order = np.argsort(true, kind="stable")
        place = np.searchsorted(true, emitted, sorter=order).clip(max=len(true) - 1)
        partner = order[place]
        is_scored = true[partner] == emitted
        self._counts["vanished"] += int((over & ~is_scored).sum())
        self._count_unforeseen(waiting, final, emitted, true)
        self.waiting = waiting.filter(pa.array(~over & ~is_scored))
        return self._score(waiting.filter(pa.array(is_scored)), final.take(pa.array(partner[is_scored])), clock)

    def _count_unforeseen(self, early: pa.Table, final: pa.Table, emitted: NDArray[Any], true: NDArray[Any]) -> None:
        asked, closing = numbered([early, final], list(WINDOW))
        self._counts["unforeseen"] += int((np.isin(closing, asked) & ~np.isin(true, emitted)).sum())

    def _score(self, early: pa.Table, final: pa.Table, clock: int) -> ScoredWindows:
        if early.num_rows == 0:
            return self._nothing()
        found = np.column_stack(
            [
                errors(early.column(name), final.column(of), self._comparisons.get(name))
                for name, of in self.values.items()
            ]
            or [np.zeros(early.num_rows)]
        )[:, : len(self.values)]
        points = early.column("__point").to_numpy()
        gains = clock - early.column("__clock").to_numpy()
        # One line for each window and point: the mean over its groups.
        keyed = early.append_column("__place", pa.array(place_of(points)))
        [windows] = numbered([keyed], [*WINDOW, "__place"])
        _, first, line, size = np.unique(windows, return_index=True, return_inverse=True, return_counts=True)

        def mean(of: NDArray[Any]) -> Floats:
            sums, known = np.zeros((len(first), *of.shape[1:])), np.zeros((len(first), *of.shape[1:]))
            np.add.at(sums, line, np.nan_to_num(of, nan=0.0))
            np.add.at(known, line, ~np.isnan(of))
            with np.errstate(invalid="ignore"):
                return sums / known

        by_window = mean(found)
        rows = [mean(table.column("rows").to_numpy()) * size for table in (early, final)]
        self.by_point.add(mean(points), by_window, rows[0].astype(np.int64), rows[1].astype(np.int64))
        ends = early.column("window_end").cast(pa.int64()).to_numpy()
        worst = _worst(found[:, self._judged])
        known = ~np.isnan(worst)
        self.by_group.add(early.filter(pa.array(known)), worst[known], ends[known])
        self._learn(by_window, worst[known], mean(gains))
        order = np.argsort(ends[first], kind="stable")
        return ScoredWindows(ends[first][order], mean(points)[order], by_window[order], self._judged)

    def _learn(self, by_window: Floats, worst: Floats, gains: Floats) -> None:
        means, sums = _worst(by_window[:, self._judged]), self._sums
        known = ~np.isnan(means)
        means, gains = means[known], gains[known]
        fading = 0.5 ** (len(means) / (RECENT / 2))
        self._counts["windows"] += len(means)
        sums["error"] += float(means.sum())
        sums["worst"] = max(sums["worst"], float(worst.max(initial=0.0)))
        sums["gain"] += float(gains.sum())
        sums["recent"] = sums["recent"] * fading + float(means.sum())
        sums["recently"] = sums["recently"] * fading + len(means)

    def _nothing(self) -> ScoredWindows:
        return ScoredWindows(np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros((0, len(self.values))), self._judged)

    # What is known

    def expected(self, point: float) -> ErrorEstimate:
        """What to expect of an early row at a point of the slide."""
        found = self.by_point.error(point)
        return ErrorEstimate(
            dict(zip(self.values, map(_known, found), strict=True)), _known(self.by_point.completeness(point))
        )

    def summary(self) -> AccuracySummary:
        """How early answers have done.

        >>> Accuracy((), {"n": "n"}).summary().error is None
        True
        """
        counts, sums, windows = self._counts, self._sums, self._counts["windows"]
        if not windows:
            return AccuracySummary(0, None, None, None, None, counts["vanished"], counts["unforeseen"])
        return AccuracySummary(
            windows,
            sums["error"] / windows,
            sums["recent"] / sums["recently"],
            sums["worst"],
            sums["gain"] / windows,
            counts["vanished"],
            counts["unforeseen"],
        )

    @property
    def faults(self) -> tuple[str, ...]:
        """What went wrong with comparisons of the user, a sentence for each."""
        return tuple(one.fault for one in self._comparisons.values() if one.fault is not None)

    def copy(self) -> Accuracy:
        """A copy for a round that may fail."""
        other = copy(self)
        other.by_point, other.by_group = self.by_point.copy(), copy(self.by_group)
        other._counts, other._sums = dict(self._counts), dict(self._sums)
        return other

    # What the round record keeps

    def saved(self) -> dict[str, Any]:
        """Plain data beside the two tables, `waiting` and `by_group.table`."""
        return {
            "version": 1,
            "values": self.values,
            "counts": dict(self._counts),
            "sums": dict(self._sums),
            "points": self.by_point.saved(),
        }

    def restore(self, saved: dict[str, Any], waiting: pa.Table | None, groups: pa.Table | None) -> None:
        """Go on from what was saved; what was learned of other columns is not for this query, and is left."""
        self.waiting = waiting
        if saved["values"] != self.values:
            self.waiting = None
            return
        self._counts, self._sums = dict(saved["counts"]), dict(saved["sums"])
        self.by_point = ByPoint.restored(saved["points"])
        self.by_group = ByGroup(self.groups, groups)


def _worst(found: Floats) -> Floats:
    """The largest error of each line that is known; NaN where there are errors, and none of them is known."""
    largest: Floats = np.where(np.isnan(found), 0.0, found).max(axis=1, initial=0.0)
    return np.where(np.isnan(found).all(axis=1) & (found.shape[1] > 0), np.nan, largest)


def _known(number: float) -> float | None:
    return None if math.isnan(number) else float(number)


def filtered(table: pa.Table, groups: Mapping[str, Pattern]) -> pa.Table:
    """The rows whose groups have these patterns.

    >>> filtered(pa.table({"k": [1, 2, None]}), {"k": Pattern.of([None, {"between": [2, 5]}])}).num_rows
    2
    """
    for name, pattern in groups.items():
        column = table.column(name)
        matching = column.is_null().to_numpy() & pattern.null
        for low, high in pattern.ranges:
            within = column.is_valid().to_numpy()
            for edge, compare in ((low, pc.greater_equal), (high, pc.less_equal)):
                if edge is not None:
                    within &= pc.fill_null(compare(column, pa.scalar(edge).cast(column.type)), False).to_numpy()
            matching |= within
        table = table.filter(pa.array(matching))
    return table
