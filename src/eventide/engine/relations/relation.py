"""A relation: rows with a layout, a summary that steers, and a place.

Laws. *One description, any place*: rows are an Arrow table on the driver, files of the checkpoint, or both, and mean
the same in each. A relation with a table is on the *driver*; one with files alone is on the *cluster*, and the driver
sees nothing of it but its summary. *A value*: nothing in it changes; who adds, forgets or moves rows makes another one.

>>> from eventide.plan.expressions.columns import columns
>>> layout = Layout(columns("__t BIGINT, v INT"), bounded=("__t",))
>>> rows = Relation.of_table(layout, pa.table({"__t": [5, 3], "v": pa.array([1, 2], pa.int32())}))
>>> rows.rows, rows.least("__t"), rows.greatest("__t"), rows.place
(2, 3, 5, 'driver')
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.checkpoint.record import StateFile
from eventide.eventtime.instant import Instants
from eventide.plan.bound.rows import IDENTITY
from eventide.plan.declared.temporal import DAY
from eventide.plan.expressions.columns import Column, quoted
from eventide.sources.arrow_types import arrow_type

SEQUENCE, ID = (column.name for column in IDENTITY)

WIDE = 32
"""Bytes that a value of no fixed width is taken to have, before any has been seen."""


@dataclass(frozen=True)
class Layout:
    """The columns of a relation, and which of them its summary tells about.

    One that begins with the columns of an identity has its rows numbered where they come from.

    `bounded` columns tell a time or a number: their least and greatest values are known. Of the column `panes` every
    value is known; `weight` is summed: it says for how many rows of a stream a row stands.
    """

    columns: tuple[Column, ...]
    bounded: tuple[str, ...] = ()
    panes: str | None = None
    weight: str | None = None

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them."""
        return pa.schema([pa.field(column.name, arrow_type(column.type)) for column in self.columns])

    @property
    def ddl(self) -> str:
        """The columns as Spark writes a schema."""
        return ", ".join(f"{quoted(column.name)} {column.type}" for column in self.columns)

    @property
    def is_numbered(self) -> bool:
        """Whether every row has an identity of its own."""
        return self.columns[: len(IDENTITY)] == IDENTITY

    @property
    def brought(self) -> tuple[Column, ...]:
        """The columns that rows bring along: all but their identity, which they are given."""
        return self.columns[len(IDENTITY) :] if self.is_numbered else self.columns

    @property
    def row_bytes(self) -> int:
        """What a row takes in memory, about."""
        return sum(_width(field.type) for field in self.schema)

    def empty(self) -> pa.Table:
        """A table of these columns without rows."""
        return self.schema.empty_table()


def _width(kind: pa.DataType) -> int:
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:
        return WIDE


@dataclass(frozen=True)
class Summary:
    """What the driver knows of rows wherever they are; values that tell a time are in microseconds."""

    rows: int
    bytes: int
    weight: int
    least: Mapping[str, int] = field(default_factory=dict)
    greatest: Mapping[str, int] = field(default_factory=dict)
    panes: tuple[int, ...] = ()

    @classmethod
    def of(cls, layout: Layout, table: pa.Table) -> Summary:
        """The summary of a table's rows."""
        least, greatest = {}, {}
        for name in layout.bounded:
            edges = pc.min_max(instants(table.column(name))).as_py()
            if edges["min"] is not None:
                least[name], greatest[name] = edges["min"], edges["max"]
        panes: tuple[int, ...] = ()
        if layout.panes is not None:
            panes = tuple(np.unique(table.column(layout.panes).to_numpy()).tolist())
        weight = table.num_rows
        if layout.weight is not None:
            weight = int(pc.sum(table.column(layout.weight)).as_py() or 0)
        return cls(table.num_rows, table.nbytes, weight, least, greatest, panes)

    @classmethod
    def of_all(cls, parts: Sequence[Summary]) -> Summary:
        """The summary of several relations together."""
        least: dict[str, int] = {}
        greatest: dict[str, int] = {}
        for part in parts:
            least |= {name: min(low, least.get(name, low)) for name, low in part.least.items()}
            greatest |= {name: max(high, greatest.get(name, high)) for name, high in part.greatest.items()}
        panes = tuple(sorted({pane for part in parts for pane in part.panes}))
        rows, size, weight = (sum(counts) for counts in zip(*((p.rows, p.bytes, p.weight) for p in parts), strict=True))
        return cls(rows, size, weight, least, greatest, panes)

    def saved(self) -> dict[str, Any]:
        """Plain data for the round record."""
        return {
            "rows": self.rows,
            "bytes": self.bytes,
            "weight": self.weight,
            "least": dict(self.least),
            "greatest": dict(self.greatest),
            "panes": list(self.panes),
        }

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> Summary:
        """A summary from plain data."""
        return cls(
            saved["rows"], saved["bytes"], saved["weight"], saved["least"], saved["greatest"], tuple(saved["panes"])
        )


@dataclass(frozen=True, eq=False)
class Relation:
    """Rows of one layout; `files` may hold rows that the `table` lacks, because they are not needed any more.

    `lossy`: values of it may be lost, and `__lost` tells which.
    """

    layout: Layout
    table: pa.Table | None = None
    files: tuple[StateFile, ...] = ()
    stored: Summary | None = None
    lossy: bool = False

    @classmethod
    def of_table(cls, layout: Layout, table: pa.Table, lossy: bool = False) -> Relation:
        """Rows that are on the driver."""
        return cls(layout, table, lossy=lossy)

    @classmethod
    def nothing(cls, layout: Layout) -> Relation:
        """A relation without rows."""
        return cls(layout, layout.empty())

    @cached_property
    def summary(self) -> Summary:
        """The summary of the rows, wherever they are."""
        if self.table is None:
            assert self.stored is not None
            return self.stored
        return Summary.of(self.layout, self.table)

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.summary.rows if self.table is None else int(self.table.num_rows)

    @property
    def bytes(self) -> int:
        """How large they are: in memory, or in files."""
        return self.summary.bytes if self.table is None else int(self.table.nbytes)

    @property
    def weight(self) -> int:
        """How many rows of the stream they hold in partial aggregates."""
        return self.summary.weight

    @property
    def place(self) -> str:
        """Where they are: with the driver, or on the cluster."""
        return "cluster" if self.table is None else "driver"

    @property
    def panes(self) -> Instants:
        """The panes of the rows, ascending."""
        return np.array(self.summary.panes, dtype=np.int64)

    def least(self, column: str) -> int | None:
        """The least value of a bounded column; None where all are NULL."""
        return self.summary.least.get(column)

    def greatest(self, column: str) -> int | None:
        """The greatest value of a bounded column; None where all are NULL."""
        return self.summary.greatest.get(column)

    def kept(self, chosen: pa.Array | pa.ChunkedArray) -> Relation:
        """Some rows of one that is on the driver; the files, if there are any, still hold the others."""
        assert self.table is not None
        return Relation(self.layout, self.table.filter(chosen), self.files, lossy=self.lossy)

    def without_table(self) -> Relation:
        """The rows on the cluster: the table is dropped, the files stay."""
        assert self.files
        return replace(self, table=None, stored=replace(self.summary, bytes=sum(file.bytes for file in self.files)))

    def saved(self) -> dict[str, Any]:
        """Plain data for the round record."""
        return {"files": [file.name for file in self.files], **self.summary.saved()}


def numbered(table: pa.Table, sequence: int, first: int = 0) -> pa.Table:
    """Rows with an identity: the sequence of their relation, and a number within it."""
    numbers = first + np.arange(table.num_rows, dtype=np.int64)
    columns = (np.full(table.num_rows, sequence, dtype=np.int64), numbers)
    for place, (column, values) in enumerate(zip(IDENTITY, columns, strict=True)):
        table = table.add_column(place, column.name, pa.array(values))
    return table


def instants(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column that tells a time or a number, as whole microseconds or the number itself."""
    if pa.types.is_date32(column.type):
        return pc.multiply(column.cast(pa.int32()).cast(pa.int64()), DAY)
    return column.cast(pa.int64())


def place_of(relations: Iterator[Relation]) -> str:
    """Where several relations are: on the cluster if one of them is."""
    return "cluster" if any(relation.place == "cluster" for relation in relations) else "driver"
