"""Segments: the state of an operator of one kind, as a series of relations, the newest last.

Laws. *Append only*: a round adds relations and never changes one; what is done with is forgotten relation by relation,
once all rows of one are. So rows that are done with may still be there: who reads says from where on; NULL is never
among what counts then. *Few*: when
there are many segments the newest ones of about the same size become one, as in a log-structured merge tree, so every
row is written a logarithmic number of times.

>>> from eventide.plan.expressions.columns import columns
>>> layout = Layout(columns("__t BIGINT"), bounded=("__t",))
>>> one, two = (Relation.of_table(layout, pa.table({"__t": times})) for times in ([1, 5], [7]))
>>> both = Segments(layout).add(one).add(two)
>>> both.rows, both.least("__t"), both.since("__t", 6).rows, both.within("__t", 2, 4).rows
(3, 1, 1, 2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.relations.relation import Layout, Relation, place_of
from eventide.eventtime.instant import NEVER, Instants

MOST_SEGMENTS = 24
"""With more segments than this, some become one: each is a table to scan, or a listing and a task for Spark."""

Merge = Callable[["Segments"], Relation]
"""Makes one relation of several."""


@dataclass(frozen=True)
class Segments:
    """Relations of one layout; none of them is empty."""

    layout: Layout
    parts: tuple[Relation, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows there are, done with or not."""
        return sum(part.rows for part in self.parts)

    @property
    def bytes(self) -> int:
        """How large they are, each where it is."""
        return sum(part.bytes for part in self.parts)

    @property
    def weight(self) -> int:
        """How many rows of the stream they hold in partial aggregates."""
        return sum(part.weight for part in self.parts)

    @property
    def place(self) -> str:
        """Where they are; on the cluster if one of them is."""
        return place_of(iter(self.parts))

    @property
    def panes(self) -> Instants:
        """The panes that hold something, ascending."""
        found = [part.panes for part in self.parts]
        return np.unique(np.concatenate(found)) if found else np.zeros(0, dtype=np.int64)

    def least(self, column: str) -> int | None:
        """The least value of a column; None where there is none."""
        return min((low for part in self.parts if (low := part.least(column)) is not None), default=None)

    def add(self, *more: Relation) -> Segments:
        """With these relations too; empty ones are left out."""
        found = tuple(one for one in more if one.rows)
        return replace(self, parts=(*self.parts, *found)) if found else self

    def since(self, column: str, first: int) -> Segments:
        """Without the relations in which no value is at or after `first`."""
        if first == NEVER:
            return self
        return replace(self, parts=tuple(part for part in self.parts if _reaches(part, column, first)))

    def within(self, column: str, low: int, high: int) -> Segments:
        """The relations that may hold a value from `low` to `high`."""
        return replace(self, parts=tuple(part for part in self.parts if _meets(part, column, low, high)))

    def holding(self, panes: Instants) -> Segments:
        """The relations that hold one of these panes."""
        wanted = set(panes.tolist())
        return replace(self, parts=tuple(part for part in self.parts if not wanted.isdisjoint(part.summary.panes)))

    def trimmed(self, column: str, first: int) -> Segments:
        """Without values before `first`: relations go whole, and tables of the driver let go of rows too."""
        found = self.since(column, first)
        return replace(found, parts=tuple(_from(part, column, first) for part in found.parts))

    def merged(self, merge: Merge, most: int = MOST_SEGMENTS) -> Segments:
        """In fewer relations, where there are more than `most`."""
        if len(self.parts) <= most:
            return self
        parts = list(self.parts)
        last = [parts.pop()]
        while parts and (len(parts) >= most or parts[-1].rows <= 2 * sum(part.rows for part in last)):
            last.insert(0, parts.pop())
        return replace(self, parts=tuple(parts)).add(merge(replace(self, parts=tuple(last))))

    def table(self) -> pa.Table:
        """All rows, of segments that are on the driver."""
        tables = [part.table for part in self.parts if part.table is not None]
        assert len(tables) == len(self.parts)
        return pa.concat_tables(tables) if tables else self.layout.empty()

    def saved(self) -> list[dict[str, Any]]:
        """Plain data for the round record."""
        return [part.saved() for part in self.parts]


def concatenated(parts: Iterable[Relation], layout: Layout) -> Segments:
    """Several relations as the segments of one state."""
    return Segments(layout).add(*parts)


def _reaches(part: Relation, column: str, first: int) -> bool:
    last = part.greatest(column)
    return last is not None and last >= first


def _meets(part: Relation, column: str, low: int, high: int) -> bool:
    first, last = part.least(column), part.greatest(column)
    return first is not None and last is not None and first <= high and last >= low


def _from(part: Relation, column: str, first: int) -> Relation:
    if part.table is None or first == NEVER:
        return part
    low, values = part.least(column), part.table.column(column)
    if low is not None and low >= first and values.null_count == 0:
        return part
    return part.kept(pc.fill_null(pc.greater_equal(values, first), False))
