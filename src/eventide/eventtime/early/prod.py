"""Prods, demands for an answer now over windows that may still be open, and where those windows end.

Law: a prod asks for every window whose last instant is after `after` and at or before `up_to`, in every group that its
pattern matches. Those are the windows that a heartbeat at `up_to` would close, but a prod closes nothing, frees nothing
and promises nothing: rows that match it may come after it (prodding thesis, section 3.1). A prod that comes at the
wrong moment is harmless, and is distinguished from the others (section 3.3, mis-timed prods):

- *too late*: every window that it could ask for is closed, so its final answer has been given;
- *too early*: no window that it asks for holds a row yet;
- *repeated*: nothing has arrived since an answer that covered it, so the answer is the same again.

>>> Prod(up_to=49).asks_for(np.array([49, 50, 99])).tolist()
[True, False, False]
>>> Prod(up_to=50, groups={"sensor": 1}).matches({"sensor": 1, "lane": 7})
True
>>> Prod(groups={"sensor": {"between": [3, 7]}, "lane": [1, 2]}).matches({"sensor": 5, "lane": 3})
False

*Windows.* Windows end at regular instants, and an instant lies at a point of a window's last slide. Windows end at
`anchor` + k * `slide` for every whole number k. The *point* of an instant in a window that ends at e is the share of
the window's last slide that has passed: 0 where the slide begins, 1 at e, more after it. Prodding aggressiveness is one
minus the point (prodding thesis, section 4.4).

>>> ends = WindowEnds(slide=120)
>>> ends.at_or_after(121), ends.at_or_before(121), ends.point(240, at=210)
(240, 120, 0.75)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.instant import FOREVER, NEVER, Instants, shift
from eventide.eventtime.pattern import Pattern


class Timing(Enum):
    """How a prod came, seen from the windows that it asks for."""

    TIMELY = "timely"
    TOO_EARLY = "too early"
    TOO_LATE = "too late"
    REPEATED = "repeated"


@dataclass(frozen=True)
class Prod:
    """Asks for windows with their last instant in (`after`, `up_to`], in groups of a pattern.

    `groups` names columns, with a `Pattern` or what stands for one: a value, a list, a range. A column that is not
    named may have any value. The value None stands for NULL.

    >>> Prod(up_to=10, after=10)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a prod after 10 and up to 10 asks for no window: `up_to` must come after `after`
    """

    up_to: int = FOREVER
    after: int = NEVER
    groups: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.up_to <= self.after:
            raise DeclarationError(
                f"a prod after {self.after} and up to {self.up_to} asks for no window: `up_to` must come after `after`"
            )
        object.__setattr__(self, "groups", {name: Pattern.of(value) for name, value in self.groups.items()})

    def asks_for(self, lasts: Instants) -> NDArray[np.bool_]:
        """Which of the windows with these last instants it asks for."""
        return (self.after < lasts) & (lasts <= self.up_to)

    def matches(self, group: Mapping[str, Any]) -> bool:
        """Whether it asks for a group, given by its columns.

        >>> Prod(groups={"sensor": None}).matches({"sensor": None}), Prod(groups={"sensor": 2}).matches({"sensor": 1})
        (True, False)
        """
        return all(name in group and pattern.matches(group[name]) for name, pattern in self.groups.items())

    def covers(self, other: Prod) -> bool:
        """Whether an answer to this one holds the answer to the other.

        >>> Prod(up_to=99).covers(Prod(up_to=49, groups={"sensor": 1}))
        True
        >>> Prod(up_to=99, groups={"sensor": 1}).covers(Prod(up_to=49))
        False
        """
        wider = all(
            name in other.groups and pattern.covers(other.groups[name]) for name, pattern in self.groups.items()
        )
        return wider and self.after <= other.after and other.up_to <= self.up_to

    def timing(self, closed: int, held: Instants, since: Iterable[Prod] = ()) -> Timing:
        """How it comes: `closed` is the last instant that is closed, `held` the last instants of the open windows that
        hold rows, `since` the prods answered since the last row.

        >>> held = np.array([49, 99])
        >>> [Prod(up_to=t).timing(closed=30, held=held).value for t in (30, 40, 60)]
        ['too late', 'too early', 'timely']
        >>> Prod(up_to=60).timing(30, held, since=[Prod()]).value
        'repeated'
        """
        if self.up_to <= closed:
            return Timing.TOO_LATE
        if not bool(self.asks_for(held[held > closed]).any()):
            return Timing.TOO_EARLY
        return Timing.REPEATED if any(before.covers(self) for before in since) else Timing.TIMELY

    def saved(self) -> dict[str, Any]:
        """The prod as plain data."""
        return {
            "up_to": self.up_to,
            "after": self.after,
            "groups": {name: pattern.saved() for name, pattern in self.groups.items()},
        }


@dataclass(frozen=True)
class WindowEnds:
    """Ends `slide` apart, one of them at `anchor`.

    >>> WindowEnds(slide=0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a slide of 0 has no points: give one above 0
    """

    slide: int
    anchor: int = 0

    def __post_init__(self) -> None:
        if self.slide <= 0:
            raise DeclarationError(f"a slide of {self.slide} has no points: give one above 0")

    def at_or_before(self, instant: int) -> int:
        """The last end that is not after the instant."""
        if instant in (NEVER, FOREVER):
            return instant
        return shift(instant, -((instant - self.anchor) % self.slide))

    def at_or_after(self, instant: int) -> int:
        """The first end that is not before the instant."""
        if instant in (NEVER, FOREVER):
            return instant
        return shift(instant, (self.anchor - instant) % self.slide)

    def point(self, end: int, at: int) -> float:
        """The share of the last slide of the window ending at `end` that has passed at an instant.

        >>> WindowEnds(slide=10).point(20, at=25), WindowEnds(slide=10).point(20, at=5)
        (1.5, 0.0)
        """
        return max(0.0, 1.0 - (end - at) / self.slide)

    def due(self, end: int, point: float) -> int:
        """The instant at which the window ending at `end` has come to a point of its last slide.

        >>> WindowEnds(slide=120).due(240, 0.75)
        210
        """
        return shift(end, -self.lead(point))

    def lead(self, point: float) -> int:
        """How long before its end a window comes to a point; negative for points after the end."""
        return round((1.0 - point) * self.slide)
