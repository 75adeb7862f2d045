"""Punctuations, promises that travel with the data, and the spans of application time they speak of.

Law: a punctuation says that no further row with a time up to `time` comes (from `start` on, if it is a range) from the
sources of its group; without a group, from any source, known or not.

>>> Punctuation(time=50).promises(), Punctuation(time=50, start=40, group=(3,)).promises()
((Span(start=-9223372036854775808, end=51, source=None),), (Span(start=40, end=51, source=3),))

*Spans.* A span is a stretch of application time, of one source or of all. Half-open like a slice: from `start` up to,
not including, `end`.

>>> Span(10, 20).contains(np.array([9, 10, 19, 20])).tolist()
[False, True, True, False]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.instant import FOREVER, NEVER, Instants


@dataclass(frozen=True)
class Span:
    """From `start` up to, not including, `end`; of `source`, or of every source when that is None.

    >>> Span(20, 10)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: the span from 20 to 10 is empty: its end must come after its start
    """

    start: int
    end: int
    source: int | None = None

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise DeclarationError(
                f"the span from {self.start} to {self.end} is empty: its end must come after its start"
            )
        if self.source is not None and self.source < 0:
            raise DeclarationError(f"source {self.source} does not exist: sources are numbered 0, 1, 2, ...")

    def contains(self, times: Instants) -> NDArray[np.bool_]:
        """Which of `times` lie in the span."""
        return (self.start <= times) & (times < self.end)

    def overlaps(self, other: Span) -> bool:
        """Whether both have time and a source in common.

        >>> Span(0, 10).overlaps(Span(9, 12, source=3)), Span(0, 10, source=2).overlaps(Span(9, 12, source=3))
        (True, False)
        """
        same = self.source is None or other.source is None or self.source == other.source
        return same and self.start < other.end and other.start < self.end

    def saved(self) -> list[int | None]:
        """The span as plain data."""
        return [self.start, self.end, self.source]


def merged(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Merge spans of one source that touch or overlap; sorted by start.

    >>> merged([Span(10, 20), Span(0, 10), Span(5, 8, source=1)])
    (Span(start=0, end=20, source=None), Span(start=5, end=8, source=1))
    """
    last: dict[int | None, Span] = {}
    done: list[Span] = []
    for span in sorted(spans, key=lambda span: span.start):
        before = last.get(span.source)
        if before is not None and span.start <= before.end:
            last[span.source] = Span(before.start, max(before.end, span.end), span.source)
        else:
            if before is not None:
                done.append(before)
            last[span.source] = span
    return tuple(sorted((*done, *last.values()), key=lambda span: span.start))


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
