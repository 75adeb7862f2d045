"""What is open of a query: which of its windows hold rows and have no answer yet, and what would close each.

Law: a window over time closes when the heartbeat of what the query reads reaches its last instant. A window over a
count of rows closes when its last row has a number, which it gets when the heartbeat reaches its time; where that row
has not come yet, no heartbeat closes it.

>>> w = Window(20, 10)
>>> windows = OpenTime("q", TimeKind.SEQUENCE, w, w, closed_before=30, panes=np.array([20, 30]))
>>> windows.open(), windows.needs(40), windows.below(34)
([(20, 40), (30, 50)], Need(heartbeat=39, rows=0), Need(heartbeat=39, rows=0))
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from eventide.engine.operators.windows import closing, meeting
from eventide.errors import DeclarationError
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants
from eventide.eventtime.punctuation import Span
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.stream import TimeKind
from eventide.plan.declared.window import Window

MOST_NUMBERED = 10_000
"""Of windows over a count of rows, so many are named at most: there is one for every slide, without end."""


class Need(NamedTuple):
    """The heartbeat that is needed of what a query reads; `rows` more have to come before any would do."""

    heartbeat: int
    rows: int = 0


@dataclass(frozen=True)
class OpenTime:
    """A query over windows of time: `panes` hold something; `shown` are its windows as they are said to be."""

    noun: ClassVar[str] = "window"
    """What one of its windows is called."""

    query: str
    kind: TimeKind
    window: Window
    shown: Window
    closed_before: int
    panes: Instants
    holes: tuple[Span, ...] = ()
    """What was set aside: windows that meet it are open behind the bound."""

    @classmethod
    def of(cls, query: BoundQuery, closed_before: int, panes: Instants, holes: tuple[Span, ...] = ()) -> OpenTime:
        """The open windows of a query that runs."""
        return cls(query.query.name, query.window_kind, query.panes, query.windows, closed_before, panes, holes)

    def open(self) -> list[tuple[int, int]]:
        """Start and end of every window that holds a row and is open."""
        if self.closed_before == FOREVER or len(self.panes) == 0:
            return []
        ends = closing(self.window, self.panes, self.closed_before, FOREVER).column("window_end").to_numpy()
        if self.holes:
            over = closing(self.window, self.panes, NEVER, self.closed_before)
            ends = np.union1d(ends, over.filter(meeting(over, self.holes)).column("window_end").to_numpy())
        return [(self.shown.start_of(int(end)), int(end)) for end in np.unique(ends)]

    def needs(self, end: int) -> Need:
        """What closes the window that ends there."""
        return Need(end - 1)

    def below(self, promise: int) -> Need:
        """What it needs of its input to promise so much to its readers."""
        first = self.window.pane_of(promise + 1)
        return Need(promise if first == promise + 1 else first + self.window.pane - 1)

    def is_closed(self, end: int) -> bool:
        """Whether the window that ends there is over."""
        window = Span(self.window.start_of(end), end)
        return end <= self.closed_before and not any(window.overlaps(hole) for hole in self.holes)

    def end_of(self, start: int) -> int:
        """The end of the window that starts there."""
        opened = next((end for first, end in self.open() if first == start), None)
        return _aligned(self.query, self.window, self.shown.end_of(start)) if opened is None else opened


@dataclass(frozen=True)
class OpenRows:
    """A query over windows of rows: `numbered` have a number, `waiting` are the times of those that have none."""

    noun: ClassVar[str] = "rows"
    """What one of its windows is called."""

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
        """What it needs of its input to promise so much to its readers."""
        return self.needs(promise + 1)

    def is_closed(self, end: int) -> bool:
        """Whether the window that ends there is over."""
        return end <= self.answered

    def end_of(self, start: int) -> int:
        """The end of the window that starts there."""
        return _aligned(self.query, self.window, start + self.length)


def _aligned(query: str, window: Window, end: int) -> int:
    """The end, where a window ends there."""
    if (end - window.offset - window.range) % window.slide:
        raise DeclarationError(f"no window of query {query!r} starts there: its windows are aligned otherwise")
    return end


@dataclass(frozen=True)
class OpenSessions:
    """A query over sessions: those that end by `passed` were emitted; `find` gives the spans of others, as they are.

    >>> sessions = OpenSessions("q", TimeKind.SEQUENCE, lambda: [(3, 15), (9, 21)], passed=14)
    >>> sessions.open(), sessions.needs(15), sessions.end_of(9)
    ([(3, 15), (9, 21)], Need(heartbeat=15, rows=0), 21)
    """

    query: str
    kind: TimeKind
    find: Callable[[], list[tuple[int, int]]]
    passed: int = NEVER
    noun: str = "session"
    """What one of its windows is called."""

    @property
    def closed_before(self) -> int:
        """Sessions that end before this were emitted."""
        return self.passed if self.passed in (NEVER, FOREVER) else self.passed + 1

    def open(self) -> list[tuple[int, int]]:
        """Start and end of the open sessions that end first: the end is where they end if no row comes."""
        return [] if self.passed == FOREVER else [span for span in self.find() if span[1] > self.passed]

    def needs(self, end: int) -> Need:
        """What closes the session that ends there: until then a row would still join it."""
        return Need(end)

    def below(self, promise: int) -> Need:
        """What lets it promise so much to the queries that read it."""
        return Need(promise + 1)

    def is_closed(self, end: int) -> bool:
        """Whether the session that ends there is over."""
        return end <= self.passed

    def end_of(self, start: int) -> int:
        """The end of the open session that starts there."""
        found = next((end for first, end in self.open() if first == start), None)
        if found is None:
            raise DeclarationError(f"no open session of query {self.query!r} starts there")
        return found


OpenQuery = OpenTime | OpenRows | OpenSessions


def known(instant: int) -> int | None:
    """None for the ends of time, which mean nothing to a reader."""
    return None if abs(instant) >= EDGE else instant
