"""What differs between the engines: where the rows of a round are, and who runs SQL over them.

Law: `ask` gives the same table for the same statement and rows, whichever backend it is; rows of a round stay readable
under their views until the next `bring`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from eventide.engine.duckdb.executor import Bench
from eventide.engine.relations.relation import Layout, Summary
from eventide.plan.declared.stream import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Asking(Protocol):
    """Runs Spark SQL over rows that it knows by the names of their views."""

    def ask(self, sql: str, tables: Mapping[str, pa.Table] | None = None) -> pa.Table:
        """The answer of a statement, over small tables too."""
        ...

    def reduce(self, stream: Stream, sql: str, plain: bool) -> pa.Table:
        """The same for a statement that reduces the rows of one stream; a group may be told in several parts.

        `plain`: any engine gives its answer.
        """
        ...


FileList = tuple[list[str], str]
"""The places of files, and the columns that they have, as Spark writes a schema."""


class Backend(Asking, Protocol):
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

    def bring(self, batch: Mapping[str, Any], few: bool = False) -> None:
        """Give the rows of a round, by stream; streams not mentioned have none. `few`: they are expected to be few."""
        ...

    def sql(self, portable: bool) -> Bench:
        """Who runs statements over tables of the driver: whoever gives Spark's own answer."""
        ...

    def store(
        self,
        stream: Stream,
        sql: str,
        plain: bool,
        folder: str,
        layout: Layout,
        sequence: int | None = None,
        tables: Mapping[str, pa.Table] | None = None,
    ) -> Summary:
        """Write the answer of a statement over a stream's rows of the round as Parquet files, from the executors.

        Rows are numbered with the `sequence` where the layout asks for it. What was written is told as a summary,
        without the size of the files.
        """
        ...

    def store_over(
        self,
        sql: str,
        files: Mapping[str, FileList],
        tables: Mapping[str, pa.Table],
        folder: str,
        layout: Layout,
        sequence: int | None,
    ) -> Summary:
        """The same for a statement over Parquet files and small tables."""
        ...

    def collect_over(self, sql: str, files: Mapping[str, FileList], tables: Mapping[str, pa.Table]) -> pa.Table:
        """The small answer of a statement over Parquet files and small tables."""
        ...

    def frame_over(self, sql: str, files: Mapping[str, FileList], tables: Mapping[str, pa.Table]) -> DataFrame:
        """A statement over Parquet files and small tables as a DataFrame, for a sink that takes one."""
        ...

    def release(self) -> None:
        """The round is over."""
        ...

    def close(self) -> None:
        """Nothing will be asked any more."""
        ...
