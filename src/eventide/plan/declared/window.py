"""Windows over time, over a count of rows, or over the sessions of a group, and the panes they are made of.

Law of panes: with pane width g = gcd(range, slide), counted from the offset, every window is a whole number of whole
panes, so whatever was reduced to panes can be merged into windows (prodding thesis, section 2.4, after Li et al.). A
window [start, end) is half-open; a row at time t is in it when start <= t < end. Windows start at offset + k * slide
for every whole number k.

>>> w = Window(range=60, slide=20)
>>> w.pane, w.pane_of(59), w.starts_covering(40)
(20, 40, range(0, 41, 20))
>>> Window(range=10, slide=4).pane
2
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import ClassVar, TypeVar

from eventide.errors import DeclarationError
from eventide.eventtime.instant import Instants

Times = TypeVar("Times", int, Instants)
"""An instant, or an array of them: what is computed of both alike."""

TUMBLING = -(2**63)
"""A SLIDE that was left out: as long as RANGE. One that was given, 0 too, has to be above 0."""

MOST_WINDOWS = 1_000_000
"""In how many windows a row may be: each of them has a result of its own."""


@dataclass(frozen=True)
class Window:
    """`range` long, one every `slide`, aligned at `offset`; in microseconds, or in the numbers of a sequence.

    `slide` defaults to `range` (a tumbling window). `empty` asks for a result of windows without rows too.

    >>> Window(range=0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a window of RANGE 0 holds nothing: give a RANGE above 0
    >>> Window(range=31_536_000_000_000, slide=1)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: every row would be in 31,536,000,000,000 windows, and at most 1,000,000 can be: \
give a larger SLIDE
    """

    range: int
    slide: int = TUMBLING
    offset: int = 0
    empty: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "slide", self.range if self.slide == TUMBLING else self.slide)
        _check(self.range, self.slide)

    @property
    def pane(self) -> int:
        """The width of a pane."""
        return gcd(self.range, self.slide)

    def pane_of(self, time: int) -> int:
        """The start of the pane that holds `time`."""
        return time - (time - self.offset) % self.pane

    def start_of(self, end: Times) -> Times:
        """The start of the window that ends there."""
        return end - self.range

    def end_of(self, start: int) -> int:
        """The end of the last window that starts there."""
        return start + self.range

    def last_end(self, pane: Times) -> Times:
        """The end of the last window that begins at or before a pane."""
        return pane - (pane - self.offset) % self.slide + self.range

    def first_end_after(self, time: Times) -> Times:
        """The first instant after `time` at which a window ends.

        >>> Window(range=60, slide=20).first_end_after(79), Window(range=60, slide=20).first_end_after(80)
        (80, 100)
        """
        return time - (time - self.offset - self.range) % self.slide + self.slide

    def first_start_after(self, time: int) -> int:
        """The first instant after `time` at which a window begins."""
        return time + 1 + (self.offset - time - 1) % self.slide

    def start_of_end(self, time: int) -> int:
        """The start of the first window whose last instant is at or after `time`.

        >>> Window(range=60, slide=20).start_of_end(79), Window(range=60, slide=20).start_of_end(80)
        (20, 40)
        """
        return self.start_of(self.first_end_after(time))

    def starts_covering(self, pane: int) -> Sequence[int]:
        """The starts of every window that holds the pane; empty where SLIDE leaves a gap between windows."""
        last = pane - (pane - self.offset) % self.slide
        first = last - (last + self.range - pane - self.pane) // self.slide * self.slide
        return builtins.range(first, last + 1, self.slide)


@dataclass(frozen=True)
class GrowingWindow(Window):
    """Windows that begin every `range` and grow by `slide`: CUMULATE, or landmark windows.

    Of each stretch of `range` there is a window from its beginning up to every end that is a whole number of slides
    after it, the stretch itself being the last.

    >>> hour = GrowingWindow(range=60, slide=20)
    >>> [(hour.start_of(end), end) for end in (20, 40, 60, 80)]
    [(0, 20), (0, 40), (0, 60), (60, 80)]
    >>> GrowingWindow(range=60, slide=25)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: windows of RANGE 60 cannot grow by STEP 25: give a STEP that divides RANGE
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.range % self.slide:
            raise DeclarationError(
                f"windows of RANGE {self.range} cannot grow by STEP {self.slide}: give a STEP that divides RANGE"
            )
        if self.empty:
            raise DeclarationError("windows that grow are not shown while they are empty: drop EMPTY WINDOWS")

    def start_of(self, end: Times) -> Times:
        """The beginning of the stretch in which a window ends."""
        return end - 1 - (end - 1 - self.offset) % self.range

    def last_end(self, pane: Times) -> Times:
        """The end of the stretch that holds a pane."""
        return pane - (pane - self.offset) % self.range + self.range

    def first_start_after(self, time: int) -> int:
        """The beginning of the next stretch."""
        return time + 1 + (self.offset - time - 1) % self.range

    def starts_covering(self, pane: int) -> Sequence[int]:
        """The beginning of the stretch, which all of its windows share."""
        return (pane - (pane - self.offset) % self.range,)


@dataclass(frozen=True)
class RowWindow:
    """The last `range` rows in the order of time, every `slide` rows.

    Window number k holds the rows number k * slide up to k * slide + range (not included), counted from 0 over the
    whole stream in the order of time, simultaneous rows in the order of their values.

    >>> RowWindow(range=3, slide=-1)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: SLIDE -1 is not above 0: give how far the next window starts after this one
    """

    range: int
    slide: int = TUMBLING

    def __post_init__(self) -> None:
        object.__setattr__(self, "slide", self.range if self.slide == TUMBLING else self.slide)
        _check(self.range, self.slide)

    @property
    def over_numbers(self) -> Window:
        """These windows, as windows over the numbers of the rows."""
        return Window(self.range, self.slide)


LONGEST_GAP = 10_000 * 366 * 86_400_000_000
"""Beyond ten thousand years a gap is as good as none; a time and such a gap have a sum that is an instant."""

LAST_INSTANT = 253_402_300_799_999_999
"""The end of the year 9999, which is what life without an end shows as its end: calendars know none after it."""


@dataclass(frozen=True)
class SessionWindow:
    """Rows of a group of which each comes at most a gap after the one before it, in the order of time.

    A row at t with the gap g spans [t, t + g); rows of a group whose spans meet or touch are one session, from its
    first time up to the last end of its rows, not included. The gap is one length for all rows, or what the expression
    `by`, in Spark SQL, gives for each: a length of time, or a whole number where times are numbers. A row whose gap is
    NULL, 0 or less is in no session.

    >>> SessionWindow(600), SessionWindow(by="CASE WHEN k = 'slow' THEN INTERVAL '1' HOUR ELSE INTERVAL '1' MINUTE END")
    (SessionWindow(gap=600, by=None), SessionWindow(gap=0, by="CASE WHEN k = 'slow' THEN INTERVAL '1' HOUR \
ELSE INTERVAL '1' MINUTE END"))
    >>> SessionWindow(0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a SESSION with a gap of 0 has one instant: give a gap above 0
    """

    noun: ClassVar[str] = "session"
    """What one of them is called."""

    gap: int = 0
    by: str | None = None

    def __post_init__(self) -> None:
        if self.by is not None and self.gap:
            raise DeclarationError("a session has one gap: give a length, or an expression that gives one for each row")
        if self.by is None and self.gap <= 0:
            raise DeclarationError(f"a SESSION with a gap of {self.gap} has one instant: give a gap above 0")
        if self.gap > LONGEST_GAP:
            raise DeclarationError("a gap of more than 10,000 years closes no session: give a shorter one")

    @property
    def over_instants(self) -> Window:
        """Windows of one instant: a session may begin and end at any."""
        return Window(1)

    @property
    def endless(self) -> bool:
        """Whether it ends only when all is over."""
        return False


@dataclass(frozen=True)
class LifeWindow(SessionWindow):
    """All rows of a group while its state lives: a session whose gap is the time to live of the state, STATE TTL.

    Law: state is forgotten when the heartbeat reaches its last row's time + TTL, so whether a row goes on with it or
    begins anew is decided by the times of rows alone: it goes on where it comes at most TTL after one that does, or
    before it. With `LONGEST_GAP` state lives for ever: there is one life, which ends with the stream.

    >>> LifeWindow(86_400_000_000).endless, LifeWindow(LONGEST_GAP).endless
    (False, True)
    """

    noun: ClassVar[str] = "state"

    @property
    def endless(self) -> bool:
        """Whether state is never forgotten."""
        return self.gap == LONGEST_GAP


@dataclass(frozen=True)
class SameWindow:
    """No windows of its own: each window of the query below, once more.

    The results of one window of the query below are aggregated together, and shown with its start and end; where
    windows overlap, each is apart from all others (prodding thesis, Q3-4: the largest of the sums of a window).

    >>> SameWindow().over(Window(range=60, slide=20, offset=5))
    Window(range=20, slide=20, offset=65, empty=False)
    """

    def over(self, below: Window) -> Window:
        """Windows one `slide` long that end where the windows below end: the last instant of each is in its own."""
        return Window(below.slide, below.slide, below.offset + below.range)


AnyWindow = Window | RowWindow | SessionWindow | SameWindow
"""What a query may declare."""


def _check(length: int, slide: int) -> None:
    if length <= 0:
        raise DeclarationError(f"a window of RANGE {length} holds nothing: give a RANGE above 0")
    if slide <= 0:
        raise DeclarationError(f"SLIDE {slide} is not above 0: give how far the next window starts after this one")
    if length // slide > MOST_WINDOWS:
        raise DeclarationError(
            f"every row would be in {length // slide:,} windows, and at most {MOST_WINDOWS:,} can be: give a larger "
            "SLIDE"
        )
