"""Spark's SQL over Arrow tables in DuckDB, and the errors that it raises.

Laws. A statement given in Spark's dialect has Spark's answer. Tables are looked at where they lie, not copied. Any
number of threads may ask at once: each statement has a connection to itself while it runs, with the names of its own
tables, and no one waits for the statement of another. *Faults*: an error that a row's values caused is a
`DataFaultError`; a statement that fails for every row alike (no such column, no disk) is a plain `EngineError`. Only
the first line of what DuckDB said is kept.

>>> bench = DuckDBExecutor()
>>> bench.ask("SELECT sum(v) AS total FROM t", {"t": pa.table({"v": [1, 2]})}).column("total").to_pylist()
[3]
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Protocol

import duckdb
import pyarrow as pa

from eventide.duckdb.functions import Macros, missing_functions, nearest_function
from eventide.errors import DataFaultError, DeclarationError, EngineError, first_line
from eventide.plan.duckdb.transpile import tables_in, to_duckdb
from eventide.plan.expressions.columns import Column
from eventide.sources.arrow_types import spark_type_of


class SqlExecutor(Protocol):
    """Executes Spark's SQL over Arrow tables."""

    def ask(self, spark_sql: str, tables: Mapping[str, pa.Table], inner: tuple[Column, ...] = ()) -> pa.Table:
        """The answer of a statement over these tables; `inner` are columns that it makes and uses itself."""
        ...


class DuckDBExecutor:
    """One DuckDB in memory, in UTC; spills to disk when a statement needs more than its memory.

    Functions that are registered on its `connection` are known to all statements. Without `files` it cannot open any.
    """

    def __init__(self, memory_limit: str | None = None, threads: int | None = None, files: bool = True) -> None:
        settings: dict[str, str | bool | int | float | list[str]] = {"preserve_insertion_order": "false"}
        if not files:
            settings["enable_external_access"] = "false"
        if memory_limit is not None:
            settings["memory_limit"] = memory_limit
        if threads is not None:
            settings["threads"] = threads
        self.connection = _set_up(duckdb.connect(config=settings))
        self._macros = Macros(self.connection)
        self._making = threading.Lock()
        self._changed = threading.Condition()
        self._idle = [self.connection]
        self._busy = 0
        self._closed = False

    def ask(self, spark_sql: str, tables: Mapping[str, pa.Table], inner: tuple[Column, ...] = ()) -> pa.Table:
        """The answer of a statement over these tables; `inner` are columns that it makes and uses itself.

        A `DataFaultError` tells that the values of some row, not the statement, are at fault.
        """
        with self._borrowed() as connection:
            return self._answer(connection, spark_sql, tables, inner)

    def _answer(
        self,
        connection: duckdb.DuckDBPyConnection,
        spark_sql: str,
        tables: Mapping[str, pa.Table],
        inner: tuple[Column, ...],
    ) -> pa.Table:
        for name, table in tables.items():
            connection.register(name, table)
        try:
            schemas = {name: table.schema for name, table in tables.items()}
            duckdb_sql = to_duckdb(spark_sql, (*columns_read(spark_sql, schemas), *inner))
            answer: pa.Table = connection.sql(self._ready(connection, duckdb_sql)).to_arrow_table()
            return answer
        except OF_VALUES as error:
            raise of_duckdb(error, "this cannot be computed") from error
        except (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException) as error:
            unknown = missing_functions(connection, spark_sql)
            if unknown:
                names, close = ", ".join(unknown), nearest_function(unknown[0])
                meant = f"did you mean {close}? Else " if close is not None else ""
                raise DeclarationError(
                    f"the local engine has no function {names}: {meant}use the Spark engine"
                ) from error
            raise DeclarationError(
                f"the local engine cannot say this as Spark does: {_reason(error)}. "
                "Write the cast that is meant, or use the Spark engine"
            ) from error
        finally:
            for name in tables:
                connection.unregister(name)

    @contextmanager
    def _borrowed(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection that nobody else uses meanwhile; there are as many as were ever needed at once."""
        with self._changed:
            if self._closed:
                raise EngineError("nothing can be computed any more: the engine has ended")
            connection = self._idle.pop() if self._idle else _set_up(self.connection.cursor())
            self._busy += 1
        try:
            yield connection
        finally:
            with self._changed:
                self._idle.append(connection)
                self._busy -= 1
                self._changed.notify_all()

    def ready(self, duckdb_sql: str) -> str:
        """A statement in DuckDB's words, which may be run on the connection now."""
        return self._ready(self.connection, duckdb_sql)

    def _ready(self, connection: duckdb.DuckDBPyConnection, duckdb_sql: str) -> str:
        # Macros are known to all connections; two that make the same one at once would be in each other's way.
        with self._making:
            return self._macros.ready(duckdb_sql, connection)

    def close(self) -> None:
        """Free everything; safe to call again. A statement under way has its answer first."""
        with self._changed:
            self._closed = True
            self._changed.wait_for(lambda: self._busy == 0)
            idle, self._idle = self._idle, []
        # A connection that is still held somewhere when Python ends makes DuckDB complain on the terminal.
        self.__dict__.pop("connection", None)
        self.__dict__.pop("_macros", None)
        for connection in idle:
            connection.close()


def _set_up(connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyConnection:
    """Settings that DuckDB keeps for each connection."""
    connection.execute("SET TimeZone = 'UTC'")
    # In a notebook without widgets DuckDB refuses to hear of a progress bar, and shows none.
    with suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")
    return connection


def _reason(error: duckdb.Error) -> str:
    """DuckDB's first sentence, without the name of the stage in which it found out."""
    first = str(error).strip().splitlines()[0]
    return first.split("Error: ", 1)[-1].split(". You might need", 1)[0].rstrip(".!")


def columns_read(spark_sql: str, schemas: Mapping[str, pa.Schema]) -> tuple[Column, ...]:
    """The types of the columns of the tables that a statement reads: what it means in DuckDB may depend on them.

    Another table may have a column of the same name and of another type.
    """
    read = tables_in(spark_sql)
    fields = {field.name: field.type for name, schema in schemas.items() if name.lower() in read for field in schema}
    return tuple(Column(name, spark_type_of(kind)) for name, kind in fields.items())


OF_VALUES = (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException)


def of_duckdb(error: duckdb.Error, what: str) -> EngineError:
    """The error to raise for what DuckDB said.

    >>> try:
    ...     duckdb.execute("SELECT CAST('x' AS INTEGER)")
    ... except duckdb.Error as error:
    ...     of_duckdb(error, "a round cannot be computed")
    DataFaultError("a round cannot be computed: Conversion Error: Could not convert string 'x' to INT32")
    """
    kind = DataFaultError if isinstance(error, OF_VALUES) else EngineError
    return kind(f"{what}: {first_line(error)}")
