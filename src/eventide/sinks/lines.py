"""Rows as lines of text: JSON objects or CSV. DuckDB writes them, many rows at once.

Law: a line says all that the row says. Timestamps are ISO 8601 in UTC with microseconds, such as
`2026-01-31T09:00:00.000000Z` (without the Z where the column has no zone), and `infinity` beyond the calendar. Decimals
keep every digit. Numbers that JSON does not have are the texts `NaN`, `Infinity` and `-Infinity`; bytes are base64.
Spark reads each of these back into a column of that type. CSV follows RFC 4180: a missing value is nothing, an empty
text is `""`, a nested value is its JSON.

>>> import pyarrow as pa
>>> rows = pa.table({"at": pa.array([0], pa.timestamp("us", "UTC")), "speeds": [[51.5, None]], "note": ["a, b"]})
>>> lines = LineWriter("json", rows.schema)
>>> print(lines.of(rows).decode(), end="")
{"at":"1970-01-01T00:00:00.000000Z","speeds":[51.5,null],"note":"a, b"}
>>> lines = LineWriter("csv", rows.schema)
>>> print(lines.head + lines.of(rows).decode(), end="")
at,speeds,note
1970-01-01T00:00:00.000000Z,"[51.5,null]","a, b"
"""

from __future__ import annotations

import json
from typing import Any

import duckdb
import pyarrow as pa
from pyarrow import types

NEEDS_QUOTES = '[",\\n\\r]'
MICROSECONDS = {"s": 1_000_000, "ms": 1_000, "us": 1}
# DuckDB's calendar begins here, and an instant before it would bring the whole database down.
FIRST_INSTANT = -9_223_372_022_400_000_000
LAST_INSTANT = 2**63 - 2
BYTES = (types.is_binary, types.is_large_binary, types.is_fixed_size_binary, types.is_binary_view)
LISTS = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view)


class LineWriter:
    """Writes tables of one schema as lines of one format. `head` comes before all of them."""

    def __init__(self, format: str, schema: pa.Schema) -> None:
        # Columns go by their place, so that no name of a user's is ever part of the SQL.
        places = [f"c{place}" for place in range(len(schema))]
        if format == "csv":
            self.head = ",".join(map(_csv_name, schema.names)) + "\n"
            fields = (_csv(type, place) for place, type in zip(places, schema.types, strict=True))
            line = " || ',' || ".join(f"coalesce({field}, '')" for field in fields)
        else:
            self.head = ""
            line = _object(list(zip(schema.names, schema.types, places, strict=True)), depth=0)
        self._rows = _Rows(
            pa.schema([(place, numbers_for_times(type)) for place, type in zip(places, schema.types, strict=True)])
        )
        self._connection = duckdb.connect(config={"threads": 1})
        self._connection.register("rows", self._rows)
        # Planning takes ten times as long as running it over a few rows: it is planned once.
        self._connection.execute(f"PREPARE lines AS SELECT encode(string_agg({line} || chr(10), '')) FROM rows")

    def of(self, rows: pa.Table) -> bytes:
        """The lines of these rows, each with its end."""
        self._rows.table = rows.rename_columns(self._rows.schema.names).cast(self._rows.schema)
        try:
            return self._connection.execute("EXECUTE lines").fetchall()[0][0] or b""
        finally:
            self._rows.table = self._rows.schema.empty_table()


class _Rows:
    """What DuckDB reads when the lines are asked for: always the table that is put here."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.table = schema.empty_table()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def numbers_for_times(type: Any) -> Any:
    """The same type with one kind of list, and every timestamp as its number: numbers have no end of the calendar."""
    if types.is_timestamp(type):
        return pa.int64()
    if types.is_map(type):
        return pa.map_(numbers_for_times(type.key_type), numbers_for_times(type.item_type))
    if _is_list(type):
        return pa.list_(numbers_for_times(type.value_type))
    if types.is_struct(type):
        return pa.struct([field.with_type(numbers_for_times(field.type)) for field in type])
    return type


def _text(type: Any, value: str) -> str:
    """SQL for a value as plain text, NULL for none."""
    if types.is_timestamp(type):
        return _instant(type, value)
    if types.is_floating(type):
        return (
            f"CASE WHEN isfinite({value}) THEN {value}::VARCHAR WHEN isnan({value}) THEN 'NaN' "
            f"WHEN {value} > 0 THEN 'Infinity' WHEN {value} < 0 THEN '-Infinity' END"
        )
    if types.is_decimal(type) and type.precision == type.scale:
        # DuckDB writes .50 where no digit stands before the point, which is no number in JSON.
        return f"regexp_replace({value}::VARCHAR, '^(-?)\\.', '\\10.')"
    if any(is_kind(type) for is_kind in BYTES):
        return f"base64({value})"
    return f"{value}::VARCHAR"


def _instant(type: Any, number: str) -> str:
    zone = "" if type.tz is None else "Z"
    if type.unit == "ns":
        return f"strftime(make_timestamp_ns({number}), '%Y-%m-%dT%H:%M:%S.%n') || '{zone}'"
    micros = f"({number} * {MICROSECONDS[type.unit]})"
    return (
        f"CASE WHEN {micros} > {LAST_INSTANT} THEN 'infinity' WHEN {micros} < {FIRST_INSTANT} THEN '-infinity' "
        f"ELSE strftime(make_timestamp({micros}), '%Y-%m-%dT%H:%M:%S.%f{zone}') END"
    )


def _json(type: Any, value: str, depth: int) -> str:
    """SQL for a value as JSON, NULL for none. `depth` keeps the names of nested elements apart."""
    each = f"e{depth}"
    if types.is_dictionary(type):
        return _json(type.value_type, value, depth)
    if types.is_map(type):
        key = f"to_json({_text(type.key_type, f'{each}.key')})"
        item = f"{key} || ':' || coalesce({_json(type.item_type, f'{each}.value', depth + 1)}, 'null')"
        return f"'{{' || array_to_string(list_transform(map_entries({value}), lambda {each}: {item}), ',') || '}}'"
    if _is_list(type):
        item = f"coalesce({_json(type.value_type, each, depth + 1)}, 'null')"
        return f"'[' || array_to_string(list_transform({value}, lambda {each}: {item}), ',') || ']'"
    if types.is_struct(type):
        fields = [(field.name, field.type, f"struct_extract({value}, {_literal(field.name)})") for field in type]
        return f"CASE WHEN {value} IS NOT NULL THEN {_object(fields, depth)} END"
    if types.is_integer(type) or types.is_boolean(type) or types.is_decimal(type):
        return _text(type, value)
    if types.is_floating(type):
        return f"CASE WHEN isfinite({value}) THEN {value}::VARCHAR ELSE '\"' || {_text(type, value)} || '\"' END"
    return f"to_json({_text(type, value)})::VARCHAR"


def _object(fields: list[tuple[str, Any, str]], depth: int) -> str:
    parts = (
        f"{_literal(json.dumps(name, ensure_ascii=False) + ':')} || coalesce({_json(type, value, depth)}, 'null')"
        for name, type, value in fields
    )
    return "'{' || " + " || ',' || ".join(parts) + " || '}'"


def _csv(type: Any, value: str) -> str:
    """SQL for a value as a field of CSV, NULL for none."""
    if types.is_dictionary(type):
        return _csv(type.value_type, value)
    nested = types.is_nested(type)
    text = _json(type, value, 0) if nested else _text(type, value)
    if not nested and not (types.is_string(type) or types.is_large_string(type) or types.is_string_view(type)):
        return text
    quoted = f"'\"' || replace({text}, '\"', '\"\"') || '\"'"
    return f"CASE WHEN {text} = '' OR regexp_matches({text}, '{NEEDS_QUOTES}') THEN {quoted} ELSE {text} END"


def _csv_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"' if not name or set(name) & set('",\n\r') else name


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _is_list(type: Any) -> bool:
    return any(is_kind(type) for is_kind in LISTS)
