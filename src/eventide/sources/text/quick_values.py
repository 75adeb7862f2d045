"""Text becomes values in DuckDB, many at once, where there can be no doubt what Spark would make of them.

Law: each text here is SQL for a value that is NULL unless the quick way is sure; whenever it gives a value, it is the
one the fail-safe way gives. What it is not sure of (unusual zones, more digits than fit, blanks around numbers, and all
that is malformed) is left to the fail-safe way, row by row.

>>> of_csv("x", "INT")
"CASE WHEN regexp_full_match(x, '[+-]?[0-9]{1,19}') THEN TRY_CAST(x AS INTEGER) END"
"""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import pyarrow as pa

from eventide.sources.schema import readable_type

DAY = r"[1-9][0-9]{3}-[0-9]{2}-[0-9]{2}"
CLOCK = r"[ T]([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?"
ZONE = r"(Z|[+-](0[0-9]|1[0-7]):[0-5][0-9])"
TIMESTAMP = f"{DAY}({CLOCK}{ZONE}?)?"
TIMESTAMP_NTZ = f"{DAY}({CLOCK})?"
FLOATING = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]{1,3})?"

WHOLE = {"TINYINT": "TINYINT", "SMALLINT": "SMALLINT", "INT": "INTEGER", "BIGINT": "BIGINT"}
DUCKDB = {
    pa.bool_(): "BOOLEAN",
    pa.int8(): "TINYINT",
    pa.int16(): "SMALLINT",
    pa.int32(): "INTEGER",
    pa.int64(): "BIGINT",
    pa.float64(): "DOUBLE",
    pa.string(): "VARCHAR",
}


def connection() -> duckdb.DuckDBPyConnection:
    """A DuckDB of its own, in which text without a zone is UTC and rows keep their order."""
    engine = duckdb.connect()
    engine.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = true")
    return engine


def sure_rows(
    texts: Sequence[str], values: Sequence[str], relation: str, also: str = "true", more: Sequence[str] = ()
) -> str:
    """SQL for all values (named v0, v1, ...) and `sure`: whether every text that is there has become a value."""
    named = ", ".join(f"{value} AS v{number}" for number, value in enumerate(values))
    listed = ", ".join([*(f"v{number}" for number in range(len(values))), *more])
    both = " AND ".join(f"(({text} IS NULL) = (v{number} IS NULL))" for number, text in enumerate(texts))
    return f"SELECT {listed}, {also} AND {both} AS sure FROM (SELECT *, {named} FROM {relation})"


def _when(pattern: str, text: str, value: str) -> str:
    return f"CASE WHEN regexp_full_match({text}, '{pattern}') THEN {value} END"


def of_csv(text: str, spark_type: str) -> str:
    """SQL for the value of a CSV field."""
    if spark_type in WHOLE:
        return _when("[+-]?[0-9]{1,19}", text, f"TRY_CAST({text} AS {WHOLE[spark_type]})")
    if spark_type in ("FLOAT", "DOUBLE"):
        return _when(FLOATING, text, f"TRY_CAST({text} AS {spark_type})")
    if spark_type == "BOOLEAN":
        return f"CASE lower({text}) WHEN 'true' THEN true WHEN 'false' THEN false END"
    if spark_type in PATTERNS:
        pattern, target = PATTERNS[spark_type]
        return _when(pattern, text, f"TRY_CAST({text} AS {target})")
    kind = readable_type(spark_type)
    if pa.types.is_decimal(kind):
        pattern = rf"[+-]?[0-9]{{1,38}}(\.[0-9]{{0,{kind.scale}}})?"
        return _when(pattern, text, f"TRY_CAST({text} AS DECIMAL({kind.precision}, {kind.scale}))")
    return text


PATTERNS = {
    "TIMESTAMP": (TIMESTAMP, "TIMESTAMPTZ"),
    "TIMESTAMP_NTZ": (TIMESTAMP_NTZ, "TIMESTAMP"),
    "DATE": (DAY, "DATE"),
}


def of_json(value: str, spark_type: str) -> str:
    """SQL for a value given as its JSON text, never `null`, as DuckDB writes JSON: compact, doubles in few digits."""
    if spark_type in WHOLE:
        return _when("-?[0-9]{1,19}", value, f"TRY_CAST({value} AS {WHOLE[spark_type]})")
    if spark_type in ("FLOAT", "DOUBLE"):
        number = _when("-?[0-9][0-9.]*([eE][+-]?[0-9]{1,3})?", value, f"TRY_CAST({value} AS {spark_type})")
        # A float is rounded once, from the text as written, of which a long double is not all.
        return number if spark_type == "DOUBLE" else f"CASE WHEN length({value}) < 16 THEN {number} END"
    if spark_type == "BOOLEAN":
        return f"CASE {value} WHEN 'true' THEN true WHEN 'false' THEN false END"
    bare = f"replace({value}, '\"', '')"
    if spark_type in PATTERNS:
        pattern, target = PATTERNS[spark_type]
        text = _when(f'"{pattern}"', value, f"TRY_CAST({bare} AS {target})")
        if spark_type != "TIMESTAMP":
            return text
        seconds = _when("-?[0-9]{1,11}", value, f"to_timestamp(TRY_CAST({value} AS BIGINT))")
        return f"CASE WHEN starts_with({value}, '\"') THEN {text} ELSE {seconds} END"
    kind = readable_type(spark_type)
    if kind == pa.string():
        # Text without a backslash has no quotes but those around it. Doubles and objects: as they were written.
        return (
            f"CASE WHEN starts_with({value}, '\"') THEN CASE WHEN contains({value}, '\\') "
            f"THEN json_extract_string({value}, '$') ELSE {bare} END "
            f"WHEN regexp_full_match({value}, '-?[1-9][0-9]*|true|false') THEN {value} END"
        )
    if pa.types.is_decimal(kind):
        return _decimal(value, bare, kind)
    return _nested(value, kind)


def _decimal(value: str, bare: str, kind: pa.DataType) -> str:
    """A decimal of so few digits that having been a double has not changed it; or in quotes, of any number."""
    target = f"DECIMAL({kind.precision}, {kind.scale})"
    fraction = rf"(\.[0-9]{{0,{kind.scale}}}0?)?" if kind.scale else r"(\.0)?"
    written = rf"\"[+-]?[0-9]{{1,38}}(\.[0-9]{{0,{kind.scale}}})?\"".replace('\\"', '"')
    return (
        f"CASE WHEN length({value}) < 16 AND regexp_full_match({value}, '-?[0-9]+{fraction}') "
        f"THEN TRY_CAST({value} AS {target}) "
        f"WHEN regexp_full_match({value}, '{written}') THEN TRY_CAST({bare} AS {target}) END"
    )


def _nested(value: str, kind: pa.DataType) -> str:
    """Arrays, maps and structs that DuckDB writes back exactly as they were: then nothing was lost or bent."""
    target = duckdb_type(kind)
    if target is None:
        return f"TRY_CAST(NULL AS {duckdb_type(kind, anything=True)})"
    cast = f"TRY_CAST(CAST({value} AS JSON) AS {target})"
    return f"CASE WHEN CAST(to_json({cast}) AS VARCHAR) = {value} THEN {cast} END"


def duckdb_type(kind: pa.DataType, anything: bool = False) -> str | None:
    """The DuckDB type of an Arrow type; None if the quick way cannot be sure of such values inside of others.

    >>> duckdb_type(pa.list_(pa.int32())), duckdb_type(pa.list_(pa.date32()))
    ('INTEGER[]', None)
    """
    if kind in DUCKDB:
        return DUCKDB[kind]
    if pa.types.is_list(kind):
        inner = duckdb_type(kind.value_type, anything)
        return f"{inner}[]" if inner else None
    if pa.types.is_map(kind):
        key, item = duckdb_type(kind.key_type, anything), duckdb_type(kind.item_type, anything)
        return f"MAP({key}, {item})" if key and item else None
    if pa.types.is_struct(kind):
        fields = [(field.name.replace('"', '""'), duckdb_type(field.type, anything)) for field in kind]
        return (
            f"STRUCT({', '.join(f'{chr(34)}{n}{chr(34)} {t}' for n, t in fields)})"
            if all(t for _, t in fields)
            else None
        )
    return _also(kind) if anything else None


def _also(kind: pa.DataType) -> str:
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_timestamp(kind):
        return "TIMESTAMPTZ" if kind.tz else "TIMESTAMP"
    return {pa.float32(): "FLOAT", pa.date32(): "DATE", pa.binary(): "BLOB"}[kind]
