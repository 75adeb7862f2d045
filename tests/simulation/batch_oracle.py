"""What a batch query over the rows that were accepted says of a program of several streams.

Law: at the end of a bounded run, however it was run, each step has told what a batch query gives over the rows that
were neither rejected nor late for whoever reads them; a row that is late for some windows is in all others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eventide.eventtime.instant import NEVER
from eventide.plan.binding import through
from eventide.plan.declared.join import Join, JoinKind, Lookup
from eventide.plan.declared.program import Operator, Program
from eventide.plan.declared.query import Query
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.window import RowWindow, SameWindow, Window
from eventide.testing.oracle import windows_holding

COLUMNS = ["t", "who", "v"]
"""The columns of a stream that its readers are told."""


@dataclass(frozen=True)
class Row:
    """A row on its way: the span of times that went into it, and its values by name."""

    start: int
    end: int
    values: tuple[tuple[str, Any], ...]

    @property
    def time(self) -> int:
        return self.end - 1

    def __getitem__(self, name: str) -> Any:
        return {**dict(self.values), "window_start": self.start, "window_end": self.end}[name]


Late = Counter[tuple[str, str, int, int | None]]
"""Rows that were late, by (reader, stream, value, answered): windows that end by `answered` miss it, or all if None."""


class BatchOracle:
    """What each step tells in the end, of the rows of each stream that were accepted by somebody."""

    def __init__(self, program: Program, rows: Mapping[str, Iterable[Row]], late: Late) -> None:
        self._streams = {name: list(found) for name, found in rows.items()}
        self._late = {(reader, name, value): answered for reader, name, value, answered in late}
        self.told: dict[str, list[Row]] = {}
        for step in program.steps:
            self.told[step.name] = self._answer(program, step)

    def shown(self, step: str) -> Counter[tuple[Any, ...]]:
        """The same, to be compared."""
        return Counter(shown(row) for row in self.told[step])

    def _answer(self, program: Program, step: Query | Operator) -> list[Row]:
        if isinstance(step, Query):
            return windows_of(
                step,
                [
                    (row, self._answered(step.name, name, row))
                    for name in through(program, step)
                    for row in self._accepted(step.name, name)
                ],
            )
        if isinstance(step, Rows):
            rows = [row for name in step.inputs for row in self._accepted(step.name, name)]
            names = [one.name for one in step.select] or COLUMNS
            return [Row(row.start, row.end, tuple((name, row[name]) for name in names)) for row in rows]
        if isinstance(step, Join):
            sides = (
                self._accepted(step.name, one.input, f"{step.name}__{one.alias}") for one in (step.left, step.right)
            )
            return pairs_of(step, *sides)
        versions = self._accepted(step.name, step.versions.input)
        return looked_up(step, self._accepted(step.name, step.rows.input), versions)

    def _accepted(self, reader: str, name: str, manager: str = "") -> list[Row]:
        if name in self.told:
            return self.told[name]
        late = self._late
        return [
            row
            for row in self._streams.get(name, ())
            if late.get((reader, name, row["v"]), NEVER) is not None and (manager, name, row["v"]) not in late
        ]

    def _answered(self, reader: str, name: str, row: Row) -> int:
        """The windows of a reader that end by then do not count the row."""
        answered = None if name in self.told else self._late.get((reader, name, row["v"]))
        return NEVER if answered is None else answered


def names_of(step: Query | Operator) -> list[str]:
    """The columns that are compared."""
    if isinstance(step, Query):
        return [one.name for one in (*step.groups, *step.select)]
    return [one.name for one in step.select] or COLUMNS


def shown(row: Row) -> tuple[Any, ...]:
    return (row.start, row.end, *(value for name, value in row.values))


def windows_of(query: Query, taken: Sequence[tuple[Row, int]]) -> list[Row]:
    """The results of a query over all its rows, each with the end up to which windows miss it."""
    rows = [row for row, _ in taken]
    held: dict[tuple[int, int], list[Row]] = {}
    if isinstance(query.window, RowWindow):
        rows = sorted(rows, key=lambda row: (row.time, *(row[group.name] for group in query.groups), row["v"]))
        for start in range(0, len(rows), query.window.slide):
            held[start, start + query.window.range] = list(rows[start : start + query.window.range])
    for row, answered in taken if not isinstance(query.window, RowWindow) else ():
        same = isinstance(query.window, SameWindow)
        for window in [(row.start, row.end)] if same else windows_holding(_time(query), row.time):
            if window[1] > answered:
                held.setdefault(window, []).append(row)
    found = []
    for (start, end), inside in held.items():
        groups: dict[tuple[Any, ...], list[Row]] = {}
        for row in inside:
            groups.setdefault(tuple(row[group.name] for group in query.groups), []).append(row)
        for group, of in groups.items():
            values = [value for row in of if (value := row["v"]) is not None]
            total, squares = (sum(values), sum(v * v for v in values)) if values else (None, None)
            named = zip((one.name for one in query.groups), group, strict=True)
            found.append(Row(start, end, (*named, ("n", len(of)), ("v", total), ("squares", squares))))
    return found


def _time(query: Query) -> Window:
    assert isinstance(query.window, Window)
    return query.window


def pairs_of(join: Join, lefts: Sequence[Row], rights: Sequence[Row]) -> list[Row]:
    """All pairs, and rows without a partner where the join keeps them; or the rows of the left that it chooses."""
    band, paired, found = join.bands[0], set[tuple[int, int]](), list[Row]()

    def tell(left: Row | None, right: Row | None) -> None:
        rows = [row for row in (left, right) if row is not None]
        values = [] if len(join.select) == 2 else [("who", left and left["who"])]
        values += [("v", left and left["v"]), ("w", right and right["v"])]
        found.append(Row(min(row.start for row in rows), max(row.end for row in rows), tuple(values)))

    for i, left in enumerate(lefts):
        for j, right in enumerate(rights):
            near = band.low <= right[band.right] - left[band.left] <= band.high
            if near and (not join.left.keys or left["who"] == right["who"]):
                paired |= {(0, i), (1, j)}
                if not join.kind.chooses:
                    tell(left, right)
    for i, left in enumerate(lefts):
        if join.kind.keeps_left and ((0, i) in paired) == (join.kind is JoinKind.SEMI):
            tell(left, None)
    for j, right in enumerate(rights):
        if join.kind.keeps_right and (1, j) not in paired:
            tell(None, right)
    return found


def looked_up(lookup: Lookup, rows: Sequence[Row], versions: Sequence[Row]) -> list[Row]:
    """Each row with the latest version of its key at its time."""
    found = []
    for row in rows:
        known = [(one.time, one["v"]) for one in versions if one["who"] == row["who"] and one.time <= row.time]
        if known or lookup.keeps_all:
            value = max(known)[1] if known else None
            found.append(Row(row.start, row.end, (("who", row["who"]), ("v", row["v"]), ("w", value))))
    return found
