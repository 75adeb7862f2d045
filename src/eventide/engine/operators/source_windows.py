"""Which windows close for which source, and which panes a source does not need any more: arrays, one place per row.

Law: as in `engine.windows`, with a bound for each source instead of one for all. Nothing here loops over sources.

>>> w = Window(range=20, slide=10)
>>> pairs = closing_by_source(w, np.array([0, 0]), np.array([0, 1]), np.array([NEVER, 10]), np.array([10, 20]))
>>> pairs.to_pylist()
[{'pane': 0, 'window_start': -10, 'window_end': 10, 'by': 0}, {'pane': 0, 'window_start': 0, 'window_end': 20, 'by': 1}]
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from eventide.eventtime.instant import EDGE, FOREVER, NEVER, Instants, within_edges
from eventide.plan.window import Window


def closed_by_each(window: Window, heartbeats: Instants) -> Instants:
    """For each heartbeat, the start of the first pane that is open after it.

    >>> closed_by_each(Window(10), np.array([NEVER, 9, 18])).tolist() == [NEVER, 10, 10]
    True
    """
    after = within_edges(heartbeats) + 1
    bounds = after - (after - window.offset) % window.pane
    return np.where(heartbeats <= -EDGE, NEVER, np.where(heartbeats >= EDGE, FOREVER, bounds))


def needed_by_source(window: Window, bounds: Instants) -> Instants:
    """For each bound, the first pane that a window still open can need.

    >>> needed_by_source(Window(20, 10), np.array([30, FOREVER])).tolist() == [20, FOREVER]
    True
    """
    done = within_edges(bounds)
    latest = done - window.range
    needed = latest - (latest - window.offset) % window.slide + window.slide
    needed = np.minimum(needed, done) if window.slide > window.range else needed
    return np.where((bounds == NEVER) | (bounds == FOREVER), bounds, needed)


def closing_by_source(
    window: Window, panes: Instants, by: NDArray[np.intp], after: Instants, bound: Instants
) -> pa.Table:
    """Every pane of a source with the windows that hold it and end after `after` and not after `bound`, row by row."""
    last = panes - (panes - window.offset) % window.slide + window.range
    low = np.maximum(after, panes)
    # The first end after `low`; ends are `slide` apart.
    first = low - (low - window.offset - window.range) % window.slide + window.slide
    count = np.maximum((np.minimum(bound, last) - first) // window.slide + 1, 0)
    row = np.repeat(np.arange(len(panes)), count)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    ends = first[row] + nth * window.slide
    order = np.argsort(ends, kind="stable")
    row, ends = row[order], ends[order]
    return pa.table({"pane": panes[row], "window_start": ends - window.range, "window_end": ends, "by": by[row]})
