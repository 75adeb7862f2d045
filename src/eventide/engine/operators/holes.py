"""Windows that meet a hole: time that was set aside and is open, although the bound has passed it.

Law: a window that meets a hole is not answered, and all its panes are kept, until no hole meets it any more; windows
beside it are answered in their time. A hole is made of whole panes (prodding thesis, section 6.2 (a): range
punctuations).

>>> window = Window(range=20, slide=10)
>>> pairs = pa.table({"pane": [0, 10, 20], "window_start": [0, 10, 20], "window_end": [20, 30, 40]})
>>> meeting(pairs, [Span(10, 20)]).to_pylist()
[True, True, False]
>>> first_start(window, [Span(10, 20)]), first_end(window, [Span(10, 20)])
(0, 20)
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from eventide.eventtime.instant import FOREVER
from eventide.eventtime.span import Span
from eventide.plan.window import Window


def meeting(windows: pa.Table, holes: Sequence[Span]) -> pa.Array:
    """Which of the windows, listed as pairs of pane and window, meet a hole."""
    found = pa.array([False] * windows.num_rows, pa.bool_())
    for hole in holes:
        starts = pc.less(windows.column("window_start"), hole.end)
        found = pc.or_(found, pc.and_(starts, pc.greater(windows.column("window_end"), hole.start)))
    return found.combine_chunks() if isinstance(found, pa.ChunkedArray) else found


def outside(windows: pa.Table, holes: Sequence[Span]) -> pa.Table:
    """The windows that meet no hole."""
    return windows.filter(pc.invert(meeting(windows, holes))) if holes else windows


def first_start(window: Window, holes: Sequence[Span]) -> int:
    """The start of the first window that meets a hole; FOREVER without holes."""
    return min((_first(window, hole) for hole in holes), default=FOREVER)


def first_end(window: Window, holes: Sequence[Span]) -> int:
    """The end of the first window that meets a hole; FOREVER without holes."""
    return min((_first(window, hole) + window.range for hole in holes), default=FOREVER)


def _first(window: Window, hole: Span) -> int:
    starts = window.starts_covering(hole.start)
    return starts[0] if len(starts) else hole.start
