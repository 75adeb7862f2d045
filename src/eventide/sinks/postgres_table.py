"""A table of PostgreSQL that takes results: its columns, and the statements by which a round gets in and out again.

Law: all statements of a round run in one transaction, with the round noted in `eventide_rounds`. What a round replaced
in an upsert is kept in `eventide_undo` until the next round is written, so that a round can be taken back: only the
newest one ever is.

>>> import pyarrow as pa
>>> [postgres_type(kind) for kind in (pa.int32(), pa.timestamp("us", "UTC"), pa.decimal128(10, 2), pa.list_(pa.int8()))]
['integer', 'timestamptz', 'numeric(10, 2)', 'jsonb']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import pyarrow as pa
from psycopg import Connection
from psycopg.sql import SQL, Composable, Composed, Identifier
from pyarrow import types

from eventide.errors import EngineError
from eventide.results.results import Results
from eventide.sinks.lines import LineWriter

TYPES = (
    (types.is_boolean, "boolean"),
    (types.is_int8, "smallint"),
    (types.is_int16, "smallint"),
    (types.is_int32, "integer"),
    (types.is_integer, "bigint"),
    (types.is_float32, "real"),
    (types.is_floating, "double precision"),
    (types.is_string, "text"),
    (types.is_null, "text"),
    (types.is_binary, "bytea"),
    (types.is_date, "date"),
)
"""The first that fits; what is nested becomes JSON."""
NULLS_ARE_EQUAL_SINCE = 150_000
"""The version of PostgreSQL from which a unique index takes two NULLs for the same."""

BOOKKEEPING = """
CREATE TABLE IF NOT EXISTS {rounds} (
    target text, query text, round bigint NOT NULL DEFAULT -1, owner text, checkpoint text, PRIMARY KEY (target, query)
);
CREATE TABLE IF NOT EXISTS {undo} (target text, query text, round bigint, replaced jsonb);
CREATE INDEX IF NOT EXISTS eventide_undo_rounds ON {undo} (target, query, round);
"""
STAGING = Identifier("eventide_staging")
ORDER = Identifier("eventide_order")
"""Numbers the staged rows: of two with the same key the later one counts."""


def postgres_type(kind: Any) -> str:
    """The type of PostgreSQL for the values of an Arrow type; what is nested is JSON."""
    if types.is_timestamp(kind):
        return "timestamp" if kind.tz is None else "timestamptz"
    if types.is_decimal(kind):
        return f"numeric({kind.precision}, {kind.scale})"
    return next((name for fits, name in TYPES if fits(kind)), "jsonb")


@dataclass(frozen=True)
class Target:
    """A table by its name, perhaps with its schema before it, over a connection."""

    connection: Connection[Any]
    name: str

    @cached_property
    def table(self) -> Identifier:
        """The table."""
        return Identifier(*self.name.split("."))

    def beside(self, name: str) -> Identifier:
        """Another table in the same schema."""
        return Identifier(*self.name.split(".")[:-1], name)

    def run(self, statement: str, *parameters: object, **names: Composable) -> list[tuple[Any, ...]]:
        """Run a statement; what it gives, if it gives rows."""
        known = {"table": self.table, "rounds": self.beside("eventide_rounds"), "undo": self.beside("eventide_undo")}
        done = self.connection.execute(SQL(statement).format(**{**known, **names}), parameters or None)
        return done.fetchall() if done.description else []

    @property
    def exists(self) -> bool:
        """Whether it is there."""
        return self._has(self.table)

    def _has(self, table: Identifier) -> bool:
        return self.run("SELECT to_regclass(%s)", table.as_string(self.connection))[0][0] is not None

    def keep_books(self) -> None:
        """Make the tables in which rounds are noted, if they are not there."""
        if not self._has(self.beside("eventide_undo")):
            self._alone()
            self.run(BOOKKEEPING)

    def noted(self, query: str) -> tuple[int, str | None, str | None]:
        """The last round of a query that is in the table, whose it is, and where that checkpoint is."""
        found = self.run(
            "SELECT round, owner, checkpoint FROM {rounds} WHERE target = %s AND query = %s", *self._of(query)
        )
        return found[0] if found else (-1, None, None)

    def note(self, query: str, round: int) -> None:
        """Note the last round that is in the table."""
        insert = "INSERT INTO {rounds} (target, query, round) VALUES (%s, %s, %s)"
        self.run(f"{insert} ON CONFLICT (target, query) DO UPDATE SET round = excluded.round", *self._of(query), round)

    def claim(self, query: str, owner: str, checkpoint: str | None) -> None:
        """Note whose the results of a query are."""
        insert = "INSERT INTO {rounds} (target, query, owner, checkpoint) VALUES (%s, %s, %s, %s)"
        update = "ON CONFLICT (target, query) DO UPDATE SET owner = excluded.owner, checkpoint = excluded.checkpoint"
        self.run(f"{insert} {update}", *self._of(query), owner, checkpoint)

    def fit(self, schema: pa.Schema, key: Sequence[str]) -> None:
        """Make the table, or see that it has the columns of the results."""
        if not self.exists:
            self._alone()
            self._make(schema, key)
        found = self.run(
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
            self.table.as_string(self.connection),
        )
        there = {name for (name,) in found}
        for field in schema:
            if field.name not in there:
                column = f'"{field.name}" {postgres_type(field.type)}'
                raise EngineError(
                    f"the table {self.name!r} has no column {field.name!r}, which the results have: ALTER TABLE "
                    f"{self.name} ADD COLUMN {column}, or name a table that is not there yet"
                )

    def _make(self, schema: pa.Schema, key: Sequence[str]) -> None:
        columns = SQL(", ").join(Identifier(f.name) + SQL(f" {postgres_type(f.type)}") for f in schema)
        self.run("CREATE TABLE IF NOT EXISTS {table} ({columns})", columns=columns)
        self.run("CREATE INDEX ON {table} (query, round)")
        if key:
            equal = self.connection.info.server_version >= NULLS_ARE_EQUAL_SINCE
            nulls = SQL(" NULLS NOT DISTINCT" if equal else "")
            self.run("CREATE UNIQUE INDEX ON {table} ({key}){nulls}", key=_listed(key), nulls=nulls)

    def _alone(self) -> None:
        """Two that make the same table at once would both fail."""
        self.run("SELECT pg_advisory_xact_lock(hashtext('eventide'))")

    def _of(self, query: str) -> tuple[str, str]:
        return self.name, query

    # Rounds in and out

    def undo(self, query: str, first: int, last: int) -> None:
        """Take back the rounds from `first` to `last`, and bring back what they replaced."""
        rounds = (first, last)
        self.run("DELETE FROM {table} WHERE query = %s AND round BETWEEN %s AND %s", query, *rounds)
        undone = "{undo} WHERE target = %s AND query = %s AND round BETWEEN %s AND %s"
        self.run(
            "INSERT INTO {table} SELECT (jsonb_populate_record(NULL::{table}, replaced)).* FROM " + undone
            + " AND (replaced ->> 'round')::bigint < %s ON CONFLICT DO NOTHING",
            *self._of(query), *rounds, first,
        )  # fmt: skip
        self.run("DELETE FROM " + undone, *self._of(query), *rounds)

    def add(self, results: Results, lines: LineWriter) -> None:
        """Put all rows into the table, beside those that are there."""
        self._copy(results, lines, self.table)

    def put(self, results: Results, lines: LineWriter, key: Sequence[str]) -> None:
        """Put the rows into the table, in the place of those with the same key."""
        columns = _listed(results.schema.names)
        self.run("CREATE TEMP TABLE {s} ON COMMIT DROP AS SELECT {c} FROM {table} WITH NO DATA", s=STAGING, c=columns)
        self.run("ALTER TABLE {s} ADD {order} bigint GENERATED ALWAYS AS IDENTITY", s=STAGING, order=ORDER)
        nulls = self._copy(results, lines, STAGING) & set(key)
        self.run("ANALYZE {s}", s=STAGING)
        self.run(
            "DELETE FROM {undo} WHERE target = %s AND query = %s AND round < %s",
            *self._of(results.query),
            results.round,
        )
        # Only `=` finds partners by an index or a hash; what has a NULL in its key is looked for by itself.
        self._replace(results, key, " = ", SQL("true"))
        if nulls:
            self._replace(results, key, " IS NOT DISTINCT FROM ", _any_null(nulls))
        self.run(
            "INSERT INTO {table} ({c}) SELECT DISTINCT ON ({key}) {c} FROM {s} ORDER BY {key}, {order} DESC",
            c=columns, key=_listed(key), s=STAGING, order=ORDER,
        )  # fmt: skip

    def _replace(self, results: Results, key: Sequence[str], equals: str, where: Composable) -> None:
        same = SQL(" AND ").join(Identifier("t", name) + SQL(equals) + Identifier("s", name) for name in key)
        self.run(
            "WITH gone AS (DELETE FROM {table} t USING (SELECT DISTINCT {key} FROM {s} s WHERE {where}) s WHERE {same}"
            " RETURNING to_jsonb(t) AS replaced) INSERT INTO {undo} SELECT %s, %s, %s, replaced FROM gone",
            *self._of(results.query), results.round,
            key=_listed(key), s=STAGING, same=same, where=where,
        )  # fmt: skip

    def _copy(self, results: Results, lines: LineWriter, into: Identifier) -> set[str]:
        """Send the rows, some at a time; the columns with a NULL in one of them."""
        nulls = set[str]()
        columns = _listed(results.schema.names)
        command = SQL("COPY {into} ({columns}) FROM STDIN (FORMAT csv)").format(into=into, columns=columns)
        with self.connection.cursor().copy(command) as copy:
            for batch in results.batches():
                nulls |= {
                    name for name, column in zip(batch.schema.names, batch.columns, strict=True) if column.null_count
                }
                copy.write(lines.of(_hexadecimal(pa.Table.from_batches([batch], results.schema))))
        return nulls


def line_writer(schema: pa.Schema) -> LineWriter:
    """Writes rows as COPY reads them; it takes long to make, and lasts as long as the schema."""
    return LineWriter("csv", _without_bytes(schema))


def _any_null(columns: set[str]) -> Composed:
    return SQL(" OR ").join(Identifier("s", name) + SQL(" IS NULL") for name in sorted(columns))


def _listed(names: Sequence[str]) -> Composed:
    return SQL(", ").join(map(Identifier, names))


def _without_bytes(schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(pa.string()) if pa.types.is_binary(field.type) else field for field in schema])


def _hexadecimal(table: pa.Table) -> pa.Table:
    """Bytes as PostgreSQL writes them.

    >>> _hexadecimal(pa.table({"b": [b"\\x00\\xff", None]})).column("b").to_pylist()
    ['\\\\x00ff', None]
    """
    for place, field in enumerate(table.schema):
        if pa.types.is_binary(field.type):
            texts = [None if value is None else f"\\x{value.hex()}" for value in table.column(place).to_pylist()]
            table = table.set_column(place, field.name, pa.array(texts, pa.string()))
    return table
