"""Sinks by the name of their format, as a query in SQL names them: `INTO parquet 'out'`, `INTO console`.

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
from eventide.sinks.directory import FORMATS, Directory
from eventide.sinks.memory import Memory

if TYPE_CHECKING:
    from eventide.sinks.console import Console


def sink_of(
    format: str, path: str | None = None, options: Mapping[str, str] | None = None
) -> Directory | Console | Memory:
    """The sink of that name; `path` is the directory of those that write files.

    The console has one option, `rows`: how many rows of a query it shows.

    >>> sink_of("console", options={"colour": "red"})
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
    if name in FORMATS:
        if not path:
            raise DeclarationError(f"a sink of format {name!r} needs a directory: INTO {name} 'path'")
        return Directory(path, name)
    if path is not None:
        raise DeclarationError(f"a sink of format {name!r} writes no files: leave {path!r} out")
    if name == "memory":
        return Memory()
    rows = (options or {}).get("rows", "20")
    if not rows.isdigit():
        raise DeclarationError(f"rows={rows!r} is not a number of rows")
    # What it draws with is loaded only to draw.
    from eventide.sinks.console import Console

    return Console(int(rows))
