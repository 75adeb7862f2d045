"""Spark's SQL over Arrow tables, on the driver, in DuckDB: slices are merged here, and the local engine reduces here.

Law: a statement given in Spark's dialect has Spark's answer. Tables are looked at where they lie, not copied.

>>> bench = Workbench()
>>> bench.ask("SELECT sum(v) AS total FROM t", {"t": pa.table({"v": [1, 2]})}).column("total").to_pylist()
[3]
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import duckdb
import pyarrow as pa

from eventide.engine.arrow_types import spark_type_of
from eventide.engine.duckdb_functions import Macros, missing_functions
from eventide.engine.faults import OF_VALUES, of_duckdb
from eventide.errors import DeclarationError
from eventide.plan.columns import Column
from eventide.plan.dialect import tables_in, to_duckdb


class Bench(Protocol):
    """Whoever answers Spark's SQL over Arrow tables."""

    def ask(self, spark_sql: str, tables: Mapping[str, pa.Table], inner: tuple[Column, ...] = ()) -> pa.Table:
        """The answer of a statement over these tables; `inner` are columns that it makes and uses itself."""
        ...


class Workbench:
    """One DuckDB connection in memory, in UTC; spills to disk when a statement needs more than its memory."""

    def __init__(self, memory_limit: str | None = None, threads: int | None = None) -> None:
        settings: dict[str, str | bool | int | float | list[str]] = {"preserve_insertion_order": "false"}
        if memory_limit is not None:
            settings["memory_limit"] = memory_limit
        if threads is not None:
            settings["threads"] = threads
        self.connection = duckdb.connect(config=settings)
        self.connection.execute("SET TimeZone = 'UTC'")
        self.connection.execute("SET enable_progress_bar = false")
        self._macros = Macros(self.connection)

    def ask(self, spark_sql: str, tables: Mapping[str, pa.Table], inner: tuple[Column, ...] = ()) -> pa.Table:
        """The answer of a statement over these tables; `inner` are columns that it makes and uses itself.

        A `DataFaultError` tells that the values of some row, not the statement, are at fault.
        """
        for name, table in tables.items():
            self.connection.register(name, table)
        try:
            said = to_duckdb(spark_sql, (*_columns(spark_sql, tables), *inner))
            return self.connection.sql(self.ready(said)).to_arrow_table()
        except OF_VALUES as error:
            raise of_duckdb(error, "this cannot be computed") from error
        except (duckdb.CatalogException, duckdb.BinderException, duckdb.ParserException) as error:
            unknown = missing_functions(self.connection, spark_sql)
            if unknown:
                names = ", ".join(unknown)
                raise DeclarationError(f"the local engine has no function {names}: use the Spark engine") from error
            raise DeclarationError(
                f"the local engine cannot say this as Spark does: {_reason(error)}. "
                "Write the cast that is meant, or use the Spark engine"
            ) from error
        finally:
            for name in tables:
                self.connection.unregister(name)

    def ready(self, duckdb_sql: str) -> str:
        """A statement in DuckDB's words, which may be run on the connection now."""
        return self._macros.ready(duckdb_sql)

    def close(self) -> None:
        """Free everything; safe to call again."""
        # A connection that is still held somewhere when Python ends makes DuckDB complain on the terminal.
        connection = self.__dict__.pop("connection", None)
        self.__dict__.pop("_macros", None)
        if connection is not None:
            connection.close()


def _reason(error: duckdb.Error) -> str:
    """DuckDB's first sentence, without the name of the stage in which it found out."""
    first = str(error).strip().splitlines()[0]
    return first.split("Error: ", 1)[-1].split(". You might need", 1)[0].rstrip(".!")


def _columns(spark_sql: str, tables: Mapping[str, pa.Table]) -> tuple[Column, ...]:
    """The types of the columns of the tables that a statement reads: what it means in DuckDB may depend on them.

    Another table may have a column of the same name and of another type.
    """
    read = tables_in(spark_sql)
    schemas = (table.schema for name, table in tables.items() if name.lower() in read)
    fields = {field.name: field.type for schema in schemas for field in schema}
    return tuple(Column(name, spark_type_of(kind)) for name, kind in fields.items())
