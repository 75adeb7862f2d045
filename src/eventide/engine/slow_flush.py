"""Slow flush: when many windows close at once, their results are told bit by bit, window after window.

Law: of the windows that are over, the first so many are told whole that their results are at most `most` rows; one
window is always told, however many rows it has. The others wait for the next rounds. They are over all the same: no row
is taken for them any more. A promise to readers must not run ahead of what waits, so it is that of the last window
told, as an aggregation of Gigascope keeps the temporal values of the last tuple that it flushed (section 4.4).

How many rows a window has is known when it is answered. So the first one is, then as many as are likely to fit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.taken import Answer
from eventide.eventtime.instant import Instants

GROWTH = 8
"""At most so many times as many windows as were told already are answered next."""


def flushed(
    windows: pa.Table, most: int | None, answer: Callable[[pa.Table], Answer]
) -> tuple[Answer | None, int | None]:
    """The answer of the first of these windows, and the end of the last one told if others wait; None where none do.

    `windows` are pairs of pane and window; `answer` computes the results of some of them.

    >>> windows = pa.table({"pane": [0, 10, 20], "window_end": [10, 20, 30]})
    >>> told, last = flushed(windows, 2, lambda some: Answer.of(some))
    >>> told.rows, last
    (2, 20)
    """
    if windows.num_rows == 0:
        return None, None
    if most is None:
        return answer(windows), None
    ends = np.unique(windows.column("window_end").to_numpy())
    parts: list[Answer] = []
    told, rows, size = 0, 0, 1
    while told < len(ends) and (told == 0 or rows < most):
        some = answer(_ending(windows, ends[told], ends[min(told + size, len(ends)) - 1]))
        fits = _fitting(some, ends[told : told + size], most - rows, told == 0)
        if fits < min(size, len(ends) - told):
            parts += [_up_to(some, int(ends[told + fits - 1]))] if fits else []
            told += fits
            break
        parts.append(some)
        rows, told = rows + some.rows, told + fits
        size = int(min(told * GROWTH, max(1, (most - rows) * told // max(rows, 1))))
    return _joined(parts), None if told == len(ends) else int(ends[told - 1])


def _ending(windows: pa.Table, first: int, last: int) -> pa.Table:
    end = windows.column("window_end")
    return windows.filter(pc.and_(pc.greater_equal(end, pa.scalar(first)), pc.less_equal(end, pa.scalar(last))))


def _fitting(answer: Answer, ends: Instants, room: int, first: bool) -> int:
    """How many of the windows with these ends have their results within the room; the very first always has."""
    if answer.rows <= room:
        return len(ends)
    counts = np.zeros(len(ends), dtype=np.int64)
    for part in answer.parts():
        places = np.searchsorted(ends, part.column("window_end").to_numpy())
        counts += np.bincount(places, minlength=len(ends))
    fits = int(np.searchsorted(np.cumsum(counts), room, side="right"))
    return max(fits, 1) if first else fits


def _up_to(answer: Answer, last: int) -> Answer:
    """The part of an answer that is of windows which end by then."""

    def parts() -> Iterator[pa.Table]:
        for part in answer.parts():
            yield part.filter(pc.less_equal(part.column("window_end"), last))

    return Answer(sum(part.num_rows for part in parts()), parts, answer.lossy)


def _joined(answers: list[Answer]) -> Answer:
    if len(answers) == 1:
        return answers[0]

    def parts() -> Iterator[pa.Table]:
        for answer in answers:
            yield from answer.parts()

    return Answer(sum(answer.rows for answer in answers), parts, any(answer.lossy for answer in answers))
