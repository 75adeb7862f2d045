"""What differs between the engines: where the rows of a round are, and who runs SQL over them.

Law: `ask` gives the same table for the same statement and rows, whichever backend it is; rows of a round stay readable
under their views until the next `bring`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import pyarrow as pa

from eventide.duckdb.executor import SqlExecutor
from eventide.engine.relations.relation import Layout, Summary
from eventide.plan.declared.stream import Stream
from eventide.plan.expressions.columns import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


T = TypeVar("T")


class BatchSql(Protocol):
    """Runs Spark SQL over rows that it knows by the names of their views."""

    def ask(self, sql: str, tables: Mapping[str, pa.Table] | None = None) -> pa.Table:
        """The answer of a statement, over small tables too."""
        ...

    def reduce(self, stream: Stream, sql: str, portable: bool) -> pa.Table:
        """Run a statement that reduces the rows of one stream; a group may come in several parts.

        `portable`: any engine gives its answer.
        """
        ...


@dataclass(frozen=True)
class StoredRows:
    """Rows in Parquet files: where these are, the columns of the rows, and what they take in memory, about."""

    uris: tuple[str, ...]
    layout: Layout
    bytes: int


@dataclass(frozen=True)
class Target:
    """Where rows are to be written, in which layout, numbered by which sequence."""

    folder: str
    layout: Layout
    sequence: int | None = None


@dataclass(frozen=True)
class ClusterStep:
    """A statement for the cluster: its rows are written to the target, or are a small answer where there is none.

    It is not run where all of the earlier steps that it `needs` wrote no row.
    """

    name: str
    sql: str
    portable: bool
    inner: tuple[Column, ...] = ()
    target: Target | None = None
    needs: tuple[str, ...] = ()


Given = Mapping[str, StoredRows | pa.Table]
"""What a statement on the cluster reads, by the names that it has for it; tables are small."""


class Backend(BatchSql, Protocol):
    """Runs Spark SQL over the rows of a round."""

    name: str
    has_cluster: bool
    """Whether relations can be placed with this backend, outside the driver."""

    def declare(self, stream: Stream) -> None:
        """Make the columns of a stream known, so that types can be asked."""
        ...

    def type_of(self, stream: Stream, sql: str) -> str:
        """The Spark type of an expression over a stream, or a DeclarationError that shows it."""
        ...

    def types_of(self, stream: Stream, several: Sequence[str]) -> list[str]:
        """The Spark types of expressions over a stream, by one statement; a DeclarationError if one has none."""
        ...

    def bring(self, batch: Mapping[str, Any], few: bool = False) -> None:
        """Give the rows of a round, by stream; streams not mentioned have none. `few`: they are expected to be few."""
        ...

    def sql(self, portable: bool) -> SqlExecutor:
        """What runs statements over tables of the driver: DuckDB if `portable`, else what gives Spark's answer."""
        ...

    def store(
        self, stream: Stream, sql: str, portable: bool, target: Target, tables: Mapping[str, pa.Table] | None = None
    ) -> Summary:
        """Write the answer of a statement over a stream's rows of the round as Parquet files, from the executors.

        What was written comes back as a summary, without the size of the files.
        """
        ...

    def run_over(self, steps: Sequence[ClusterStep], given: Given) -> list[Summary | pa.Table]:
        """Run statements over files and small tables, one after the other, on the cluster.

        Of each it tells the summary of what was written, without the size of the files, or the small answer. A later
        one may read what an earlier one wrote by its name.
        """
        ...

    def frame_over(self, sql: str, given: Given) -> DataFrame:
        """A statement over files and small tables as a DataFrame, for a sink that takes one."""
        ...

    def together(self, work: Sequence[Callable[[], T]]) -> list[T]:
        """The answers of several pieces of work that do not need each other: side by side where that is quicker."""
        ...

    def release(self) -> None:
        """Let go of the rows of a round that is over."""
        ...

    def close(self) -> None:
        """Release everything: no more statements come."""
        ...
