"""Sinks by the name of their format, as a query in SQL names them: `INTO parquet 'out'`, `INTO postgres 'speeds'`.

Each is loaded with what it writes or draws with when it is asked for.

>>> sink_of("csv", "out").format
'csv'
>>> sink_of("parquet")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: a sink of format 'parquet' needs a directory: INTO parquet 'path'
>>> sink_of("postgres", "speeds", {"url": "postgresql://db:5432/orders", "mode": "append"}).where
"the table 'speeds' of PostgreSQL at db:5432/orders"
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from eventide.errors import DeclarationError
from eventide.plan.declared.secrets import revealed
from eventide.sinks.sink import FORMATS, Memory

if TYPE_CHECKING:
    from eventide.sinks.console import Console
    from eventide.sinks.directory import Directory
    from eventide.sinks.postgres import Postgres

ROWS = "20"
OPTIONS = {"console": ("rows",), "postgres": ("url", "mode", "key", "user", "password")}
"""What the sinks that have options are told by them."""
PLACES = {**dict.fromkeys(FORMATS, ("a directory", "path")), "postgres": ("a table", "table")}
"""What those need that write somewhere, and how it is written in an example."""
MODES = ("upsert", "append", "replace round")
"""How results go into a table."""


def sink_of(
    format: str, path: str | None = None, options: Mapping[str, str] | None = None
) -> Directory | Console | Memory | Postgres:
    """The sink of that name; `path` is the directory or the table of those that write into one.

    The console has one option, `rows`: how many rows of a query it shows.
    """
    check_sink(format, path, options)
    name = format.lower()
    if name in FORMATS:
        from eventide.sinks.directory import Directory

        assert path is not None
        return Directory(path, name)
    if name == "memory":
        return Memory()
    if name == "postgres":
        from eventide.sinks.postgres import Postgres

        assert path is not None
        told = revealed(tuple((options or {}).items()), f"INTO postgres {path!r}")
        given: dict[str, Any] = {option.lower(): value for option, value in told}
        key = tuple(column.strip() for column in given.pop("key", "").split(",") if column.strip())
        return Postgres(given.pop("url"), path, key=key, **given)
    from eventide.sinks.console import Console

    return Console(int((options or {}).get("rows", ROWS)))


def check_sink(format: str, path: str | None = None, options: Mapping[str, str] | None = None) -> None:
    """Refuse what `sink_of` would refuse, without making or loading anything.

    >>> check_sink("console", options={"colour": "red"})
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a sink of format 'console' has no option 'colour'; it has rows
    """
    name = format.lower()
    if name not in (*PLACES, "console", "memory"):
        raise DeclarationError(f"there is no sink of format {format!r}: choose {', '.join(PLACES)}, console or memory")
    known = OPTIONS.get(name, ())
    given = {option.lower(): value for option, value in (options or {}).items()}
    for option in given:
        if option not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise DeclarationError(f"a sink of format {name!r} has no option {option!r}; {has}")
    if name in PLACES and not path:
        what, example = PLACES[name]
        raise DeclarationError(f"a sink of format {name!r} needs {what}: INTO {name} '{example}'")
    if name not in PLACES and path is not None:
        raise DeclarationError(f"a sink of format {name!r} writes no files: leave {path!r} out")
    if name == "postgres":
        _check_postgres(given)
    rows = given.get("rows", ROWS)
    if not rows.isdigit():
        raise DeclarationError(f"rows={rows!r} is not a number of rows")
    if int(rows) < 1:
        raise DeclarationError(f"a console of {rows} rows shows nothing: give 1 or more")


def _check_postgres(given: Mapping[str, str]) -> None:
    if "url" not in given:
        raise DeclarationError(
            "INTO postgres needs the option url: OPTIONS (url 'postgresql://user@host:5432/database')"
        )
    if given.get("mode", MODES[0]) not in MODES:
        raise DeclarationError(f"there is no mode {given['mode']!r}: choose {', '.join(MODES[:-1])} or {MODES[-1]}")
