"""Blocks of panes: what many windows share is merged once, not for each of them.

Law: a list says which panes a window is made of. In a list with blocks, each of these panes stands once for the window:
by itself, or in a block that lies wholly in the window. So the window's result is the same, merged of fewer rows: of
`n` panes a window, about twice the root of `n`.

>>> pairs = pa.table({"pane": [0, 1, 2, 3], "window_start": [0] * 4, "window_end": [4] * 4})
>>> shared, blocks = in_blocks(pairs, size=2)
>>> [pane - FIRST_BLOCK for pane in shared["pane"].to_pylist()], blocks["__of"].to_pylist()
([0, 1], [0, 1, 2, 3])
"""

from __future__ import annotations

from math import isqrt

import numpy as np
import pyarrow as pa

from eventide.eventtime.instant import EDGE
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.window import RowWindow
from eventide.plan.sql.merge import BLOCK

FIRST_BLOCK = EDGE
"""Blocks are numbered beyond all time, where no pane is."""

FEWEST_PANES = 16
"""Windows of fewer panes are not worth another statement."""

WORTH = 4
"""So many windows hold a pane, on average, where blocks are made."""

NO_BLOCKS = pa.table({"__of": pa.array([], pa.int64()), BLOCK: pa.array([], pa.int64())})


def block_size(query: BoundQuery) -> int | None:
    """How many panes make a block of a query over windows of time; None where its windows share too few."""
    if query.keeps_rows or query.query.by_source or isinstance(query.query.window, RowWindow):
        return None
    panes = query.panes.range // query.panes.pane
    return isqrt(panes) if panes >= FEWEST_PANES else None


def where_shared(windows: pa.Table, size: int) -> tuple[pa.Table, pa.Table]:
    """The list with blocks, where many windows hold a pane; else as it is, and no blocks."""
    panes = len(np.unique(windows.column("pane").to_numpy()))
    return in_blocks(windows, size) if windows.num_rows >= WORTH * panes else (windows, NO_BLOCKS)


def in_blocks(windows: pa.Table, size: int) -> tuple[pa.Table, pa.Table]:
    """The list with blocks in the place of their panes, and the panes of the blocks."""
    panes, place = np.unique(windows.column("pane").to_numpy(), return_inverse=True)
    starts, ends = windows.column("window_start").to_numpy(), windows.column("window_end").to_numpy()
    _, window = np.unique(np.stack([starts, ends]), axis=1, return_inverse=True)
    block = place // size
    last = len(panes) // size + 1
    meeting, first, of, count = np.unique(
        window.ravel() * last + block, return_index=True, return_inverse=True, return_counts=True
    )
    whole = count == np.minimum(size, len(panes) - meeting % last * size)
    kept = np.union1d(np.flatnonzero(~whole[of]), first[whole])
    named = np.where(whole[of], FIRST_BLOCK + block, panes[place])[kept]
    shared = windows.take(kept).set_column(windows.column_names.index("pane"), "pane", pa.array(named))
    used = np.isin(np.arange(len(panes)) // size, np.unique(meeting[whole] % last))
    numbers = FIRST_BLOCK + np.flatnonzero(used) // size
    return shared, pa.table({"__of": panes[used], BLOCK: numbers})
