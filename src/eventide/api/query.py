"""A query that is whole: its plan, and how to start it.

Law: `plan` is the program that SQL would have become. Starting the same query twice gives two runs of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from eventide.api.column_text import is_column, order_text
from eventide.api.expression import Expression
from eventide.api.startable import UNNAMED, GivenSink, Startable, checked_name
from eventide.plan.order import order_by
from eventide.plan.query import Query

if TYPE_CHECKING:
    from eventide.api.rows import EventRows
    from eventide.api.stream import EventStream

__all__ = ["UNNAMED", "ContinuousQuery", "GivenSink"]


@dataclass(frozen=True)
class ContinuousQuery(Startable):
    """A window aggregate over a stream, or over a merge or join, ready to start. Made by `agg`."""

    stream: EventStream | EventRows
    declared: Query

    @property
    def called(self) -> str:
        """Its name."""
        return self.declared.name

    def named(self, name: str) -> ContinuousQuery:
        """The same query under a name: its results and its files carry it."""
        return replace(self, declared=replace(self.declared, name=checked_name(name)))

    def orderBy(self, *columns: Expression) -> ContinuousQuery:  # noqa: N802
        """The results of each window in this order: `"mean DESC"`, `F.desc("mean")`."""
        texts = [order_text(each) if is_column(each) else str(each) for each in columns]
        return replace(self, declared=replace(self.declared, order=order_by(*texts)))

    def limit(self, rows: int) -> ContinuousQuery:
        """Only the first so many results of each window, in the order of `orderBy`."""
        return replace(self, declared=replace(self.declared, limit=rows))
