"""A replay: a recording delivered again by its times, at any speed, with declared disturbances. (The thesis' Streamer.)

Laws. A row is delivered at the time its column `by` tells, counted from the smallest one in the recording: never
earlier, and later only by what is declared. Disturbances are in the time of the recording, in microseconds, and are
applied in the order bursts, delays, silences; `speed` comes last. The same declaration of the same recording always
gives the same schedule. Rows without a time are timed like the row before them in the recording.

NiagaraST prodding thesis, section 4.1: delivery by application timestamps, with random delays up to a bound.

>>> Replay("traffic.parquet", by="ts", speed=60, delays=(Delay(mean=10_000_000, distribution="uniform"),)).speed
60
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

from eventide.errors import DeclarationError


@dataclass(frozen=True)
class Delay:
    """Extra time on the way, for a share of the rows, or for all rows of some sources.

    `constant`: the mean. `uniform`: mean - spread to mean + spread; without a spread, 0 to twice the mean.
    `exponential`: of that mean. `normal`: of that mean, `spread` its standard deviation. Never less than 0 nor more
    than `at_most`.

    >>> Delay(mean=5, share=1.5)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: the share 1.5 of delayed rows is not between 0 and 1
    """

    mean: int
    distribution: str = "constant"
    spread: int | None = None
    share: float = 1.0
    at_most: int | None = None
    sources: tuple[str, ...] = ()

    KINDS: ClassVar[tuple[str, ...]] = ("constant", "uniform", "exponential", "normal")

    def __post_init__(self) -> None:
        if self.distribution not in self.KINDS:
            raise DeclarationError(
                f"delays are not distributed as {self.distribution!r}: use one of {', '.join(self.KINDS)}"
            )
        if not 0 <= self.share <= 1:
            raise DeclarationError(f"the share {self.share} of delayed rows is not between 0 and 1")
        if min(self.mean, self.spread or 0, self.at_most or 0) < 0:
            raise DeclarationError("a delay cannot be negative: nothing arrives before it was sent")


@dataclass(frozen=True)
class Burst:
    """Rows of an interval are held back and then come `factor` times as fast, the last ones at its end.

    >>> Burst(start=0, length=10_000_000, factor=0.5)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a burst 0.5 times as fast is none: give a factor above 1
    """

    start: int
    length: int
    factor: float

    def __post_init__(self) -> None:
        _checked_interval("a burst", self.start, self.length)
        if not (self.factor > 1 and math.isfinite(self.factor)):
            raise DeclarationError(f"a burst {self.factor} times as fast is none: give a factor above 1")


@dataclass(frozen=True)
class Silence:
    """Nothing is delivered in an interval, by some sources or by all; then all of it at once, or never.

    >>> Silence(start=0, length=5, then="later")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: what was held back in a silence comes 'at once' or 'never', not 'later'
    """

    start: int
    length: int
    sources: tuple[str, ...] = ()
    then: str = "at once"

    def __post_init__(self) -> None:
        _checked_interval("a silence", self.start, self.length)
        if self.then not in ("at once", "never"):
            raise DeclarationError(f"what was held back in a silence comes 'at once' or 'never', not {self.then!r}")


@dataclass(frozen=True)
class Replay:
    """A recording (a file, folder or pattern) and how to deliver it. `speed` None: as fast as it can be taken.

    Sources are named by the text of their columns, several of them joined by `|`.

    >>> Replay("x", by="ts", speed=0)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a replay at speed 0 never ends: give a speed above 0, or None for no waiting
    """

    path: str
    by: str
    format: str = "parquet"
    speed: float | None = 1.0
    delays: tuple[Delay, ...] = ()
    bursts: tuple[Burst, ...] = ()
    silences: tuple[Silence, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if self.speed is not None and not (self.speed > 0 and math.isfinite(self.speed)):
            raise DeclarationError(
                f"a replay at speed {self.speed} never ends: give a speed above 0, or None for no waiting"
            )
        ordered = sorted(self.bursts, key=lambda burst: burst.start)
        for one, other in pairwise(ordered):
            if one.start + one.length > other.start:
                raise DeclarationError(
                    f"the bursts at {one.start} and {other.start} overlap: a row can be held back by one of them only"
                )


def _checked_interval(what: str, start: int, length: int) -> None:
    if start < 0 or length <= 0:
        raise DeclarationError(
            f"{what} from {start}, {length} long: give a start of 0 or more and a length above 0, in microseconds"
        )
