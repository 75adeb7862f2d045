"""A sample of somebody's data, looked at: its format, its columns and their types, as our own readers will read them.

Law: a column gets a type only if nearly every value of the sample has it, as the reader that will run reads it. How
many rows do not is reported, for a run rejects them. What no type fits is STRING, and what cannot be declared is left
out.

>>> import tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp(), "doors.csv")
>>> _ = path.write_text("at;door;open;note\\n2026-01-31 09:00:00;north;1.5;01/02/2026 10:00\\n")
>>> found = look_at(str(path))
>>> found.format, found.options, [(column.name, column.type) for column in found.columns]
('csv', (('sep', ';'),), [('at', 'TIMESTAMP'), ('door', 'STRING'), ('open', 'DOUBLE'), ('note', 'STRING')])
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from eventide.errors import DeclarationError, EventideError, InputError
from eventide.plan.declared.stream import Input, Stream, Timestamps
from eventide.plan.expressions.columns import WHOLE_NUMBERS, Column
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.profile.files import format_of, only_row, parts_of, quoted, text
from eventide.sources.arrow_types import spark_type_of
from eventide.sources.local_input import open_input

TRIED_ROWS = 20_000
"""Rows of the sample on which guessed types are tried."""

COUNTED_ROWS = 100_000
"""Rows of the sample whose values are counted."""

UNKNOWN = re.compile(r"\bVOID\b")
"""The type of a column in which nothing ever stood."""

EXCEPTIONS = 20
"""One row of so many may not fit the type of a column; one of ten, where there are few."""

TIMES = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE")

WIDER = {"BIGINT": "DOUBLE", "TIMESTAMP_NTZ": "TIMESTAMP"}
"""What to try next where a type does not fit; otherwise STRING."""


@dataclass(frozen=True)
class SampleColumn:
    """A column: its Spark type, how many different values it has, one of them, and how far its times or numbers reach.

    `lost_time`: it tells times, but in a way that our readers do not know; `written_as` is that way in Spark's letters.
    """

    name: str
    type: str
    distinct: int = 0
    example: str | None = None
    span: int = 0
    lost_time: bool = False
    written_as: str | None = None


@dataclass(frozen=True)
class Sample:
    """What was found; `left_out` are columns that cannot be declared, `broken` rows that cannot be read as declared."""

    argument: str
    format: str
    options: tuple[tuple[str, str], ...]
    columns: tuple[SampleColumn, ...]
    left_out: tuple[str, ...]
    rows: int
    broken: int

    def column(self, name: str) -> SampleColumn:
        """The column of that name, or an error that says which there are."""
        for column in self.columns:
            if column.name.lower() == name.lower():
                return column
        has = ", ".join(column.name for column in self.columns)
        raise InputError(f"{self.argument}: no column {name!r}: it has {has}")

    def stream(self, columns: Sequence[Column] | None = None) -> Stream:
        """A stream over the sample, for reading it."""
        declared = [Column(c.name, c.type) for c in self.columns] if columns is None else columns
        given = Input(self.format, self.argument, self.options)
        return Stream("sample", tuple(declared), timestamps=Timestamps.INTERNAL, input=given)


def look_at(argument: str) -> Sample:
    """Find format, columns and types of a file, a directory or a glob."""
    parts = parts_of(argument)
    kinds = {format_of(part) for part in parts}
    if len(kinds) > 1:
        raise InputError(f"{argument}: mixes {' and '.join(sorted(kinds))}: give files of one kind")
    kind = kinds.pop()
    try:
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            options = _csv_options(connection, parts[0]) if kind == "csv" else ()
            scan = _scan(kind, parts, options)
            schema = pq.read_schema(parts[0]) if kind == "parquet" else _schema(connection, scan)
            found, left_out = _proposed(schema, exact=kind == "parquet")
            if kind == "csv" and ("header", "false") not in options:
                found, left_out = _in_the_header(found, _header(connection, parts[0], options))
            if not found:
                raise InputError(
                    f"{argument}: none of its columns can be declared: {', '.join(left_out)}. Its rows need as many "
                    "columns as its first line, and the same sign between them"
                )
            found = found if kind == "parquet" else _mostly(connection, scan, found)
            sample = Sample(argument, kind, options, found, left_out, 0, 0)
            if kind == "parquet":
                return _counted(connection, scan, _opened(sample))
            return _as_written(connection, parts[0], _counted(connection, scan, _tried(sample)))
    except (duckdb.Error, pa.ArrowInvalid) as error:
        wide = kind != "parquet" and _begins_wide(parts[0])
        reason = "it is UTF-16: write it anew, iconv -f utf-16 -t utf-8 OLD > NEW" if wide else _reason(str(error))
        raise InputError(f"{argument}: cannot be read as {kind}: {reason}") from error


def _begins_wide(path: str) -> bool:
    """Whether a file begins as Windows programs write Unicode, two bytes for a letter."""
    with open(path, "rb") as file:
        return file.read(2) in (b"\xff\xfe", b"\xfe\xff")


def _reason(message: str) -> str:
    """Why DuckDB cannot read a file, with the way out where there is one.

    >>> _reason("CSV Error on Line: 2\\nOriginal Line: x\\nInvalid unicode (byte sequence mismatch) detected.")
    'line 2 is not UTF-8: write the file anew, such as iconv -f latin1 -t utf-8 OLD > NEW'
    """
    lines = [line.strip() for line in message.strip().splitlines() if line.strip()]
    at = re.search(r"on Line: (\d+)|in (?:record/value|line) (\d+)", message)
    place = f"line {at[1] or at[2]}" if at else "a line"
    if re.search(r"unicode|utf-8", message, re.IGNORECASE):
        return f"{place} is not UTF-8: write the file anew, such as iconv -f latin1 -t utf-8 OLD > NEW"
    if re.search(r"maximum (line|object) size|maximum_object_size|max_line_size", message, re.IGNORECASE):
        return f"{place} is too long to be a row: is there an end of a line after each row?"
    found = [line for line in lines if not line.startswith(("Invalid Input Error: CSV Error on", "Original Line"))]
    return f"{place}: {found[0]}" if at and found and found[0] != lines[0] else lines[0]


def _csv_options(connection: duckdb.DuckDBPyConnection, part: str) -> tuple[tuple[str, str], ...]:
    sniff = f"SELECT Delimiter, Quote, HasHeader FROM sniff_csv({text(part)}, sample_size = {TRIED_ROWS}"
    # Whatever cannot be read at all is an error of the first. A row with another number of columns, which is a run's to
    # reject, makes any other sign seem right to it, or the rows before be no rows.
    only_row(connection, f"{sniff})")
    sep, quote, header = only_row(connection, f"{sniff}, ignore_errors = true)")
    options = [] if sep == "," else [("sep", sep)]
    # No quote at all is written in brackets.
    if quote is not None and len(quote) == 1 and quote not in '"\x00':
        options.append(("quote", quote))
    return (*options, *(() if header else (("header", "false"),)))


def _scan(kind: str, parts: Sequence[str], options: tuple[tuple[str, str], ...]) -> str:
    files = "[" + ", ".join(text(part) for part in parts) + "]"
    if kind == "parquet":
        return f"read_parquet({files}, union_by_name = true)"
    if kind == "csv":
        header = "false" if ("header", "false") in options else "true"
        return f"read_csv({files}, header = {header}, ignore_errors = true, sample_size = {TRIED_ROWS})"
    return f"read_json({files}, ignore_errors = true, sample_size = {TRIED_ROWS})"


def _header(connection: duckdb.DuckDBPyConnection, part: str, options: tuple[tuple[str, str], ...]) -> list[str]:
    """The names in the first line of a CSV file, unchanged."""
    sep = dict(options).get("sep", ",")
    scan = f"read_csv({text(part)}, header = false, all_varchar = true, delim = {text(sep)}, ignore_errors = true)"
    return [name or "" for name in only_row(connection, f"SELECT * FROM {scan} LIMIT 1")]


def _in_the_header(
    columns: tuple[SampleColumn, ...], header: list[str]
) -> tuple[tuple[SampleColumn, ...], tuple[str, ...]]:
    """The columns that the header names; one without a name, or with that of another, cannot be declared.

    >>> _in_the_header((SampleColumn("column0", "BIGINT"), SampleColumn("v", "BIGINT")), ["", "v"])[1]
    ('(a column without a name)',)
    """
    kept = tuple(column for column in columns if column.name in header)
    seen: set[str] = set()
    out = []
    for name in header:
        if name.lower() in seen or name not in (column.name for column in kept):
            out.append(name.strip() or "(a column without a name)")
        seen.add(name.lower())
    return kept, tuple(out)


def _schema(connection: duckdb.DuckDBPyConnection, scan: str) -> pa.Schema:
    schema: pa.Schema = connection.sql(f"SELECT * FROM {scan} LIMIT 0").to_arrow_table().schema
    return schema


def _proposed(schema: pa.Schema, exact: bool) -> tuple[tuple[SampleColumn, ...], tuple[str, ...]]:
    """The columns with their types; `exact` ones must be declared as they are, or not at all."""
    found, left_out = [], []
    seen: set[str] = set()
    for field in schema:
        if field.name.lower() in (*seen, MALFORMED) or not field.name.strip() or "`" in field.name:
            left_out.append(field.name or "(a column without a name)")
            continue
        seen.add(field.name.lower())
        try:
            kind = spark_type_of(field.type)
        except DeclarationError:
            kind = "VOID"
        if exact and UNKNOWN.search(kind):
            left_out.append(field.name)
            continue
        kind = UNKNOWN.sub("STRING", kind)
        found.append(SampleColumn(field.name, kind))
    return tuple(found), tuple(left_out)


def _opened(sample: Sample) -> Sample:
    """A copy of the sample without the columns that our own reader cannot read from these files."""
    good = []
    for column in sample.columns:
        try:
            open_input(sample.stream([Column(column.name, column.type)])).close()
            good.append(column)
        except EventideError:
            continue
    bad = [column.name for column in sample.columns if column not in good]
    if not good:
        raise InputError(f"{sample.argument}: none of its columns can be read: {', '.join(bad)}")
    return replace(sample, columns=tuple(good), left_out=(*sample.left_out, *bad))


def _tried(sample: Sample) -> Sample:
    """A copy with types that our own reader can read, for text formats."""
    proposed = [_text_type(column.type) for column in sample.columns]
    texts = ["STRING"] * len(proposed)
    rows, broken = _broken(sample, texts)
    if rows and broken == rows:
        raise InputError(
            f"{sample.argument}: none of its rows can be read: CSV needs a line for each row (a text in quotes must "
            "not go on in the next line), JSON an object on a line"
        )
    most = broken + _exceptions(rows)
    if _broken(sample, proposed)[1] > broken:
        for place, kind in enumerate(proposed):
            while kind != "STRING" and _broken(sample, [*texts[:place], kind, *texts[place + 1 :]])[1] > most:
                kind = WIDER.get(kind, "STRING")
            proposed[place] = kind
        broken = _broken(sample, proposed)[1]
    columns = tuple(
        replace(column, type=kind, lost_time=kind == "STRING" and column.type in TIMES)
        for column, kind in zip(sample.columns, proposed, strict=True)
    )
    return replace(sample, columns=columns, rows=rows, broken=broken)


def _exceptions(rows: int) -> int:
    return max(rows // EXCEPTIONS, 1 if rows >= 10 else 0)


def _mostly(
    connection: duckdb.DuckDBPyConnection, scan: str, columns: tuple[SampleColumn, ...]
) -> tuple[SampleColumn, ...]:
    """A copy in which a column of text gets a narrower type if nearly all of its values have it."""
    texts = [column for column in columns if column.type == "STRING"]
    if not texts:
        return columns
    asked = []
    for column in texts:
        value = f"CAST({quoted(column.name)} AS VARCHAR)"
        asked.append(f"count({value})")
        asked += [f"count(TRY_CAST({value} AS {kind}))" for kind in ("BIGINT", "DOUBLE", "TIMESTAMP")]
    found = only_row(connection, f"SELECT {', '.join(asked)} FROM (SELECT * FROM {scan} LIMIT {TRIED_ROWS})")
    changed = {}
    for place, column in enumerate(texts):
        present, *fitting = found[4 * place : 4 * place + 4]
        kinds = zip(("BIGINT", "DOUBLE", "TIMESTAMP"), fitting, strict=True)
        kind = next((kind for kind, fit in kinds if present and fit >= present - _exceptions(present)), "STRING")
        changed[column.name] = replace(column, type=kind)
    return tuple(changed.get(column.name, column) for column in columns)


def _text_type(kind: str) -> str:
    if kind == "TIMESTAMP_NTZ":
        # Text without a zone is UTC to our readers.
        return "TIMESTAMP"
    if kind in ("TINYINT", "SMALLINT", "INT"):
        # The sample may not show the largest value there will be.
        return "BIGINT"
    return "DOUBLE" if kind == "FLOAT" or kind.startswith("DECIMAL") else kind


def _broken(sample: Sample, types: Sequence[str]) -> tuple[int, int]:
    """How many rows were read with columns of these types, and how many of them are malformed."""
    columns = [Column(column.name, kind) for column, kind in zip(sample.columns, types, strict=True)]
    rows = broken = 0
    try:
        with closing(open_input(sample.stream(columns))) as given:
            while rows < TRIED_ROWS and not given.caught_up:
                rows_of = given.take(TRIED_ROWS - rows, 0.0)
                if rows_of is None:
                    break
                rows += rows_of.num_rows
                broken += rows_of.num_rows - rows_of.column(MALFORMED).null_count
    except DeclarationError:
        if all(kind == "STRING" for kind in types):
            raise
        # A type that this reader does not know at all.
        return rows, TRIED_ROWS + 1
    except EventideError as error:
        raise InputError(str(error)) from error
    return rows, broken


def _counted(connection: duckdb.DuckDBPyConnection, scan: str, sample: Sample) -> Sample:
    """A copy with the number of rows and the statistics of each column."""
    asked = []
    for column in sample.columns:
        name = quoted(column.name)
        asked += [f"approx_count_distinct({name})", f"CAST(first({name}) AS VARCHAR)", _span_sql(column, name)]
    found: tuple[Any, ...] = only_row(
        connection, f"SELECT count(*), {', '.join(asked)} FROM (SELECT * FROM {scan} LIMIT {COUNTED_ROWS})"
    )
    if found[0] == 0:
        raise InputError(f"{sample.argument}: it has no rows")
    columns = tuple(
        replace(column, distinct=found[1 + 3 * place], example=found[2 + 3 * place], span=found[3 + 3 * place] or 0)
        for place, column in enumerate(sample.columns)
    )
    return replace(sample, columns=columns, rows=int(found[0]))


def _as_written(connection: duckdb.DuckDBPyConnection, part: str, sample: Sample) -> Sample:
    """A copy in which texts that were read as times are shown as the file has them."""
    times = {column.name for column in sample.columns if column.lost_time or column.type in TIMES}
    if not times:
        return sample
    if sample.format == "csv":
        header = "false" if ("header", "false") in sample.options else "true"
        scan = f"read_csv({text(part)}, header = {header}, all_varchar = true, ignore_errors = true)"
    else:
        names = ", ".join(f"{text(name)}: 'VARCHAR'" for name in sorted(times))
        scan = f"read_json({text(part)}, columns = {{{names}}}, ignore_errors = true)"
    asked = ", ".join(f"first({quoted(name)})" for name in sorted(times))
    first = dict(zip(sorted(times), only_row(connection, f"SELECT {asked} FROM {scan}"), strict=True))
    sniffed = _time_format(connection, part) if sample.format == "csv" else None
    columns = tuple(
        replace(
            column,
            example=first.get(column.name) or column.example,
            written_as=sniffed if column.lost_time else None,
        )
        for column in sample.columns
    )
    return replace(sample, columns=columns)


LETTERS = {
    "%d": "dd", "%m": "MM", "%Y": "yyyy", "%y": "yy", "%H": "HH", "%I": "hh", "%M": "mm", "%S": "ss", "%p": "a",
    "%f": "SSSSSS", "%z": "XXX", "%b": "MMM",
}  # fmt: skip


def _time_format(connection: duckdb.DuckDBPyConnection, part: str) -> str | None:
    """How times are written in a CSV file, in the letters of Spark; None where these are not enough."""
    sniff = f"SELECT TimestampFormat, DateFormat FROM sniff_csv({text(part)}, ignore_errors = true)"
    given = next((one for one in only_row(connection, sniff) if one), None)
    if given is None:
        return None
    named = re.sub(r"%[a-zA-Z]", lambda found: LETTERS.get(found[0], "%"), given)
    return None if "%" in named or "'" in named else named


def _span_sql(column: SampleColumn, name: str) -> str:
    """From the least to the largest, in microseconds for times; NULL for what has no such distance."""
    if column.type in WHOLE_NUMBERS:
        return f"TRY_CAST(max({name}) AS BIGINT) - TRY_CAST(min({name}) AS BIGINT)"
    if column.type in TIMES:
        return f"epoch_us(TRY_CAST(max({name}) AS TIMESTAMP)) - epoch_us(TRY_CAST(min({name}) AS TIMESTAMP))"
    return "NULL"
