"""A table of PostgreSQL that takes results: its columns, and the statements by which a round gets in and out again.

Law: all statements of a round run in one transaction, with the round noted in `eventide_rounds`. What a round replaced
in an upsert is kept in `eventide_undo` until the next round is written, so that a round can be taken back: only the
newest one ever is.

>>> import pyarrow as pa
>>> [postgres_type(kind) for kind in (pa.int32(), pa.timestamp("us", "UTC"), pa.decimal128(10, 2), pa.list_(pa.int8()))]
['integer', 'timestamptz', 'numeric(10, 2)', 'jsonb']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
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
PART, ORDER = "eventide_part", "eventide_order"
"""Number the staged rows: of two with the same key the later one counts."""


@dataclass(frozen=True)
class Staging:
    """A table of rows on their way into another one; `name` has its schema before it where it is no temporary one."""

    name: tuple[str, ...]

    @property
    def table(self) -> Identifier:
        """The table."""
        return Identifier(*self.name)

    @property
    def names(self) -> dict[str, Composable]:
        """What statements call it, and its own columns."""
        return {"s": self.table, "part": Identifier(PART), "order": Identifier(ORDER)}


STAGING = Staging(("eventide_staging",))
"""A temporary table, for what the driver sends."""


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
        return self.has(self.table)

    def has(self, table: Identifier) -> bool:
        """Whether a table is there."""
        return self.run("SELECT to_regclass(%s)", table.as_string(self.connection))[0][0] is not None

    def keep_books(self) -> None:
        """Make the tables in which rounds are noted, if they are not there."""
        if not self.has(self.beside("eventide_undo")):
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

    def add(self, results: Results, lines: LineWriter, staged: Staging | None = None) -> None:
        """Put all rows into the table, beside those that are there."""
        if staged is None:
            self._copy(results, lines, self.table)
            return
        columns = _listed(results.schema.names)
        self.run("INSERT INTO {table} ({c}) SELECT {c} FROM {s} ORDER BY {part}, {order}", c=columns, **staged.names)
        self.unstage(staged)

    def put(self, results: Results, lines: LineWriter, key: Sequence[str], staged: Staging | None = None) -> None:
        """Put the rows into the table, in the place of those with the same key."""
        columns, staging = _listed(results.schema.names), staged or STAGING
        if staged is None:
            self._make_staging("CREATE TEMP TABLE {s} ON COMMIT DROP", results.schema, staging)
            nulls = self._copy(results, lines, staging.table) & set(key)
        else:
            nulls = self._nulls(key, staging)
        self.run("ANALYZE {s}", **staging.names)
        self.run(
            "DELETE FROM {undo} WHERE target = %s AND query = %s AND round < %s",
            *self._of(results.query),
            results.round,
        )
        # Only `=` finds partners by an index or a hash; what has a NULL in its key is looked for by itself.
        self._replace(results, key, " = ", SQL("true"), staging)
        if nulls:
            self._replace(results, key, " IS NOT DISTINCT FROM ", _any_null(nulls), staging)
        self.run(
            "INSERT INTO {table} ({c}) SELECT DISTINCT ON ({key}) {c} FROM {s}"
            " ORDER BY {key}, {part} DESC, {order} DESC",
            c=columns, key=_listed(key), **staging.names,
        )  # fmt: skip
        if staged is not None:
            self.unstage(staging)

    def stage(self, schema: pa.Schema, query: str) -> Staging:
        """Make a table for what others send, that lasts until it is taken over."""
        name = f"eventide_staging_{sha256(f'{self.name} {query}'.encode()).hexdigest()[:12]}"
        staging = Staging((*self.name.split(".")[:-1], name))
        self.unstage(staging)
        self._make_staging("CREATE TABLE {s}", schema, staging)
        return staging

    def unstage(self, staging: Staging) -> None:
        """Remove such a table, if it is there."""
        self.run("DROP TABLE IF EXISTS {s}", **staging.names)

    def _make_staging(self, create: str, schema: pa.Schema, staging: Staging) -> None:
        columns = _listed(schema.names)
        self.run(f"{create} AS SELECT {{c}} FROM {{table}} WITH NO DATA", c=columns, **staging.names)
        self.run("ALTER TABLE {s} ADD {order} bigint GENERATED ALWAYS AS IDENTITY", **staging.names)
        self.run("ALTER TABLE {s} ADD {part} integer NOT NULL DEFAULT 0", **staging.names)

    def _nulls(self, key: Sequence[str], staging: Staging) -> set[str]:
        """The columns of the key with a NULL in one of the rows."""
        asked = SQL(", ").join(SQL("bool_or({c} IS NULL)").format(c=Identifier(name)) for name in key)
        [found] = self.run("SELECT {asked} FROM {s}", asked=asked, **staging.names)
        return {name for name, is_null in zip(key, found, strict=True) if is_null}

    def _replace(self, results: Results, key: Sequence[str], equals: str, where: Composable, staging: Staging) -> None:
        same = SQL(" AND ").join(Identifier("t", name) + SQL(equals) + Identifier("s", name) for name in key)
        self.run(
            "WITH gone AS (DELETE FROM {table} t USING (SELECT DISTINCT {key} FROM {s} s WHERE {where}) s WHERE {same}"
            " RETURNING to_jsonb(t) AS replaced) INSERT INTO {undo} SELECT %s, %s, %s, replaced FROM gone",
            *self._of(results.query), results.round,
            key=_listed(key), s=staging.table, same=same, where=where,
        )  # fmt: skip

    def _copy(self, results: Results, lines: LineWriter, into: Identifier) -> set[str]:
        tables = (pa.Table.from_batches([batch], results.schema) for batch in results.batches())
        return copy_rows(self, tables, results.schema, lines, into)


def copy_rows(
    target: Target, tables: Iterable[pa.Table], schema: pa.Schema, lines: LineWriter, into: Identifier
) -> set[str]:
    """Send rows, some at a time; the columns with a NULL in one of them."""
    nulls = set[str]()
    columns = _listed(schema.names)
    command = SQL("COPY {into} ({columns}) FROM STDIN (FORMAT csv)").format(into=into, columns=columns)
    with target.connection.cursor().copy(command) as copy:
        for table in tables:
            nulls |= {name for name, column in zip(schema.names, table.columns, strict=True) if column.null_count}
            copy.write(lines.of(_hexadecimal(table)))
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
