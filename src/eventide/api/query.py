"""A query that is whole: its plan, and how to start it.

Law: `plan` is the program that SQL would have become. Starting the same query twice gives two runs of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from eventide.api.column_text import is_column, order_text
from eventide.api.expression import Expression
from eventide.errors import DeclarationError
from eventide.plan.order import order_by
from eventide.plan.program import NAME, Program
from eventide.plan.query import Query
from eventide.sinks.sink import Sink

if TYPE_CHECKING:
    from eventide.api.running_query import RunningQuery
    from eventide.api.stream import EventStream

UNNAMED = "query"

GivenSink: TypeAlias = "str | PathLike[str] | Callable[[pa.Table], object] | Sink | None"
"""Where results go: a directory, a function of an Arrow table, any sink; None keeps them in memory."""


@dataclass(frozen=True)
class ContinuousQuery:
    """A window aggregate over a stream, ready to start. Made by `agg`."""

    stream: EventStream
    declared: Query

    @property
    def plan(self) -> Program:
        """The stream and the query as plan nodes."""
        return Program((self.stream.declared,), (self.declared,))

    def named(self, name: str) -> ContinuousQuery:
        """The same query under a name: its results and its files carry it."""
        if not NAME.fullmatch(name):
            raise DeclarationError(f"{name!r} cannot name a query: use letters, digits and underscores, a letter first")
        return replace(self, declared=replace(self.declared, name=name))

    def orderBy(self, *columns: Expression) -> ContinuousQuery:  # noqa: N802
        """The results of each window in this order: `"mean DESC"`, `F.desc("mean")`."""
        texts = [order_text(each) if is_column(each) else str(each) for each in columns]
        return replace(self, declared=replace(self.declared, order=order_by(*texts)))

    def limit(self, rows: int) -> ContinuousQuery:
        """Only the first so many results of each window, in the order of `orderBy`."""
        return replace(self, declared=replace(self.declared, limit=rows))

    def start(
        self,
        sink: GivenSink = None,
        checkpoint: str | PathLike[str] | None = None,
        name: str | None = None,
        *,
        format: str = "parquet",
        every: str | None = None,
        bounded: bool | None = None,
    ) -> RunningQuery:
        """Start it; results go to `sink`.

        `checkpoint`: a folder from which a later start of the same query continues exactly; without it, one is made and
        forgotten with the process. `format`: parquet, json or csv, where `sink` is a directory. `every`: begin a round
        at most so often (`'1 second'`). `bounded`: take what is there now, close every window, and end; so it is
        for Arrow data unless told otherwise, and not for Spark.
        """
        from eventide.api.start import start_all

        one = self if name is None else self.named(name)
        run = start_all((one,), {one.declared.name: sink}, checkpoint, format, every, bounded)
        return run[one.declared.name]

    def run(self) -> pa.Table:
        """All results, after taking what is there now and closing every window.

        A `LostRowsWarning` tells of rows that came too late, or that were rejected.
        """
        with self.start(bounded=True) as running:
            return running.together.finished()[self.declared.name]
