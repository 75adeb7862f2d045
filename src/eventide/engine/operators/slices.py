"""Slices: what window aggregates keep, one row of partial aggregates for each pane and group, or the rows themselves.

Laws. The results of windows are one statement over slices and a list of windows, whichever operator asks; slices of one
pane and group may lie in several rows, and merging these changes no result. *Blocks of panes*: what many windows share
is merged once, not for each of them. A list says which panes a window is made of. In a list with blocks, each of these
panes stands once for the window: by itself, or in a block that lies wholly in the window. So the window's result is the
same, merged of fewer rows: of `n` panes a window, about twice the root of `n`.

>>> pairs = pa.table({"pane": [0, 1, 2, 3], "window_start": [0] * 4, "window_end": [4] * 4})
>>> shared, blocks = in_blocks(pairs, size=2)
>>> [pane - FIRST_BLOCK for pane in shared["pane"].to_pylist()], blocks["__of"].to_pylist()
([0, 1], [0, 1, 2, 3])
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import isqrt
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.operators.operator import Operator, output_layout
from eventide.engine.relations.executor import Executor, Statement
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.eventtime.instant import EDGE
from eventide.plan.bound.query import BoundQuery
from eventide.plan.bound.rows import slice_columns
from eventide.plan.declared.window import RowWindow
from eventide.plan.expressions.columns import Column
from eventide.plan.sql.merge import (
    BEAT,
    BLOCK,
    BY,
    LISTED,
    compact_text,
    fail_safe_values,
    in_order,
    merge_text,
    with_blocks,
)

HEARTBEAT = Column("heartbeat", "BIGINT")


@dataclass(frozen=True)
class SliceAggregate(Operator):
    """An aggregate over windows, with the slices of its query."""

    query: BoundQuery
    executor: Executor
    slices: Segments

    @property
    def name(self) -> str:
        """The name that others read it by."""
        return self.query.query.name

    @property
    def state(self) -> Mapping[str, Segments]:
        """The slices, which are all that is kept."""
        return {"slices": self.slices}

    def with_state(self, state: Mapping[str, Segments]) -> Self:
        """A copy whose slices are elsewhere or in other files."""
        return replace(self, slices=state["slices"])


def slice_layout(query: BoundQuery, *more: Column) -> Layout:
    """The columns of a query's slices; summaries know every pane, and how many rows of the stream they hold."""
    return Layout((*slice_columns(query), *more), ("__pane",), "__pane", None if query.keeps_rows else "__n")


def result_layout(query: BoundQuery) -> Layout:
    """The columns of a query's results."""
    return output_layout(query.outputs, *((HEARTBEAT,) if query.query.by_source else ()))


def results_of(
    executor: Executor, query: BoundQuery, slices: Segments, windows: pa.Table, changed: Segments | None = None
) -> Relation:
    """The results of windows, listed as pairs of pane and window; with `changed`, of the groups in it alone.

    Where the list says `by` which source a window is closed, and by which `heartbeat`, slices of other sources do not
    count for it.
    """
    by_source = "by" in windows.column_names
    held = slices.holding(pc.unique(windows.column("pane")).to_numpy())
    again = None if changed is None else "changed"
    # Which windows a changed pane is in has to be seen in the list.
    size = block_size(query) if changed is None else None
    windows, blocks = where_shared(windows, size) if size is not None else (windows, None)
    source = "slices" if blocks is None else with_blocks(query, "slices", "blocks")
    statement = Statement(
        merge_text(query, source, "windows", again, by_source),
        query.driver_exact,
        in_order(query),
        bool(query.query.order),
        lambda: merge_text(fail_safe_values(query), source, "windows", again, by_source),
        tuple(Column(partial.name, partial.type) for partial in query.partials if partial.type),
    )
    listed = windows.rename_columns((*LISTED, BY, BEAT) if by_source else LISTED)
    inputs: dict[str, Segments | pa.Table] = {"slices": held, "windows": listed}
    inputs |= {} if changed is None else {"changed": changed}
    inputs |= {} if blocks is None else {"blocks": blocks}
    return executor.relation(statement, inputs, result_layout(query))


def compacted(executor: Executor, query: BoundQuery, slices: Segments, *beside: str) -> Segments:
    """The slices in fewer relations, where there are many; `beside` are columns that a group determines."""
    merge = None
    if not query.keeps_rows:
        merge = Statement(compact_text(query, "segments", *beside), query.driver_exact)
    return slices.merged(lambda some: executor.merged(some, merge))


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
    """The list of windows, with blocks of panes where many windows hold a pane; else unchanged, without blocks."""
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
