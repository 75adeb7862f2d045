"""Slices of a query that closes source by source: Arrow tables on the driver, each row with the number of its source.

Law: as `engine.slices`, a value: every step gives a new one. Partials wait without a number until the sources of their
round are known. What no source needs any more is let go row by row, since sources are at different times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eventide.engine.slices import slice_schema
from eventide.engine.source_windows import closing_by_source, needed_by_source, numbers_of
from eventide.engine.taken import Answer
from eventide.engine.workbench import Bench
from eventide.errors import DataFaultError
from eventide.eventtime.instant import Instants
from eventide.plan.bound import Bound
from eventide.plan.broken_values import careful_values
from eventide.plan.columns import Column
from eventide.plan.merge_text import BY, LISTED, compact_text, in_order, merge_text

MERGE_AFTER = 16
"""So many tables are merged into one: a long list of small tables is slow to read."""


@dataclass(frozen=True)
class SourceSlices:
    """What one query keeps: `tables` with numbers of sources, and `fresh` ones of a round under way without."""

    query: Bound
    bench: Bench
    keys: tuple[str, ...]
    tables: tuple[pa.Table, ...] = ()
    fresh: tuple[pa.Table, ...] = ()
    placement = "driver"

    @property
    def rows(self) -> int:
        """Rows of all slices."""
        return sum(table.num_rows for table in (*self.tables, *self.fresh))

    @property
    def bytes(self) -> int:
        """Memory of all slices."""
        return sum(table.nbytes for table in (*self.tables, *self.fresh))

    @property
    def panes(self) -> Instants:
        """The panes that hold something, ascending."""
        found = [pc.unique(table.column("__pane")).to_numpy() for table in (*self.tables, *self.fresh)]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)

    def added(self, chunk: pa.Table) -> SourceSlices:
        """With the partials of one round."""
        return replace(self, fresh=(*self.fresh, chunk)) if chunk.num_rows else self

    def numbered(self, names: pa.Array) -> SourceSlices:
        """With the number of its source in every row."""
        if not self.fresh:
            return self
        new = tuple(
            table.append_column(BY, pa.array(numbers_of(table, self.keys, names), pa.int64())).combine_chunks()
            for table in self.fresh
        )
        return replace(self, tables=(*self.tables, *new), fresh=())

    def closing(self, after: Instants, bound: Instants) -> pa.Table:
        """The pairs of pane and window that close for a source; bounds by number, the last for all others."""
        window = self.query.panes
        found = [self._open_pairs(table, bound) for table in self.tables]
        pairs = pa.concat_tables(found).group_by(["__pane", BY]).aggregate([]) if found else _NO_PAIRS
        panes, by = pairs.column("__pane").to_numpy(), pairs.column(BY).to_numpy()
        return closing_by_source(window, panes, by, after[by], bound[by])

    def _open_pairs(self, table: pa.Table, bound: Instants) -> pa.Table:
        """The panes of sources that begin before the bound of their source: no other can close."""
        chosen = _panes(table) < bound[_numbers(table)]
        return table.select(["__pane", BY]).filter(pa.array(chosen))

    def answer(self, windows: pa.Table) -> Answer:
        """The results of windows, listed as pairs of pane and window for a source."""
        speaking = np.zeros(int(pc.max(windows.column("by")).as_py()) + 2, dtype=np.bool_)
        speaking[windows.column("by").to_numpy()] = True
        low, high = pc.min(windows.column("pane")).as_py(), pc.max(windows.column("pane")).as_py()
        held = [part for table in self.tables if (part := _between(table, low, high, speaking)).num_rows]
        tables = {"slices": pa.concat_tables(held), "windows": windows.rename_columns((*LISTED, BY))}
        try:
            return Answer.of(self._asked(self.query, tables))
        except DataFaultError:
            return Answer.of(self._asked(careful_values(self.query), tables), lossy=True)

    def _asked(self, query: Bound, tables: dict[str, pa.Table]) -> pa.Table:
        text = merge_text(query, "slices", "windows", by_source=True)
        inner = tuple(Column(partial.name, partial.type) for partial in query.partials if partial.type)
        return self.bench.ask(f"{text}{in_order(query)}", tables, inner)

    def freed(self, bounds: Instants) -> SourceSlices:
        """Without the panes that their source does not need any more."""
        needed = needed_by_source(self.query.panes, bounds)
        rest = []
        for table in self.tables:
            kept = _panes(table) >= needed[_numbers(table)]
            rest += [table if kept.all() else table.filter(pa.array(kept))] if kept.any() else []
        return replace(self, tables=tuple(rest))._merged()

    def _merged(self) -> SourceSlices:
        """In one table, once there are many."""
        if len(self.tables) <= MERGE_AFTER:
            return self
        whole = pa.concat_tables(self.tables)
        if not self.query.keeps_rows:
            # A group belongs to one source, so the number is the same in all that is merged.
            text = compact_text(self.query, "slices", BY)
            schema = slice_schema(self.query).append(pa.field(BY, pa.int64()))
            whole = self.bench.ask(text, {"slices": whole}).select(schema.names).cast(schema)
        return replace(self, tables=(whole.combine_chunks(),))

    def table(self) -> pa.Table:
        """All slices as one table, without numbers: these are found again."""
        tables = [*(table.drop_columns([BY]) for table in self.tables), *self.fresh]
        return pa.concat_tables(tables) if tables else slice_schema(self.query).empty_table()


_NO_PAIRS = pa.schema([("__pane", pa.int64()), (BY, pa.int64())]).empty_table()


def _panes(table: pa.Table) -> Instants:
    return np.asarray(table.column("__pane").to_numpy(), dtype=np.int64)


def _numbers(table: pa.Table) -> NDArray[np.int64]:
    return np.asarray(table.column(BY).to_numpy(), dtype=np.int64)


def _between(table: pa.Table, low: int, high: int, speaking: NDArray[np.bool_]) -> pa.Table:
    """The rows of these panes of sources for which something closes."""
    panes, by = _panes(table), np.minimum(_numbers(table), len(speaking) - 1)
    return table.filter(pa.array((panes >= low) & (panes <= high) & speaking[by]))
