"""What is open of a query: which of its windows hold rows and have no answer yet, and what would close each.

Law: a window over time closes when the heartbeat of what the query reads reaches its last instant. A window over a
count of rows closes when its last row has a number, which it gets when the heartbeat reaches its time; where that row
has not come yet, no heartbeat closes it.

>>> windows = OpenTime("q", TimeKind.SEQUENCE, Window(20, 10), 20, closed_before=30, panes=np.array([20, 30]))
>>> windows.open(), windows.needs(40), windows.below(34)
([(20, 40), (30, 50)], Need(heartbeat=39, rows=0), Need(heartbeat=39, rows=0))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from eventide.engine.operators.windows import closing, first_start, meeting, needed_from
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants
from eventide.eventtime.punctuation import Span
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query
from eventide.plan.declared.stream import TimeKind
from eventide.plan.declared.window import RowWindow, SameWindow, Window

MOST_NUMBERED = 10_000
"""Of windows over a count of rows, so many are named at most: there is one for every slide, without end."""


class Need(NamedTuple):
    """The heartbeat that is needed of what a query reads; `rows` more have to come before any would do."""

    heartbeat: int
    rows: int = 0


@dataclass(frozen=True)
class OpenTime:
    """A query over windows of time: `panes` hold something; `length` is how long its windows are said to be."""

    query: str
    kind: TimeKind
    window: Window
    length: int
    closed_before: int
    panes: Instants
    holes: tuple[Span, ...] = ()
    """What was set aside: windows that meet it are open behind the bound."""

    @classmethod
    def of(cls, query: BoundQuery, closed_before: int, panes: Instants, holes: tuple[Span, ...] = ()) -> OpenTime:
        """The open windows of a query that runs."""
        return cls(query.query.name, query.window_kind, query.panes, query.windows.range, closed_before, panes, holes)

    def open(self) -> list[tuple[int, int]]:
        """Start and end of every window that holds a row and is open."""
        if self.closed_before == FOREVER or len(self.panes) == 0:
            return []
        ends = closing(self.window, self.panes, self.closed_before, FOREVER).column("window_end").to_numpy()
        if self.holes:
            over = closing(self.window, self.panes, NEVER, self.closed_before)
            ends = np.union1d(ends, over.filter(meeting(over, self.holes)).column("window_end").to_numpy())
        return [(int(end) - self.length, int(end)) for end in np.unique(ends)]

    def needs(self, end: int) -> Need:
        """What closes the window that ends there."""
        return Need(end - 1)

    def below(self, promise: int) -> Need:
        """What lets it promise so much to the queries that read it."""
        first = self.window.pane_of(promise + 1)
        return Need(promise if first == promise + 1 else first + self.window.pane - 1)

    def is_closed(self, end: int) -> bool:
        """Whether the window that ends there is over."""
        window = Span(end - self.window.range, end)
        return end <= self.closed_before and not any(window.overlaps(hole) for hole in self.holes)


@dataclass(frozen=True)
class OpenRows:
    """A query over windows of rows: `numbered` have a number, `waiting` are the times of those that have none."""

    query: str
    kind: TimeKind
    window: Window
    numbered: int
    answered: int
    waiting: Instants
    closed_before: int = NEVER

    @property
    def length(self) -> int:
        """How many rows a window holds."""
        return self.window.range

    def open(self) -> list[tuple[int, int]]:
        """The first and the last number of every window that holds a row and is open, the last not included."""
        if self.answered == FOREVER:
            return []
        first = max(0, (self.answered - self.window.range) // self.window.slide + 1) * self.window.slide
        rows = self.numbered + len(self.waiting)
        starts = range(first, rows, self.window.slide)[:MOST_NUMBERED]
        return [(start, start + self.window.range) for start in starts]

    def needs(self, end: int) -> Need:
        """What gives its last row a number."""
        more = end - self.numbered
        if more <= 0:
            return Need(NEVER)
        if more > len(self.waiting):
            return Need(int(self.waiting[-1]) if len(self.waiting) else NEVER, more - len(self.waiting))
        return Need(int(self.waiting[more - 1]))

    def below(self, promise: int) -> Need:
        """What lets it promise so much to the queries that read it."""
        return self.needs(promise + 1)

    def is_closed(self, end: int) -> bool:
        """Whether the window that ends there is over."""
        return end <= self.answered


OpenQuery = OpenTime | OpenRows


def open_of_record(program: Program, query: Query, saved: dict[str, Any], times: Instants) -> OpenQuery:
    """What is open of a query as a round record has it; `times` are those of rows that may wait for a number."""
    windows, panes, kind = windows_of(program, query)
    closed = saved["closed_before"]
    if isinstance(query.window, RowWindow):
        waiting = np.sort(times[times >= closed])
        return OpenRows(query.name, kind, panes, saved["numbered"], saved["emitted_before"], waiting, closed)
    held = np.unique([pane for part in saved["state"]["slices"] for pane in part["panes"]]).astype(np.int64)
    holes = tuple(Span(*hole) for hole in saved.get("holes", ()))
    held = held[held >= min(needed_from(panes, closed), first_start(panes, holes))]
    return OpenTime(query.name, kind, panes, windows.range, closed, held, holes)


def windows_of(program: Program, query: Query) -> tuple[Window, Window, TimeKind]:
    """Its windows as they are shown, the windows that its slices are cut by, and what their edges are."""
    if isinstance(query.window, RowWindow):
        return query.window.over_numbers, query.window.over_numbers, TimeKind.SEQUENCE
    kind = kind_of_times(program, query.stream)
    below = program.below(query)
    if isinstance(query.window, SameWindow):
        assert below is not None
        windows, _, _ = windows_of(program, below)
        return windows, query.window.over(windows), kind
    return query.window, query.window, kind


def kind_of_times(program: Program, read: str) -> TimeKind:
    """What the times of a stream, of results, or of the rows of an operator are."""
    operator = program.operator(read)
    if operator is not None:
        kind = kind_of_times(program, operator.inputs[0])
    elif any(query.name == read for query in program.queries):
        kind = windows_of(program, program.query(read))[2]
    else:
        return program.stream(read).time_kind
    return TimeKind.SEQUENCE if kind is TimeKind.SEQUENCE else TimeKind.TIMESTAMP


def known(instant: int) -> int | None:
    """None for the ends of time, which mean nothing to a reader."""
    return None if abs(instant) >= EDGE else instant
