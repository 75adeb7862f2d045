"""All rows of a table, or of a query, of a PostgreSQL database, for the local engine.

Law: the columns are those that were declared, by their names and cast to their types by the database; one transaction
reads them, so they are of one moment.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from eventide.errors import DeclarationError, InputError
from eventide.masking import masked_text
from eventide.plan.declared.captured import OF_CHANGES, OF_DATABASE
from eventide.plan.declared.stream import Stream
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.sources.arrow_types import arrow_type
from eventide.sources.options import input_of, needs_path

try:
    import psycopg
    from psycopg import sql
except ModuleNotFoundError as missing:  # pragma: no cover - the tests have it
    raise DeclarationError("FROM postgres needs psycopg: pip install 'eventide[postgres]'") from missing

KNOWN = frozenset(OF_DATABASE)
UTC = "-c timezone=UTC"
"""Times without a zone are taken for those of UTC, as everywhere here."""
CONNECTING = 5
"""Seconds until an attempt to connect has failed."""


def address(table: Stream) -> dict[str, str]:
    """The options of a table, checked."""
    options = {name.lower(): value for name, value in input_of(table).options}
    known = KNOWN if table.table is not None else KNOWN | {*OF_CHANGES}
    if unknown := options.keys() - known:
        raise DeclarationError(
            f"table {table.name!r}: postgres has no option {min(unknown)!r}: there are {', '.join(sorted(known))}"
        )
    if "url" not in options:
        raise DeclarationError(
            f"table {table.name!r}: where is the database? Add OPTIONS (url 'postgresql://user@host:5432/database')"
        )
    return options


def read_postgres(table: Stream, version: str | None = None, since: Any = None, settle: float = 0.0) -> pa.Table:
    """The rows that the table has now; with a version, those that have one, greater than `since`, in its order.

    `settle`: versions that are times count only when they are so many seconds old, by the database's clock.
    """
    options, place = address(table), needs_path(table, input_of(table))
    schema = pa.schema([(column.name, arrow_type(column.type)) for column in table.columns])
    names = sql.SQL(", ").join(sql.Identifier(column.name) for column in table.columns)
    text = sql.SQL("SELECT {} FROM {}").format(names, sql.Identifier(*place.split(".")))
    parameters: list[Any] = []
    if version is not None:
        column = sql.Identifier(version)
        text += sql.SQL(" WHERE {} IS NOT NULL").format(column)
        if since is not None:
            text += sql.SQL(" AND {} > %s").format(column)
            parameters.append(since)
        if settle:
            text += sql.SQL(" AND {} <= now() - make_interval(secs => %s)").format(column)
            parameters.append(settle)
        text += sql.SQL(" ORDER BY {}").format(column)
    apart: dict[str, Any] = {name: options[name] for name in ("user", "password") if name in options}
    try:
        with psycopg.connect(options["url"], connect_timeout=CONNECTING, options=UTC, **apart) as connection:
            rows = connection.execute(text, parameters or None).fetchall()
    except psycopg.Error as failure:
        raise InputError(
            f"table {table.name!r}: {place} cannot be read from PostgreSQL: {masked_text(str(failure)).splitlines()[0]}"
        ) from failure
    try:
        found = pa.table(
            [pa.array([row[at] for row in rows], field.type) for at, field in enumerate(schema)], schema=schema
        )
    except (pa.ArrowException, TypeError, ValueError) as failure:
        raise InputError(f"table {table.name!r}: {place} has other types than were declared: {failure}") from failure
    return found.append_column(MALFORMED, pa.nulls(found.num_rows, pa.string()))
