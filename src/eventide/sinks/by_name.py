"""Sinks by the name of their format, as a query in SQL names them: `INTO parquet 'out'`, `INTO console`.

Each is loaded with what it writes or draws with when it is asked for.

>>> sink_of("csv", "out").format
'csv'
>>> sink_of("parquet")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: a sink of format 'parquet' needs a directory: INTO parquet 'path'
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from eventide.errors import DeclarationError
from eventide.sinks.memory import Memory
from eventide.sinks.sink import FORMATS

if TYPE_CHECKING:
    from eventide.sinks.console import Console
    from eventide.sinks.directory import Directory

ROWS = "20"


def sink_of(
    format: str, path: str | None = None, options: Mapping[str, str] | None = None
) -> Directory | Console | Memory:
    """The sink of that name; `path` is the directory of those that write files.

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
    if name not in (*FORMATS, "console", "memory"):
        raise DeclarationError(f"there is no sink of format {format!r}: choose {', '.join(FORMATS)}, console or memory")
    known = ("rows",) if name == "console" else ()
    for option in options or {}:
        if option not in known:
            has = f"it has {', '.join(known)}" if known else "it has none"
            raise DeclarationError(f"a sink of format {name!r} has no option {option!r}; {has}")
    if name in FORMATS and not path:
        raise DeclarationError(f"a sink of format {name!r} needs a directory: INTO {name} 'path'")
    if name not in FORMATS and path is not None:
        raise DeclarationError(f"a sink of format {name!r} writes no files: leave {path!r} out")
    rows = (options or {}).get("rows", ROWS)
    if not rows.isdigit():
        raise DeclarationError(f"rows={rows!r} is not a number of rows")
    if int(rows) < 1:
        raise DeclarationError(f"a console of {rows} rows shows nothing: give 1 or more")
