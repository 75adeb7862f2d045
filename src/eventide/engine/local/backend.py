"""The local engine's backend: DuckDB over Arrow tables, no JVM."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import pyarrow as pa

from eventide.duckdb.executor import DuckDBExecutor, SqlExecutor, of_duckdb
from eventide.engine.relations.backend import ClusterStep, Given, Target
from eventide.engine.relations.relation import Summary
from eventide.errors import DataFaultError, DeclarationError, EngineError, first_line
from eventide.plan.declared.stream import Derived, Stream
from eventide.plan.expressions.columns import with_type
from eventide.plan.sql.computed_columns import computed_text
from eventide.plan.sql.stream_rows import MALFORMED, batch_view
from eventide.sources.arrow_types import arrow_type, spark_type_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

T = TypeVar("T")

NO_CLUSTER = "the local engine has no cluster: continue what has state there with the Spark engine"


class LocalBackend:
    """Runs the reduce in this process. Slices never leave it; DuckDB spills what memory cannot hold.

    >>> from eventide.plan.declared.stream import Stream, columns
    >>> backend, s = LocalBackend(), Stream("s", columns("t BIGINT, v INT"), time="t")
    >>> backend.declare(s)
    >>> backend.type_of(s, "v * 1.5"), backend.type_of(s, "avg(v)")
    ('DECIMAL(13, 1)', 'DOUBLE')
    """

    name = "local"
    has_cluster = False

    def __init__(self, duckdb_executor: DuckDBExecutor | None = None) -> None:
        self.duckdb_executor = duckdb_executor or DuckDBExecutor()
        self._streams: dict[str, Stream] = {}
        self._batch: dict[str, pa.Table] = {}

    def declare(self, stream: Stream) -> None:
        """Remember the stream's columns; results of a query come with no round, and twins have the rows of others."""
        if not isinstance(stream, Derived) and stream.twin_of is None:
            self._streams[stream.name] = stream

    def type_of(self, stream: Stream, sql: str) -> str:
        """The Spark type of an expression."""
        return self.types_of(stream, [sql])[0]

    def types_of(self, stream: Stream, several: Sequence[str]) -> list[str]:
        """The Spark types of expressions, by one statement."""
        asked = ", ".join(f"{sql} AS __type{place}" for place, sql in enumerate(several))
        try:
            empty = {f"empty_{stream.name}": _none(stream)}
            answer = self.duckdb_executor.ask(f"SELECT {asked} FROM empty_{stream.name}", empty)
        except (duckdb.Error, DataFaultError) as error:
            reason, what = first_line(error), ", ".join(several)
            raise DeclarationError(f"cannot tell what {what!r} over stream {stream.name!r} is: {reason}") from error
        return [with_type(sql, spark_type_of(kind)) for sql, kind in zip(several, answer.schema.types, strict=True)]

    def bring(self, batch: Mapping[str, Any], few: bool = False) -> None:
        """Give the rows of a round as Arrow tables with the declared columns, and perhaps `_malformed`."""
        self._batch = {}
        for name, stream in self._streams.items():
            table = batch.get(name)
            self._batch[batch_view(stream)] = self._computed(stream, table) if table is not None else _none(stream)

    def _computed(self, stream: Stream, table: pa.Table) -> pa.Table:
        """The rows with all columns of the stream: those that are computed, too."""
        read = _declared(stream.as_read, table)
        if not stream.computed:
            return read
        return _declared(stream, self.duckdb_executor.ask(computed_text(stream, "rows_read"), {"rows_read": read}))

    def ask(self, sql: str, tables: Mapping[str, pa.Table] | None = None) -> pa.Table:
        """The answer of a statement over the round's rows."""
        try:
            return self.duckdb_executor.ask(sql, {**self._batch, **(tables or {})})
        except duckdb.Error as error:
            raise of_duckdb(error, "a round cannot be computed") from error

    def reduce(self, stream: Stream, sql: str, portable: bool) -> pa.Table:
        """Run a statement over the rows of the round, which are all here."""
        return self.ask(sql)

    def sql(self, portable: bool) -> SqlExecutor:
        """DuckDB computes everything here."""
        return self.duckdb_executor

    def store(
        self, stream: Stream, sql: str, portable: bool, target: Target, tables: Mapping[str, pa.Table] | None = None
    ) -> Summary:
        """Not here: what the local engine keeps stays with the driver."""
        raise EngineError(NO_CLUSTER)

    def run_over(self, steps: Sequence[ClusterStep], given: Given) -> list[Summary | pa.Table]:
        """Not here: what the local engine keeps stays with the driver."""
        raise EngineError(NO_CLUSTER)

    def frame_over(self, sql: str, given: Given) -> DataFrame:
        """Not here: what the local engine keeps stays with the driver."""
        raise EngineError(NO_CLUSTER)

    def together(self, work: Sequence[Callable[[], T]]) -> list[T]:
        """One after the other: DuckDB uses every core for each."""
        return [one() for one in work]

    def close(self) -> None:
        """Release everything: no more statements come."""
        self.duckdb_executor.close()

    def release(self) -> None:
        """Let go of the rows of the round."""
        self._batch = {}


def _schema(stream: Stream) -> pa.Schema:
    fields = [pa.field(c.name, arrow_type(c.type)) for c in stream.columns]
    return pa.schema([*fields, pa.field(MALFORMED, pa.string())])


def _none(stream: Stream) -> pa.Table:
    return _schema(stream).empty_table()


def _declared(stream: Stream, table: pa.Table) -> pa.Table:
    """The table with exactly the declared columns, in their types."""
    schema = _schema(stream)
    columns: list[pa.Array | pa.ChunkedArray] = []
    for field in schema:
        if field.name in table.column_names:
            column = table.column(field.name)
            columns.append(column if column.type == field.type else column.cast(field.type))
        elif field.name == MALFORMED:
            columns.append(pa.nulls(table.num_rows, field.type))
        else:
            raise DeclarationError(f"the rows of stream {stream.name!r} lack the column {field.name!r}")
    return pa.table(columns, schema=schema)
