"""Where the windows of a query end, and how far into its last slide a window is at an instant.

Law: windows end at `anchor` + k * `slide` for every whole number k. The *point* of an instant in a window that ends at
e is the share of the window's last slide that has passed: 0 where the slide begins, 1 at e, more after it. Prodding
aggressiveness is one minus the point (prodding thesis, section 4.4).

>>> ends = WindowEnds(slide=120)
>>> ends.at_or_after(121), ends.at_or_before(121), ends.point(240, at=210)
(240, 120, 0.75)
"""

from __future__ import annotations

from dataclasses import dataclass

from eventide.errors import DeclarationError
from eventide.eventtime.instant import FOREVER, NEVER, shift


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
