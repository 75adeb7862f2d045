"""Read files of recordings as relations of DuckDB, and their columns of time as instants.

*Arguments.* Arguments of the command line become relations that DuckDB can scan. One argument is one recording: a file,
or, for a recording written in parts, a directory or a quoted glob (its files in the order of their names). Text formats
are read as text throughout, so that one bad value spoils its own row and not the file.

>>> format_of("trades.CSV.gz"), format_of("part-0.parquet")
('csv', 'parquet')

*Instants.* A column becomes instants: int64 microseconds, or the number itself for a plain sequence. An instant that is
read lies within 2**61 of zero, so the distance of any two is exact. A value that is missing, that is no time, or that
lies outside is set aside with the reason; it never stops the reading.

Timestamps, dates and ISO text need no unit (text without a zone is UTC). Numbers do: it is given, or guessed from
their magnitude.

>>> guess_unit(1_415_624_019_862.0, fractions=False), guess_unit(412.0, fractions=False)
('ms', 'none')
>>> guess_unit(3.5, fractions=True)
's'
"""

from __future__ import annotations

import glob
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eventide.errors import InputError
from eventide.storage.storage import with_place

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
        raise InputError(f"{with_place(argument)}: no such file, and no directory or glob with files in it")
    if all(Path(part).stat().st_size == 0 for part in parts):
        raise InputError(f"{argument}: the file is empty")
    return parts


@dataclass(frozen=True)
class ColumnNames:
    """The names the user gave to what a dry run needs."""

    time: str
    arrival: str | None = None
    source: tuple[str, ...] = ()
    run: str | None = None

    @property
    def named(self) -> list[str]:
        """Every column that has to be there, each once.

        >>> ColumnNames("t", source=("host", "channel"), run="host").named
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


def load(connection: duckdb.DuckDBPyConnection, argument: str, columns: ColumnNames) -> int:
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


UNITS = ("s", "ms", "us", "ns", "none")
REASONS = ("missing", "not a time", "out of range")
"""Why a value is set aside; `reason_sql` numbers them from 1, 0 being a good value."""

_LIMIT = 2**61
_PER_UNIT = {"s": 1_000_000, "ms": 1_000, "us": 1, "none": 1}
_WHOLE = {
    "TINYINT",
    "SMALLINT",
    "INTEGER",
    "BIGINT",
    "HUGEINT",
    "UTINYINT",
    "USMALLINT",
    "UINTEGER",
    "UBIGINT",
    "UHUGEINT",
}


def guess_unit(magnitude: float, fractions: bool) -> str:
    """The unit that puts numbers of this magnitude between the years 1973 and 5138; `none` for small whole numbers.

    Small numbers with fractions are seconds from some start: nobody numbers rows 1.5.
    """
    for unit, least in (("ns", 1e17), ("us", 1e14), ("ms", 1e11), ("s", 1e8)):
        if magnitude >= least:
            return unit
    return "s" if fractions else "none"


@dataclass(frozen=True)
class TimeColumn:
    """How one column is turned into instants: SQL for the value, and for the reason to set a row aside.

    `unit` is one of `UNITS`, "text" for ISO text, None for timestamps and dates.
    """

    name: str
    unit: str | None
    note: str | None
    instant_sql: str
    reason_sql: str

    @property
    def unitless(self) -> bool:
        """Whether the instants are plain numbers rather than microseconds."""
        return self.unit == "none"


def time_column(connection: duckdb.DuckDBPyConnection, file: str, name: str, unit: str | None) -> TimeColumn:
    """Look at a column of the table `loaded` and decide how to read it."""
    column = quoted(name)
    kind = str(only_row(connection, f"SELECT typeof({column}) FROM loaded LIMIT 1")[0])
    if kind.startswith("TIMESTAMP") or kind == "DATE":
        # epoch_us would round nanoseconds to the next microsecond; an instant is never later than what was written.
        instant = f"epoch_ns({column}) // 1000" if kind == "TIMESTAMP_NS" else f"epoch_us({column})"
        return _described(name, None, None, missing=f"{column} IS NULL", parsed=column, instant=instant)
    if kind in _WHOLE:
        return _whole_numbers(connection, name, unit, missing=f"{column} IS NULL", parsed=column)
    if kind in ("FLOAT", "DOUBLE") or kind.startswith("DECIMAL"):
        value = f"CAST({column} AS DOUBLE)"
        return _fractions(connection, file, name, unit, value, missing=f"({column} IS NULL OR isnan({value}))")
    if kind == "VARCHAR":
        return _text(connection, file, name, unit)
    held = "only NULL" if "NULL" in kind else kind
    raise InputError(f"{file}: column {name!r} holds {held}, not times: name a timestamp, a number or ISO text")


def _text(connection: duckdb.DuckDBPyConnection, file: str, name: str, unit: str | None) -> TimeColumn:
    column = quoted(name)
    number, moment = f"TRY_CAST({column} AS DOUBLE)", f"TRY_CAST({column} AS TIMESTAMPTZ)"
    whole = rf"regexp_full_match(trim({column}), '[+-]?\d+')"
    numbers, moments, fractions, present, example = only_row(
        connection,
        f"SELECT count({number}), count({moment}), "
        f"count(*) FILTER (WHERE isfinite({number}) AND NOT {whole}), "
        f"count(nullif(trim({column}), '')), "
        f"first({column}) FILTER (WHERE trim({column}) <> '' AND {number} IS NULL AND {moment} IS NULL) FROM loaded",
    )
    if 2 * max(numbers, moments) < present:
        raise InputError(
            f"{file}: column {name!r} holds mostly no times, but for example {example!r}: name a timestamp or a number"
        )
    missing = f"({column} IS NULL OR trim({column}) = '' OR lower(trim({column})) IN ('nan', 'null', 'na', 'nat'))"
    if moments > numbers:
        return _described(name, "text", None, missing, parsed=moment, instant=f"epoch_us({moment})")
    if fractions:
        return _fractions(connection, file, name, unit, number, missing)
    return _whole_numbers(connection, name, unit, missing, parsed=number)


def _whole_numbers(
    connection: duckdb.DuckDBPyConnection, name: str, unit: str | None, missing: str, parsed: str
) -> TimeColumn:
    # What is a number but does not fit is out of range, not unreadable: hence `parsed` beside the value.
    value = f"TRY_CAST({quoted(name)} AS BIGINT)"
    magnitude, _ = _looked_at(connection, value)
    unit, note = _unit_and_note(name, unit, magnitude, fractions=False)
    # DuckDB divides towards zero; an instant is never later than what was written, so the rest is taken off first.
    instant = f"({value} - ({value} % 1000 + 1000) % 1000) // 1000" if unit == "ns" else f"{value} * {_PER_UNIT[unit]}"
    limit = 2**63 - 2000 if unit == "ns" else _LIMIT // _PER_UNIT[unit]
    return _described(name, unit, note, missing, parsed, instant=_within(value, limit, instant))


def _fractions(
    connection: duckdb.DuckDBPyConnection, file: str, name: str, unit: str | None, value: str, missing: str
) -> TimeColumn:
    magnitude, fractions = _looked_at(connection, value)
    unit, note = _unit_and_note(name, unit, magnitude, fractions)
    if unit == "none" and fractions:
        raise InputError(
            f"{file}: column {name!r} has fractions, so it is no sequence number: give --unit s, ms, us or ns"
        )
    instant = f"floor({value} / 1000)" if unit == "ns" else f"round({value} * {_PER_UNIT[unit]})"
    limit = _LIMIT if unit == "ns" else _LIMIT // _PER_UNIT[unit]
    return _described(name, unit, note, missing, parsed=value, instant=_within(value, limit, instant))


def _looked_at(connection: duckdb.DuckDBPyConnection, value: str) -> tuple[float, bool]:
    """The median magnitude of a number, and whether any has a fraction."""
    magnitude, fractions = only_row(
        connection,
        f"SELECT median(abs(v)), bool_or(v <> round(v)) FROM (SELECT CAST({value} AS DOUBLE) AS v FROM loaded) "
        "WHERE v IS NOT NULL AND isfinite(v)",
    )
    return float(magnitude or 0.0), bool(fractions)


def _unit_and_note(name: str, unit: str | None, magnitude: float, fractions: bool) -> tuple[str, str | None]:
    if unit is not None:
        return unit, None
    unit = guess_unit(magnitude, fractions)
    meaning = "plain numbers, without a unit of time" if unit == "none" else f"in {unit}"
    return unit, f"column {name!r} is taken to be {meaning} (median {magnitude:.6g}): --unit says otherwise"


def _within(value: str, limit: int, instant: str) -> str:
    return f"CASE WHEN {value} BETWEEN -{limit} AND {limit} THEN CAST({instant} AS BIGINT) END"


def _described(name: str, unit: str | None, note: str | None, missing: str, parsed: str, instant: str) -> TimeColumn:
    reason = f"CASE WHEN {missing} THEN 1 WHEN {parsed} IS NULL THEN 2 WHEN {instant} IS NULL THEN 3 ELSE 0 END"
    return TimeColumn(name, unit, note, instant, reason)
