"""Slices on the driver: Arrow tables, merged by DuckDB when windows close.

Law: a slice store is a value. Adding a round's partials, closing panes and freeing them each give a new store, so a
round that fails leaves nothing behind. Panes that are closed are merged to one row for each group, once; open ones stay
as they came, one table for each round.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.arrow_types import arrow_type
from eventide.engine.taken import Answer
from eventide.engine.workbench import Bench
from eventide.errors import DataFaultError
from eventide.eventtime.instant import NEVER, Instants
from eventide.plan.bound import Bound
from eventide.plan.broken_values import careful_values
from eventide.plan.columns import Column
from eventide.plan.merge_text import LISTED, compact_text, in_order, merge_text
from eventide.plan.slice_columns import slice_columns

MERGE_AFTER = 16
"""So many tables of closed panes are merged into one: a long list of small tables is slow to read."""


@dataclass(frozen=True)
class DriverSlices:
    """What one query keeps, on the driver."""

    query: Bound
    bench: Bench
    open: tuple[pa.Table, ...] = ()
    closed: tuple[pa.Table, ...] = ()
    placement = "driver"

    @property
    def rows(self) -> int:
        """Rows of all slices."""
        return sum(table.num_rows for table in (*self.open, *self.closed))

    @property
    def bytes(self) -> int:
        """Memory of all slices."""
        return sum(table.nbytes for table in (*self.open, *self.closed))

    @property
    def panes(self) -> Instants:
        """The panes that hold something, ascending."""
        found = [pc.unique(table.column("__pane")).to_numpy() for table in (*self.open, *self.closed)]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)

    def added(self, chunk: pa.Table) -> DriverSlices:
        """With the partials of one round."""
        return replace(self, open=(*self.open, chunk)) if chunk.num_rows else self

    def closing(self, bound: int) -> DriverSlices:
        """With panes before `bound` merged for good."""
        window = self.query.panes
        if self.query.keeps_rows or (window.range == window.pane and not self.query.query.retain):
            return self
        parts, rest = [], []
        for table in self.open:
            before, after = _parted(table, bound)
            parts += [before] if before.num_rows else []
            rest += [after] if after.num_rows else []
        if not parts:
            return self
        merged = parts[0] if len(parts) == 1 else self._merged(parts)
        closed = (*self.closed, merged)
        if len(closed) > MERGE_AFTER:
            closed = (pa.concat_tables(closed).combine_chunks(),)
        return replace(self, open=tuple(rest), closed=closed)

    def freed(self, needed: int) -> DriverSlices:
        """Without the panes before `needed`."""
        if needed == NEVER:
            return self
        return replace(self, open=_from(self.open, needed), closed=_from(self.closed, needed))

    def answer(self, windows: pa.Table, changed: pa.Table | None = None) -> Answer:
        """The results of windows, listed as pairs of pane and window; with `changed`, of the groups in it alone."""
        panes = pc.unique(windows.column("pane"))
        low, high = pc.min(panes).as_py(), pc.max(panes).as_py()
        held = [part for table in (*self.open, *self.closed) if (part := _between(table, low, high)).num_rows]
        slices = pa.concat_tables(held) if held else self.empty()
        tables = {
            "slices": slices,
            "windows": windows.rename_columns(LISTED),
            **({} if changed is None else {"changed": changed}),
        }
        try:
            return Answer.of(self._asked(self.query, tables))
        except DataFaultError:
            return Answer.of(self._asked(careful_values(self.query), tables), lossy=True)

    def _asked(self, query: Bound, tables: dict[str, pa.Table]) -> pa.Table:
        text = merge_text(query, "slices", "windows", "changed" if "changed" in tables else None)
        inner = tuple(Column(partial.name, partial.type) for partial in query.partials if partial.type)
        return self.bench.ask(f"{text}{in_order(query)}", tables, inner)

    def table(self) -> pa.Table:
        """All slices as one table."""
        tables = [*self.closed, *self.open]
        return pa.concat_tables(tables) if tables else self.empty()

    def empty(self) -> pa.Table:
        """A table without rows and with all columns."""
        return slice_schema(self.query).empty_table()

    def _merged(self, parts: list[pa.Table]) -> pa.Table:
        text = compact_text(self.query, "slices")
        return self.bench.ask(text, {"slices": pa.concat_tables(parts)}).cast(slice_schema(self.query))


def slice_schema(query: Bound) -> pa.Schema:
    """The columns of a slice of this query."""
    return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in slice_columns(query)])


def _parted(table: pa.Table, bound: int) -> tuple[pa.Table, pa.Table]:
    panes = table.column("__pane")
    edges = pc.min_max(panes).as_py()
    if edges["max"] < bound:
        return table, table.slice(0, 0)
    if edges["min"] >= bound:
        return table.slice(0, 0), table
    before = pc.less(panes, bound)
    return table.filter(before), table.filter(pc.invert(before))


def _from(tables: tuple[pa.Table, ...], needed: int) -> tuple[pa.Table, ...]:
    return tuple(rest for table in tables if (rest := _parted(table, needed)[1]).num_rows)


def _between(table: pa.Table, low: int, high: int) -> pa.Table:
    panes = table.column("__pane")
    edges = pc.min_max(panes).as_py()
    if edges["min"] >= low and edges["max"] <= high:
        return table
    return table.filter(pc.and_(pc.greater_equal(panes, low), pc.less_equal(panes, high)))
