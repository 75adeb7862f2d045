"""Which windows close and in how many steps, which panes they are made of, and which panes nobody needs any more.

Laws. Time before `closed_before` is closed: every window that ends at or before it is complete. A pane takes rows, and
is needed, as long as one of its windows ends after that time, or is retained. *Holes*: a window that meets a hole, time
that was set aside and is open although that time has passed it, is not emitted, and all its panes are kept, until no
hole meets it any more; windows beside it are emitted in their time. A hole is made of whole panes (prodding thesis,
section 6.2 (a): range punctuations). *By source*: the same with one such time for each source instead of one for all;
arrays have one place for each pane of a source, and nothing loops over sources. *Slow flush*: when many windows close
at once, the first so many are emitted whole that their results are at most `limit` rows; one window is always emitted,
however many rows it has. The others wait for the next rounds, and count the rows that come meanwhile. A promise to
readers must not run ahead of what waits, so it is that of the last window emitted, as an aggregation of Gigascope keeps
the temporal values of the last tuple that it flushed (section 4.4). How many rows a window has is known when it is
computed. So the first one is, then as many as are likely to fit.

>>> w = Window(range=20, slide=10)
>>> closing(w, np.array([0, 10, 20]), after=NEVER, closed_before=30).to_pydict()["window_end"]
[10, 20, 20, 30, 30]
>>> needed_from(w, closed_before=30)
20
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eventide.engine.operators.frontier import OperatorFrontier, before
from eventide.engine.relations.executor import Executor, Statement, one_row
from eventide.engine.relations.relation import Relation
from eventide.eventtime.early.prod import WindowEnds
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants, within_edges
from eventide.eventtime.punctuation import Span
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.stream import WINDOW_END, WINDOW_START
from eventide.plan.declared.window import SameWindow, Window


def closed_by(window: Window, heartbeat: int) -> int:
    """The start of the first pane that is open after a heartbeat.

    >>> closed_by(Window(10), 9), closed_by(Window(10), 18)
    (10, 10)
    """
    if heartbeat <= -EDGE:
        return NEVER
    return FOREVER if heartbeat >= EDGE else window.pane_of(heartbeat + 1)


def closing(window: Window, panes: Instants, after: int, closed_before: int) -> pa.Table:
    """Every pair of a pane and a window holding it, for windows that end after `after`, by `closed_before`."""
    most = -(-window.range // window.slide)
    ends = window.last_end(panes)[:, None] - np.arange(most, dtype=np.int64)[None, :] * window.slide
    starts = window.start_of(ends)
    chosen = (ends > panes[:, None]) & (ends <= closed_before)
    if after != NEVER:
        chosen &= ends > after
    place = np.nonzero(chosen)
    # Windows in order, so that results come in order.
    order = np.lexsort((ends[place], starts[place]))
    pairs = panes[place[0]][order], starts[place][order], ends[place][order]
    return pa.table(dict(zip(("pane", "window_start", "window_end"), pairs, strict=True)))


def holding(window: Window, panes: Instants, above: int, closed_before: int) -> pa.Table:
    """All the pairs of the windows that hold one of `panes` and end after `above`, not after `closed_before`.

    >>> holding(Window(20, 10), np.array([10]), above=NEVER, closed_before=25).to_pydict()
    {'pane': [0, 10], 'window_start': [0, 0], 'window_end': [20, 20]}
    """
    pairs = closing(window, panes, above, closed_before)
    ends = np.unique(pairs.column("window_end").to_numpy())
    starts = window.start_of(ends)
    counts = (ends - starts) // window.pane
    nth = np.arange(counts.sum(), dtype=np.int64) - np.repeat(np.cumsum(counts) - counts, counts)
    of = np.repeat(starts, counts)
    return pa.table({"pane": of + nth * window.pane, "window_start": of, "window_end": np.repeat(ends, counts)})


def own_windows(windows: pa.Table, begins: int) -> pa.Table:
    """The windows that start at `begins` or later: of the others a query that began there lacks rows.

    >>> own_windows(pa.table({"window_start": [0, 10, 20]}), begins=10).column("window_start").to_pylist()
    [10, 20]
    """
    return windows if begins == NEVER else windows.filter(pc.greater_equal(windows.column("window_start"), begins))


def needed_from(window: Window, closed_before: int, retain: int = 0) -> int:
    """The first pane that a window still open, or retained, can need.

    >>> needed_from(Window(20, 10), closed_before=30, retain=20)
    0
    """
    if closed_before in (NEVER, FOREVER):
        return closed_before
    # The last window that is over and done ends at or before this.
    done = closed_before - retain
    return (
        min(first_ending_after(window, done), done) if window.slide > window.range else first_ending_after(window, done)
    )


def first_ending_after(window: Window, closed_before: int) -> int:
    """The start of the first window that ends after `closed_before`; `NEVER` before all time.

    >>> first_ending_after(Window(20, 10), 30), first_ending_after(Window(20, 10), 31)
    (20, 20)
    """
    if closed_before in (NEVER, FOREVER):
        return closed_before
    return window.start_of(window.first_end_after(closed_before))


def last_ending_by(window: Window, closed_before: int) -> int:
    """The end of the last window that ends by `closed_before`: panes before it are in a window that does.

    >>> last_ending_by(Window(10, 5), 9), last_ending_by(Window(10, 5), 10), last_ending_by(Window(10, 15), 30)
    (5, 10, 25)
    """
    if closed_before in (NEVER, FOREVER):
        return closed_before
    return window.first_end_after(closed_before) - window.slide


def ends_of(window: Window) -> WindowEnds:
    """Where windows end.

    >>> ends_of(Window(20, 10, offset=5)).at_or_before(37)
    35
    """
    return WindowEnds(window.slide, window.offset + window.range)


def open_frontier(query: BoundQuery, limit: int, with_times: bool = True) -> OperatorFrontier:
    """What later results are like, once the windows that end by `limit` are emitted: they are of windows still open.

    Their ends and starts are at least those of the first such window, and a group that carries time has at least its
    value at that start; the numbers of rows, by which other windows go, say nothing of times (`with_times`).
    """
    time = before(limit)
    if time in (NEVER, FOREVER):
        return OperatorFrontier(time)
    end = query.panes.first_end_after(time + 1)
    least: dict[str, int | Fraction] = {WINDOW_END: end, WINDOW_START: query.windows.start_of(end)}
    least |= {name: least[edge] for name, edge in query.edges.items()}
    if with_times:
        least |= {name: value(query.panes.start_of(end)) for name, value in query.carried.items()}
    return OperatorFrontier(time, least)


def first_after(query: BoundQuery, latest: int) -> int:
    """Where a query begins that comes later: with the first window that starts after every row of before."""
    window = query.query.window
    if latest == NEVER:
        return NEVER
    if isinstance(window, SameWindow):
        # No result of a window that ends later has been emitted.
        return query.panes.pane_of(latest + 1)
    return window.first_start_after(latest) if isinstance(window, Window) else latest + 1


def missing_starts(
    window: Window, following: int, closed_before: int, present: Instants, most: int | None
) -> tuple[Instants, int]:
    """Starts of windows from `following` on that end by `closed_before` and are not `present`.

    At most `most` of them are looked at, if it is given.

    Gives also the start from which to look the next time.

    >>> missing_starts(Window(10), 0, 40, np.array([10]), 100)[0].tolist()
    [0, 20, 30]
    """
    count = max(0, (closed_before - window.range - following) // window.slide + 1)
    count = count if most is None else min(most, count)
    starts = following + np.arange(count, dtype=np.int64) * window.slide
    return np.setdiff1d(starts, present), following + count * window.slide


def meeting(windows: pa.Table, holes: Sequence[Span]) -> pa.Array:
    """Which of the windows, listed as pairs of pane and window, meet a hole."""
    starts, ends = (windows.column(edge).to_numpy() for edge in ("window_start", "window_end"))
    found = np.zeros(windows.num_rows, dtype=np.bool_)
    for hole in holes:
        found |= (starts < hole.end) & (ends > hole.start)
    return pa.array(found)


def outside(windows: pa.Table, holes: Sequence[Span]) -> pa.Table:
    """The windows that meet no hole."""
    return windows.filter(pc.invert(meeting(windows, holes))) if holes else windows


def first_start(window: Window, holes: Sequence[Span]) -> int:
    """The start of the first window that meets a hole; FOREVER without holes."""
    return min((_first(window, hole) for hole in holes), default=FOREVER)


def first_end(window: Window, holes: Sequence[Span]) -> int:
    """The end of the first window that meets a hole; FOREVER without holes."""
    return min((window.first_end_after(hole.start) for hole in holes), default=FOREVER)


def _first(window: Window, hole: Span) -> int:
    starts = window.starts_covering(hole.start)
    return starts[0] if len(starts) else hole.start


def closed_by_each(window: Window, heartbeats: Instants) -> Instants:
    """For each heartbeat, the start of the first pane that is open after it.

    >>> closed_by_each(Window(10), np.array([NEVER, 9, 18])).tolist() == [NEVER, 10, 10]
    True
    """
    after = within_edges(heartbeats) + 1
    closed_before = after - (after - window.offset) % window.pane
    return np.where(heartbeats <= -EDGE, NEVER, np.where(heartbeats >= EDGE, FOREVER, closed_before))


def needed_by_source(window: Window, closed_before: Instants) -> Instants:
    """For each time of `closed_before`, the first pane that a window still open can need.

    >>> needed_by_source(Window(20, 10), np.array([30, FOREVER])).tolist() == [20, FOREVER]
    True
    """
    first = window.start_of(window.first_end_after(within_edges(closed_before)))
    needed = np.where(_is_edge(closed_before), closed_before, first)
    return np.minimum(needed, closed_before) if window.slide > window.range else needed


def last_ending_by_source(window: Window, closed_before: Instants) -> Instants:
    """For each time of `closed_before`, the end of the last window that ends by it.

    >>> last_ending_by_source(Window(10, 5), np.array([9, NEVER])).tolist() == [5, NEVER]
    True
    """
    ends = window.first_end_after(within_edges(closed_before)) - window.slide
    return np.where(_is_edge(closed_before), closed_before, ends)


def _is_edge(times: Instants) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = (times == NEVER) | (times == FOREVER)
    return found


def closing_by_source(
    window: Window, panes: Instants, by: NDArray[np.intp], after: Instants, closed_before: Instants
) -> pa.Table:
    """Every pane of a source with the windows that hold it and end after `after`, by `closed_before`, row by row."""
    last, first = window.last_end(panes), window.first_end_after(np.maximum(after, panes))
    count = np.maximum((np.minimum(closed_before, last) - first) // window.slide + 1, 0)
    row = np.repeat(np.arange(len(panes)), count)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    ends = first[row] + nth * window.slide
    order = np.argsort(ends, kind="stable")
    row, ends = row[order], ends[order]
    return pa.table({"pane": panes[row], "window_start": window.start_of(ends), "window_end": ends, "by": by[row]})


GROWTH = 8
"""At most so many times as many windows as were emitted already are computed next."""

COUNTS = Statement("SELECT window_end, count(*) AS n FROM answer GROUP BY window_end")
FIRST = Statement("SELECT answer.* FROM answer CROSS JOIN last WHERE answer.window_end <= last.__up_to")


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
    return executor.relation(FIRST, {"answer": answer, "last": one_row(up_to=last)}, answer.layout)
