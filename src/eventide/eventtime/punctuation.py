"""Punctuation: a promise that travels with the data.

Law: a punctuation says that no further row with a time up to `time` comes (from `start` on, if it is a range) from the
sources of its group; without a group, from any source, known or not.

>>> Punctuation(time=50).promises(), Punctuation(time=50, start=40, group=(3,)).promises()
((Span(start=-9223372036854775808, end=51, source=None),), (Span(start=40, end=51, source=3),))
"""

from __future__ import annotations

from dataclasses import dataclass

from eventide.errors import DeclarationError
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.span import Span


@dataclass(frozen=True)
class Punctuation:
    """No more rows up to `time`; only from `start` on, if given; only of the sources in `group`, if given.

    >>> Punctuation(time=40, start=50)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a punctuation from 50 to 40 promises nothing: its start must not be after its time
    """

    time: int
    start: int | None = None
    group: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not NEVER < self.time < FOREVER:
            raise DeclarationError(f"a punctuation up to {self.time} is not an instant: it must fit into 64 bits")
        if self.start is not None and not NEVER < self.start <= self.time:
            raise DeclarationError(
                f"a punctuation from {self.start} to {self.time} promises nothing: its start must not be after its time"
            )
        if self.group is not None and any(source < 0 for source in self.group):
            raise DeclarationError(f"group {self.group} has a negative source: sources are numbered 0, 1, 2, ...")

    def promises(self) -> tuple[Span, ...]:
        """The time promised, source by source."""
        start = NEVER if self.start is None else self.start
        group: tuple[int | None, ...] = (None,) if self.group is None else self.group
        return tuple(Span(start, self.time + 1, source) for source in group)
