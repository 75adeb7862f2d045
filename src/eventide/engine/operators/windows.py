"""Which windows close, which panes they are made of, and which panes nobody needs any more.

Law: time before the *bound* is closed: panes that start before it take no more rows, and every window that ends
at or before it is complete. A pane is needed as long as one of its windows ends after the bound, or is retained.

>>> w = Window(range=20, slide=10)
>>> closing(w, np.array([0, 10, 20]), after=NEVER, bound=30).to_pydict()["window_end"]
[10, 20, 20, 30, 30]
>>> needed_from(w, bound=30)
20
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa

from eventide.engine.operators.frontier import Frontier, before
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants
from eventide.eventtime.window_ends import WindowEnds
from eventide.plan.bound import Bound
from eventide.plan.derived import WINDOW_END, WINDOW_START
from eventide.plan.window import SameWindow, Window


def closed_by(window: Window, heartbeat: int) -> int:
    """The start of the first pane that is open after a heartbeat.

    >>> closed_by(Window(10), 9), closed_by(Window(10), 18)
    (10, 10)
    """
    if heartbeat <= -EDGE:
        return NEVER
    return FOREVER if heartbeat >= EDGE else window.pane_of(heartbeat + 1)


def closing(window: Window, panes: Instants, after: int, bound: int) -> pa.Table:
    """Every pair of a pane and a window holding it, for the windows that end after `after` and not after `bound`."""
    last = panes - (panes - window.offset) % window.slide
    most = -(-window.range // window.slide)
    starts = last[:, None] - np.arange(most, dtype=np.int64)[None, :] * window.slide
    ends = starts + window.range
    chosen = (ends > panes[:, None]) & (ends <= bound)
    if after != NEVER:
        chosen &= ends > after
    place = np.nonzero(chosen)
    # Windows in order, so that results come in order.
    order = np.argsort(starts[place], kind="stable")
    pairs = panes[place[0]][order], starts[place][order], ends[place][order]
    return pa.table(dict(zip(("pane", "window_start", "window_end"), pairs, strict=True)))


def holding(window: Window, panes: Instants, above: int, bound: int) -> pa.Table:
    """All the pairs of the windows that hold one of `panes` and end after `above`, not after `bound`.

    >>> holding(Window(20, 10), np.array([10]), above=NEVER, bound=25).to_pydict()
    {'pane': [0, 10], 'window_start': [0, 0], 'window_end': [20, 20]}
    """
    pairs = closing(window, panes, above, bound)
    starts = np.unique(pairs.column("window_start").to_numpy())
    within = np.arange(0, window.range, window.pane, dtype=np.int64)
    every = (starts[:, None] + within[None, :]).ravel()
    of = np.repeat(starts, len(within))
    return pa.table({"pane": every, "window_start": of, "window_end": of + window.range})


def needed_from(window: Window, bound: int, retain: int = 0) -> int:
    """The first pane that a window still open, or retained, can need.

    >>> needed_from(Window(20, 10), bound=30, retain=20)
    0
    """
    if bound in (NEVER, FOREVER):
        return bound
    # The last window that is over and done ends at or before this.
    done = bound - retain
    return (
        min(first_ending_after(window, done), done) if window.slide > window.range else first_ending_after(window, done)
    )


def first_ending_after(window: Window, bound: int) -> int:
    """The start of the first window that ends after the bound; `NEVER` before all time.

    >>> first_ending_after(Window(20, 10), 30), first_ending_after(Window(20, 10), 31)
    (20, 20)
    """
    if bound in (NEVER, FOREVER):
        return bound
    latest = bound - window.range
    return latest - (latest - window.offset) % window.slide + window.slide


def ends_of(window: Window) -> WindowEnds:
    """Where windows end.

    >>> ends_of(Window(20, 10, offset=5)).at_or_before(37)
    35
    """
    return WindowEnds(window.slide, window.offset + window.range)


def open_frontier(query: Bound, limit: int, with_times: bool = True) -> Frontier:
    """What later results are like, once the windows that end by `limit` are emitted: they are of windows still open.

    Their ends and starts are at least those of the first such window, and a group that carries time has at least its
    value at that start; the numbers of rows, by which other windows go, say nothing of times (`with_times`).
    """
    time = before(limit)
    if time in (NEVER, FOREVER):
        return Frontier(time)
    start = first_ending_after(query.panes, time + 1)
    end = start + query.panes.range
    least: dict[str, int | Fraction] = {WINDOW_END: end, WINDOW_START: end - query.windows.range}
    if with_times:
        least |= {name: value(start) for name, value in query.carried.items()}
    return Frontier(time, least)


def first_after(query: Bound, latest: int) -> int:
    """Where a query begins that comes later: with the first window that starts after every row of before."""
    window = query.query.window
    if latest == NEVER:
        return NEVER
    if isinstance(window, SameWindow):
        # No result of a window that ends later has been told.
        return query.panes.pane_of(latest + 1)
    return latest + 1 + (window.offset - latest - 1) % window.slide if isinstance(window, Window) else latest + 1


def missing_starts(
    window: Window, following: int, bound: int, present: Instants, most: int | None
) -> tuple[Instants, int]:
    """Starts of windows from `following` on that end by the bound and are not `present`.

    At most `most` of them are looked at, if it is given.

    Gives also the start from which to look the next time.

    >>> missing_starts(Window(10), 0, 40, np.array([10]), 100)[0].tolist()
    [0, 20, 30]
    """
    count = max(0, (bound - window.range - following) // window.slide + 1)
    count = count if most is None else min(most, count)
    starts = following + np.arange(count, dtype=np.int64) * window.slide
    return np.setdiff1d(starts, present), following + count * window.slide
