"""When prods are due: by the clock, at points of the slide, as time goes on, or by feedback.

Law: an early trigger is a declaration without state. It tells which prods fall due from one moment, not included, up to
another; whether that stretch is looked at in one piece or in many, the same windows are asked for. So a round that took
long asks once where short rounds would have asked often, and never for other windows. (Prodding thesis, section 3.2:
the early trigger in the plan and the input adapter; section 4.3: one prod for each slide, 90 s into its 120.)

>>> ends = WindowEnds(slide=120)
>>> AtPoints((0.75,)).due(ends, Moment(200), Moment(215))
(Prod(up_to=239, after=119, groups={}),)
>>> Every(60).due(ends, Moment(200), Moment(215)), Every(60).due(ends, Moment(239), Moment(245))
((), (Prod(up_to=239, after=-9223372036854775808, groups={}),))

*Feedback.* The prod point moves by feedback, so that early answers are as wrong as is permitted, not more. `PROD WITHIN
2 % ERROR` is an `Earliness`. It asks for each window once, at a point of its last slide. When the final answer is
there, it is given the error of the early one: each window earns the permitted error, and pays its own. What is saved
moves the point earlier, what is owed moves it later, `speed` of a slide for each permitted error. (Prodding thesis,
section 6.2 (c) and figure 6.4, where this is future work.)

Law: let answers at the latest point be as good as permitted. Then over any stretch of n windows in which no debt is
forgiven, whatever the stream does, their mean error is at most

    permitted * (1 + (latest - earliest) / speed / n) + worst * (1 + most windows asked for and not yet scored) / n,

for a greater one would have pushed the point beyond the latest. So the running error tends to the permitted one or
less; and where later points are better ones, no earlier point would do, for what is saved moves the point earlier.
With `confidence` a little less is aimed at, by a `margin`: z * s / sqrt(n), where s is the standard deviation of the
last errors, z the quantile of the confidence, and n the number of windows so far, at most `RECENT`. So it is
conservative at first: of the first windows each one keeps most of what it saves, and the point leaves the latest one
slowly.

Law: *confidence*. Let the errors at a point not depend on those before, and vary not much more than exponentially.
Then of all stretches of `RECENT` windows, and of all that begin with the first window, at most a share of 1 -
`confidence` has a mean error above the permitted one. (By the central limit theorem, with room to spare: what a bad
window owes is paid by those after it, so means of stretches vary less than those of independent errors. Section 6.2
(c) shows that no confidence interval for a single answer is to be had, and monitors the running accuracy in its
place.)

When the stream changes for the worse, the first bad window moves the point back: nothing is saved up beyond the
earliest point. What is owed beyond the permitted error of `memory` windows is forgiven, so one wild window does not
hold a query back for hours.

>>> control = Earliness(error=0.02, speed=0.05, first=0.5, confidence=0.5).start()
>>> [round(control.score(error), 6) for error in (0.0, 0.06)]
[0.45, 0.55]
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass
from statistics import NormalDist
from typing import Protocol, runtime_checkable

from eventide.errors import DeclarationError
from eventide.eventtime.early.prod import Prod, WindowEnds
from eventide.eventtime.heartbeat import SavedGenerator, SavedPolicy, Snapshot
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, shift


@dataclass(frozen=True)
class Moment:
    """A moment of a stream: the clock, and the latest time that has arrived by then."""

    clock: int
    latest: int = NEVER


@runtime_checkable
class EarlyTrigger(Protocol):
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
    """An early trigger that goes by the latest time that has arrived, in the place of the clock.

    This is how streams are prodded whose times are no clock times: numbers of a sequence, or a recording.

    >>> ByProgress(AtPoints((0.5,))).due(WindowEnds(10), Moment(0, latest=4), Moment(0, latest=5))
    (Prod(up_to=9, after=-1, groups={}),)
    """

    inner: EarlyTrigger

    def due(self, ends: WindowEnds, before: Moment, now: Moment) -> tuple[Prod, ...]:
        """What the trigger inside says when the latest time that has arrived is its clock."""
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


RECENT = 50
"""A running error that is recent is over about so many windows."""
WILD = 5


@dataclass(frozen=True)
class Earliness(SavedPolicy["EarlinessControl"]):
    """Permitted mean `error` (0.02 is 2 %), the points between which to choose, and how fast to move.

    `speed` is the share of a slide by which a window without any error moves the point earlier; `first` is the point to
    begin with, the latest one if it is left out. A `latest` above 1 lies after the end of the window. With a
    `confidence` of 0.5 nothing is kept back, and the running error tends to the permitted one.

    >>> Earliness(error=2.0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: PROD WITHIN 200 % ERROR: give an error above 0 % and below 100 %
    >>> Earliness(error=0.02, earliest=0.9, latest=0.8)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: the prod point cannot stay between 90 % and 80 % of the slide
    """

    error: float
    earliest: float = 0.0
    latest: float = 1.0
    speed: float = 0.02
    memory: int = 20
    first: float | None = None
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if not 0 < self.error < 1:
            raise DeclarationError(f"PROD WITHIN {self.error * 100:g} % ERROR: give an error above 0 % and below 100 %")
        if not 0 <= self.earliest <= self.latest < math.inf:
            raise DeclarationError(
                f"the prod point cannot stay between {self.earliest * 100:g} % and {self.latest * 100:g} % of the slide"
            )
        if not 0 < self.speed <= 1:
            raise DeclarationError(f"a prod point cannot move by {self.speed:g} of a slide: give a speed from 0 to 1")
        if not 0.5 <= self.confidence < 1:
            raise DeclarationError(
                f"PROD CONFIDENCE {self.confidence * 100:g} %: give 50 % or more, and less than 100 %"
            )
        if self.memory < 0:
            raise DeclarationError(f"a memory of {self.memory} windows is none: give 0 or more")

    def start(self) -> EarlinessControl:
        """A control that has seen no answer."""
        return EarlinessControl(self)


class EarlinessControl(SavedGenerator):
    """The point at which the next window is asked for, and what it has earned and paid."""

    KIND = "earliness"
    SAVED = ("_place", "asked", "windows", "total", "_mean", "_variance")

    def __init__(self, policy: Earliness) -> None:
        self.policy = policy
        self.asked = NEVER
        self.windows = 0
        self.total = 0.0
        # Where the point would be without a latest one: what lies beyond it is owed.
        first = policy.latest if policy.first is None else policy.first
        self._place = min(max(first, policy.earliest), policy.latest)
        # Of the errors, the older the lighter; before the first, as if they varied by as much as is permitted.
        self._mean, self._variance = 0.0, policy.error**2
        self._quantile = NormalDist().inv_cdf(policy.confidence)

    @property
    def point(self) -> float:
        """The point of the slide at which a window is asked for."""
        return min(self._place, self.policy.latest)

    @property
    def running_error(self) -> float | None:
        """The mean error of all windows so far."""
        return self.total / self.windows if self.windows else None

    @property
    def margin(self) -> float:
        """By how much less than the permitted error is aimed at."""
        known = min(max(self.windows, 1), RECENT)
        return min(self.policy.error, self._quantile * math.sqrt(self._variance / known))

    def due(self, ends: WindowEnds, now: int) -> Prod | None:
        """The windows that have come to the point and were not asked for before.

        Each window is asked for once, however the point moves.

        >>> control = Earliness(error=0.02, first=0.5).start()
        >>> control.due(WindowEnds(10), 15), control.due(WindowEnds(10), 16), control.due(WindowEnds(10), 25).after
        (Prod(up_to=19, after=-9223372036854775808, groups={}), None, 19)
        """
        if not -EDGE < now < EDGE:
            return None
        last = ends.at_or_before(now + ends.lead(self.point))
        if last <= self.asked:
            return None
        prod = Prod(last - 1, shift(self.asked, -1))
        self.asked = last
        return prod

    def score(self, error: float) -> float:
        """Learn the error of one window's early answer; gives the new point."""
        policy = self.policy
        step = policy.speed * (error / policy.error - 1.0) if math.isfinite(error) else math.inf
        limit = policy.latest + policy.memory * policy.speed
        place = self._place + step
        if place < policy.latest:
            # What is kept back slows the way to earlier points; it is no debt.
            place = min(place + policy.speed * self.margin / policy.error, policy.latest)
        self._place = min(max(place, policy.earliest), limit)
        self.windows += 1
        self.total += error
        self._learn(error)
        return self.point

    def _learn(self, error: float) -> None:
        """Follow the mean and the variance; a wild window counts as one of `WILD` times the permitted error."""
        share = 1 / min(self.windows + 1, RECENT)
        away = min(error, WILD * self.policy.error) - self._mean
        self._mean += share * away
        self._variance = (1 - share) * (self._variance + share * away**2)

    def restore(self, saved: Snapshot) -> None:
        """Go on from what was saved, also before errors were known to vary."""
        super().restore({"mean": self._mean, "variance": self._variance, **saved})

    def copy(self) -> EarlinessControl:
        """An independent copy."""
        return copy(self)
