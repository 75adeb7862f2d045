"""Arguments of the command line become relations that DuckDB can scan.

One argument is one recording: a file, or, for a recording written in parts, a directory or a quoted glob (its files
in the order of their names). Text formats are read as text throughout, so that one bad value spoils its own row and
not the file.

>>> format_of("trades.CSV.gz"), format_of("part-0.parquet")
('csv', 'parquet')
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eventide.errors import InputError

if TYPE_CHECKING:
    import duckdb

ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
    ".pq": "parquet",
}


def format_of(path: str) -> str:
    """The format that the ending of a path tells, compressed (`.gz`, `.zst`) or not.

    >>> format_of("notes.docx")
    Traceback (most recent call last):
        ...
    eventide.errors.InputError: notes.docx: unknown ending: use .csv, .tsv, .jsonl, .ndjson, .json, .parquet or .pq
    """
    name = path.lower().removesuffix(".gz").removesuffix(".zst")
    ending = Path(name).suffix
    if ending not in ENDINGS:
        raise InputError(f"{path}: unknown ending: use .csv, .tsv, .jsonl, .ndjson, .json, .parquet or .pq")
    return ENDINGS[ending]


def parts_of(argument: str) -> list[str]:
    """The files behind one argument: itself, or the parts in a directory or under a glob, sorted by name."""
    path = Path(argument)
    if path.is_file():
        parts = [argument]
    elif path.is_dir():
        # Spark and others leave markers such as _SUCCESS and .crc files beside the parts.
        visible = (p for p in path.iterdir() if p.is_file() and not p.name.startswith(("_", ".")))
        parts = sorted(str(p) for p in visible)
    else:
        parts = sorted(p for p in glob.glob(argument, recursive=True) if Path(p).is_file())
    if not parts:
        raise InputError(f"{argument}: no such file, and no directory or glob with files in it")
    if all(Path(part).stat().st_size == 0 for part in parts):
        raise InputError(f"{argument}: the file is empty")
    return parts


@dataclass(frozen=True)
class Columns:
    """The names the user gave to what a dry run needs."""

    time: str
    arrival: str | None = None
    source: tuple[str, ...] = ()
    run: str | None = None

    @property
    def named(self) -> list[str]:
        """Every column that has to be there, each once.

        >>> Columns("t", source=("host", "channel"), run="host").named
        ['t', 'host', 'channel']
        """
        names = [self.time, self.arrival, *self.source, self.run]
        return list(dict.fromkeys(name for name in names if name is not None))


def quoted(name: str) -> str:
    """A column name as SQL writes it.

    >>> quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text constant as SQL writes it.

    >>> text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def only_row(connection: duckdb.DuckDBPyConnection, query: str) -> tuple[Any, ...]:
    """The answer to a query of one row, fetched to its end: an unfinished result would block the connection."""
    [row] = connection.execute(query).fetchall()
    return tuple(row)


def load(connection: duckdb.DuckDBPyConnection, argument: str, columns: Columns) -> int:
    """Load the named columns of an argument into the table `loaded`, in file order; count the lines beyond reading."""
    import duckdb

    parts = parts_of(argument)
    formats = {format_of(part) for part in parts}
    if len(formats) > 1:
        raise InputError(f"{argument}: mixes {' and '.join(sorted(formats))}: give one argument for each kind of file")
    kind = formats.pop()
    try:
        names = _column_names(connection, kind, parts)
        found = [_nearest(argument, wanted, names) for wanted in columns.named]
        listed = ", ".join(quoted(name) for name in found)
        connection.execute(
            f"CREATE OR REPLACE TEMP TABLE loaded AS SELECT {listed} FROM {_scan(kind, parts, found, counting=True)}"
        )
        if kind != "csv":
            return 0
        return int(only_row(connection, "SELECT count(DISTINCT (file_id, line)) FROM reject_errors")[0])
    except duckdb.Error as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"{argument}: cannot be read as {kind}: {reason}") from error


def _scan(kind: str, parts: Sequence[str], columns: Sequence[str], counting: bool) -> str:
    files = "[" + ", ".join(text(part) for part in parts) + "]"
    if kind == "parquet":
        return f"read_parquet({files}, union_by_name=true)"
    if kind == "csv":
        lenient = ", store_rejects=true" if counting else ", ignore_errors=true"
        return f"read_csv({files}, header=true, all_varchar=true{lenient})"
    # Only JSON lines can skip a broken line; a plain .json file may also hold one array.
    lines = all(".json" not in Path(part).suffixes for part in parts)
    options = "format='newline_delimited', ignore_errors=true" if lines else "format='auto'"
    if columns:
        options += ", columns={" + ", ".join(f"{text(name)}: 'VARCHAR'" for name in columns) + "}"
    return f"read_json({files}, {options})"


def _column_names(connection: duckdb.DuckDBPyConnection, kind: str, parts: Sequence[str]) -> list[str]:
    described = connection.execute(f"DESCRIBE SELECT * FROM {_scan(kind, parts, [], counting=False)}").fetchall()
    return [str(row[0]) for row in described]


def _nearest(argument: str, wanted: str, names: Sequence[str]) -> str:
    """The column as the file spells it; columns, like everywhere in SQL, differ in more than case."""
    for name in names:
        if name.lower() == wanted.lower():
            return name
    close = get_close_matches(wanted, names, n=1, cutoff=0.4)
    hint = f"did you mean {close[0]!r}? " if close else ""
    listed = ", ".join(names[:30]) + (", ..." if len(names) > 30 else "")
    raise InputError(f"{argument}: no column {wanted!r}: {hint}it has {listed}")
