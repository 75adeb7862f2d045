"""A span: a stretch of application time, of one source or of all.

Half-open like a slice: from `start` up to, not including, `end`.

>>> Span(10, 20).contains(np.array([9, 10, 19, 20])).tolist()
[False, True, True, False]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.eventtime.instant import Instants


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
    """The same time in as few spans as possible: those of one source that touch become one; sorted by start.

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
