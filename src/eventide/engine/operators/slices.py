"""Slices: what window aggregates keep, one row of partial aggregates for each pane and group, or the rows themselves.

Law: the results of windows are one statement over slices and a list of windows, whichever operator asks; slices of one
pane and group may lie in several rows, and merging these changes no result.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self

import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.operators.blocks import block_size, where_shared
from eventide.engine.operators.operator import Operator, output_layout
from eventide.engine.relations.executor import Executor
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.engine.relations.statement import Statement
from eventide.plan.bound.query import BoundQuery
from eventide.plan.bound.rows import slice_columns
from eventide.plan.expressions.columns import Column
from eventide.plan.sql.failing_values import fail_safe_values
from eventide.plan.sql.merge import BEAT, BY, LISTED, compact_text, in_order, merge_text, with_blocks

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
        """The slices."""
        return {"slices": self.slices}

    def with_state(self, state: Mapping[str, Segments]) -> Self:
        """The same with the same slices, elsewhere or in other files."""
        return replace(self, slices=state["slices"])


def slice_layout(query: BoundQuery, *more: Column) -> Layout:
    """The columns of a query's slices; every pane is known, and for how many rows they stand."""
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
    """The same slices in fewer relations, where there are many; `beside` are columns that a group determines."""
    merge = None
    if not query.keeps_rows:
        merge = Statement(compact_text(query, "segments", *beside), query.driver_exact)
    return slices.merged(lambda some: executor.merged(some, merge))
