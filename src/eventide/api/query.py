"""A query that is whole: its plan, and how to start it.

Law: `plan` is the program that SQL would have become. Starting the same query twice gives two runs of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from eventide.api.column_text import is_column, order_text
from eventide.api.expression import Expression
from eventide.api.lengths import Length, length
from eventide.api.startable import UNNAMED, GivenSink, Startable, checked_name
from eventide.eventtime.earliness import Earliness
from eventide.plan.order import order_by
from eventide.plan.prods import Prods
from eventide.plan.query import Query
from eventide.plan.stream import TimeKind

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

    def prodded(
        self,
        every: Length | None = None,
        at: float | Sequence[float] = (),
        within: float | Earliness | None = None,
        estimate: bool = False,
    ) -> ContinuousQuery:
        """The same query with early results: `every` so often, `at` shares of the slide, `within` an error.

        With `estimate`, sums and counts are extrapolated beside their raw values. See `docs/prods.md`.
        """
        kinds = {stream.time_kind for stream in self.plan.streams}
        kind = TimeKind.SEQUENCE if kinds == {TimeKind.SEQUENCE} else TimeKind.TIMESTAMP
        prods = Prods(
            None if every is None else length(every, kind, "prodded(every=...)"),
            (float(at),) if isinstance(at, int | float) else tuple(map(float, at)),
            Earliness(within) if isinstance(within, int | float) else within,
            estimate,
        )
        return replace(self, declared=replace(self.declared, prods=prods))
