"""Prodders: when to ask for early answers, by the clock, at points of the slide, or as time goes on in the data.

Law: a prodder is a declaration without state. It tells which prods fall due from one moment, not included, up to
another; whether that stretch is looked at in one piece or in many, the same windows are asked for. So a round that took
long asks once where short rounds would have asked often, and never for other windows. (Prodding thesis, section 3.2:
the prodder in the plan and the input adapter; section 4.3: one prod for each slide, 90 s into its 120.)

>>> ends = WindowEnds(slide=120)
>>> AtPoints((0.75,)).due(ends, Moment(200), Moment(215))
(Prod(up_to=239, after=119, groups={}),)
>>> Every(60).due(ends, Moment(200), Moment(215)), Every(60).due(ends, Moment(239), Moment(245))
((), (Prod(up_to=239, after=-9223372036854775808, groups={}),))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from eventide.errors import DeclarationError
from eventide.eventtime.early.prod import Prod, WindowEnds
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, shift


@dataclass(frozen=True)
class Moment:
    """A moment of a stream: the clock, and the latest time that has arrived by then."""

    clock: int
    latest: int = NEVER


@runtime_checkable
class Prodder(Protocol):
    """Tells what is to be asked for as time goes on."""

    def due(self, ends: WindowEnds, before: Moment, now: Moment) -> tuple[Prod, ...]:
        """The prods that fall due after `before`, up to `now`."""
        ...


@dataclass(frozen=True)
class Every:
    """A prod at every multiple of `period` on the clock, for the windows that are over or in their last slide.

    >>> Every(0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: PROD EVERY 0 has no pause between two prods: give one above 0
    """

    period: int

    def __post_init__(self) -> None:
        if self.period <= 0:
            raise DeclarationError(f"PROD EVERY {self.period} has no pause between two prods: give one above 0")

    def due(self, ends: WindowEnds, before: Moment, now: Moment) -> tuple[Prod, ...]:
        """One prod at most: the last of them asks for all that the others would have."""
        if now.clock in (NEVER, FOREVER):
            return ()
        struck = now.clock - now.clock % self.period
        return (Prod(shift(ends.at_or_after(struck), -1)),) if struck > before.clock else ()


@dataclass(frozen=True)
class AtPoints:
    """A prod for each window at each of some points of its last slide: 0.75 is when three quarters have passed.

    Points above 1 lie after the end of the window, for rows that are long on their way.

    >>> AtPoints((0.75, -1.0))
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: PROD AT -100 %: give a share of the slide, of 0 % or more
    """

    points: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.points:
            raise DeclarationError("PROD AT needs a point: a share of the slide, such as 75 %")
        for point in self.points:
            if not 0 <= point < float("inf"):
                raise DeclarationError(f"PROD AT {point * 100:g} %: give a share of the slide, of 0 % or more")

    def due(self, ends: WindowEnds, before: Moment, now: Moment) -> tuple[Prod, ...]:
        """One prod at most for each point, for all windows that came to it."""
        prods = (between(ends, before.clock, now.clock, ends.lead(point)) for point in self.points)
        return tuple(prod for prod in prods if prod is not None)


@dataclass(frozen=True)
class ByProgress:
    """Another prodder, which looks at the latest time that has arrived where it would look at the clock.

    This is how streams are prodded whose times are no clock times: numbers of a sequence, or a recording.

    >>> ByProgress(AtPoints((0.5,))).due(WindowEnds(10), Moment(0, latest=4), Moment(0, latest=5))
    (Prod(up_to=9, after=-1, groups={}),)
    """

    inner: Prodder

    def due(self, ends: WindowEnds, before: Moment, now: Moment) -> tuple[Prod, ...]:
        """What the other prodder says when the time that has arrived is its clock."""
        return self.inner.due(ends, Moment(before.latest, before.latest), Moment(now.latest, now.latest))


def between(ends: WindowEnds, before: int, now: int, lead: int) -> Prod | None:
    """The prod for the windows that came to within `lead` of their ends after `before`, up to `now`.

    >>> between(WindowEnds(10), 0, 35, lead=0)
    Prod(up_to=29, after=-1, groups={})
    """
    if not -EDGE < now < EDGE:
        return None
    last = ends.at_or_before(now + lead)
    first = NEVER if before <= -EDGE else ends.at_or_before(before + lead)
    return Prod(last - 1, shift(first, -1)) if last > first else None
