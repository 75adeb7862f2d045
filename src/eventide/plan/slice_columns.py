"""The columns of a slice, in the order in which every store keeps them."""

from __future__ import annotations

from eventide.plan.bound import Bound
from eventide.plan.columns import Column, quoted


def slice_columns(query: Bound) -> tuple[Column, ...]:
    """Pane, groups, and partials with the number of rows; or pane, time, groups and the rows themselves."""
    keys = tuple(Column(f"__k{j}", key.type) for j, key in enumerate(query.keys))
    pane = Column("__pane", "BIGINT")
    if query.keeps_rows:
        return (pane, Column("__t", "BIGINT"), *keys, *query.kept)
    return (pane, *keys, Column("__n", "BIGINT"), *(Column(p.name, p.type) for p in query.partials))


def slice_ddl(query: Bound) -> str:
    """The same as Spark writes a schema."""
    return ", ".join(f"{quoted(column.name)} {column.type}" for column in slice_columns(query))
