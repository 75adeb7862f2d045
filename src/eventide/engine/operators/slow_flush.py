"""Slow flush: when many windows close at once, their results are emitted bit by bit, window after window.

Law: of the windows that are over, the first so many are emitted whole that their results are at most `limit` rows; one
window is always emitted, however many rows it has. The others wait for the next rounds. They are over all the same: no
row is ingested for them any more. A promise to readers must not run ahead of what waits, so it is that of the last
window emitted, as an aggregation of Gigascope keeps the temporal values of the last tuple that it flushed (section
4.4).

How many rows a window has is known when it is computed. So the first one is, then as many as are likely to fit.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.relations.executor import Executor
from eventide.engine.relations.relation import Relation
from eventide.engine.relations.statement import Statement
from eventide.eventtime.instant import Instants

GROWTH = 8
"""At most so many times as many windows as were emitted already are computed next."""

COUNTS = Statement("SELECT window_end, count(*) AS n FROM answer GROUP BY window_end")
FIRST = Statement("SELECT answer.* FROM answer CROSS JOIN last WHERE answer.window_end <= last.up_to")


def flushed(
    executor: Executor, windows: pa.Table, limit: int | None, compute: Callable[[pa.Table], Relation]
) -> tuple[list[Relation], int | None]:
    """The results of the first of these windows, and the end of the last one emitted if others wait, else None.

    `windows` are pairs of pane and window; `compute` gives the results of some of them.
    """
    if windows.num_rows == 0:
        return [], None
    if limit is None:
        return [compute(windows)], None
    ends = np.unique(windows.column("window_end").to_numpy())
    parts: list[Relation] = []
    done, rows, size = 0, 0, 1
    while done < len(ends) and (done == 0 or rows < limit):
        some = compute(_ending(windows, ends[done], ends[min(done + size, len(ends)) - 1]))
        fits = _fitting(executor, some, ends[done : done + size], limit - rows, done == 0)
        if fits < min(size, len(ends) - done):
            parts += [_up_to(executor, some, int(ends[done + fits - 1]))] if fits else []
            done += fits
            break
        parts.append(some)
        rows, done = rows + some.rows, done + fits
        size = int(min(done * GROWTH, max(1, (limit - rows) * done // max(rows, 1))))
    return parts, None if done == len(ends) else int(ends[done - 1])


def _ending(windows: pa.Table, first: int, last: int) -> pa.Table:
    end = windows.column("window_end")
    return windows.filter(pc.and_(pc.greater_equal(end, pa.scalar(first)), pc.less_equal(end, pa.scalar(last))))


def _fitting(executor: Executor, answer: Relation, ends: Instants, room: int, first: bool) -> int:
    """How many of the windows with these ends have their results within the room; the very first always has."""
    if answer.rows <= room:
        return len(ends)
    counted = executor.table(COUNTS, {"answer": answer})
    counts = np.zeros(len(ends), dtype=np.int64)
    counts[np.searchsorted(ends, counted.column("window_end").to_numpy())] = counted.column("n").to_numpy()
    fits = int(np.searchsorted(np.cumsum(counts), room, side="right"))
    return max(fits, 1) if first else fits


def _up_to(executor: Executor, answer: Relation, last: int) -> Relation:
    """The part of an answer that is of windows which end by then."""
    if answer.table is not None:
        return answer.kept(pc.less_equal(answer.table.column("window_end"), last))
    return executor.relation(FIRST, {"answer": answer, "last": pa.table({"up_to": [last]})}, answer.layout)
