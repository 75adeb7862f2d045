"""Declared columns in Arrow's types, and what a source has against them.

Declared columns in Arrow's types, and Arrow tables brought to them.

Law: a table that leaves an input has exactly the declared columns, in order, in the Arrow types of `arrow_type`, and
`_malformed` last. What a file has may be narrower than what was declared, never wider or other.

>>> arrow_type("ARRAY<DECIMAL(10, 2)>"), arrow_type("TIMESTAMP")
(ListType(list<element: decimal128(10, 2)>), TimestampType(timestamp[us, tz=UTC]))
>>> from eventide.plan.expressions.columns import columns
>>> schema_of(columns("a INT")).names
['a', '_malformed']

What a source has against what was declared: the same columns, or an error that names both sides.

Law: the result has exactly the declared columns, in order and with the declared types. A column may be wider than what
the source has (INT there, BIGINT declared); nothing is ever narrowed or reinterpreted.

>>> widens("INT", "BIGINT"), widens("BIGINT", "INT"), widens("INT", "DECIMAL(10, 0)"), widens("INT", "DECIMAL(5, 0)")
(True, False, True, False)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from eventide.errors import DeclarationError, InputError
from eventide.plan.expressions.columns import Column
from eventide.plan.sql.reduce import MALFORMED

# Every type to its right holds all values of a type exactly.
LADDER = ("TINYINT", "SMALLINT", "INT", "BIGINT")
DIGITS = {"TINYINT": 3, "SMALLINT": 5, "INT": 10, "BIGINT": 19}
EXACT = {("TINYINT", "FLOAT"), ("SMALLINT", "FLOAT"), ("FLOAT", "DOUBLE")} | {
    (kind, "DOUBLE") for kind in ("TINYINT", "SMALLINT", "INT")
}


def widens(there: str, declared: str) -> bool:
    """Whether every value of the type that is there is a value of the declared type."""
    if there in LADDER and declared in LADDER:
        return LADDER.index(there) <= LADDER.index(declared)
    wanted = _decimal(declared)
    if wanted is not None:
        has = (DIGITS[there], 0) if there in DIGITS else _decimal(there)
        return has is not None and wanted[0] - wanted[1] >= has[0] - has[1] and wanted[1] >= has[1]
    return there == declared or (there, declared) in EXACT


def _decimal(kind: str) -> tuple[int, int] | None:
    found = re.fullmatch(r"DECIMAL\((\d+)(?:, *(\d+))?\)", kind)
    return (int(found.group(1)), int(found.group(2) or 0)) if found else None


def matched(owner: str, columns: Sequence[Column], there: Mapping[str, str], place: str) -> list[tuple[str, Column]]:
    """For every declared column the name that the source gives it; `there` maps its names to Spark's types.

    >>> from eventide.plan.expressions.columns import columns
    >>> cars = columns("ts TIMESTAMP, speed INT")
    >>> matched("stream 'cars'", cars, {"TS": "TIMESTAMP", "Speed": "SMALLINT"}, "in")[1]
    ('Speed', Column(name='speed', type='INT'))
    >>> matched("stream 'cars'", cars, {"ts": "TIMESTAMP"}, "in")
    Traceback (most recent call last):
        ...
    eventide.errors.InputError: stream 'cars' declares speed INT, but in has only ts TIMESTAMP: declare what is there, \
or read another place
    >>> matched("stream 'cars'", cars, {"ts": "TIMESTAMP", "speed": "STRING"}, "in")
    Traceback (most recent call last):
        ...
    eventide.errors.InputError: stream 'cars' declares speed INT, but in has speed STRING: declare it as it is there \
and convert it in the query
    """
    spelled = {name.lower(): name for name in there}
    found = []
    for column in columns:
        name = spelled.get(column.name.lower())
        asked = f"{owner} declares {column.name} {column.type}, but {place}"
        if name is None:
            has = ", ".join(f"{other} {kind}" for other, kind in there.items()) or "no columns"
            raise InputError(f"{asked} has only {has}: declare what is there, or read another place")
        if not widens(there[name], column.type):
            raise InputError(f"{asked} has {name} {there[name]}: declare it as it is there and convert it in the query")
        found.append((name, column))
    return found


def places_in_header(owner: str, columns: Sequence[Column], names: Sequence[str], place: str) -> list[int]:
    """Where the declared columns stand among those that the first line of a CSV file names.

    >>> from eventide.plan.expressions.columns import columns
    >>> places_in_header("stream 's'", columns("a INT, b INT"), ["B", "c", "A"], "x.csv")
    [2, 0]
    >>> places_in_header("stream 's'", columns("a INT, b INT"), ["a", "c"], "x.csv")
    Traceback (most recent call last):
        ...
    eventide.errors.InputError: stream 's' declares b, but the first line of x.csv names a, c: declare those, or give \
the option header=false if it names nothing
    """
    known = [name.lower() for name in names]
    missing = [column.name for column in columns if column.name.lower() not in known]
    if missing:
        raise InputError(
            f"{owner} declares {', '.join(missing)}, but the first line of {place} names {', '.join(names)}: declare "
            "those, or give the option header=false if it names nothing"
        )
    return [known.index(column.name.lower()) for column in columns]


SIMPLE = {
    "BOOLEAN": pa.bool_(),
    "TINYINT": pa.int8(),
    "SMALLINT": pa.int16(),
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "FLOAT": pa.float32(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
    "BINARY": pa.binary(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
    "TIMESTAMP_NTZ": pa.timestamp("us"),
}

# What else may be found in a file; Spark has no unsigned numbers, so the next larger type holds them.
ALSO = {
    pa.large_string(): "STRING",
    pa.string_view(): "STRING",
    pa.large_binary(): "BINARY",
    pa.binary_view(): "BINARY",
    pa.date64(): "DATE",
    pa.float16(): "FLOAT",
    pa.uint8(): "SMALLINT",
    pa.uint16(): "INT",
    pa.uint32(): "BIGINT",
    pa.uint64(): "DECIMAL(20, 0)",
}
NAMES = {kind: name for name, kind in SIMPLE.items()} | ALSO


@cache
def arrow_type(spark_type: str) -> pa.DataType:
    """The Arrow type that holds the values of a Spark type.

    >>> arrow_type("VARIANT")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a column of type VARIANT cannot be read here: declare it as STRING
    """
    return _arrow(exp.DataType.build(spark_type, dialect="spark"))


def _arrow(kind: exp.DataType) -> pa.DataType:
    if kind.is_type("decimal"):
        digits = [int(part.this.name) for part in kind.expressions]
        return pa.decimal128(*(digits or [10])[:2]) if len(digits) != 1 else pa.decimal128(digits[0], 0)
    inner = [part.args["kind"] if isinstance(part, exp.ColumnDef) else part for part in kind.expressions]
    if kind.is_type("array"):
        return pa.list_(pa.field("element", _arrow(inner[0])))
    if kind.is_type("map"):
        return pa.map_(_arrow(inner[0]), _arrow(inner[1]))
    if kind.is_type("struct"):
        return pa.struct([pa.field(p.name, _arrow(k)) for p, k in zip(kind.expressions, inner, strict=True)])
    name = kind.sql(dialect="spark")
    name = "STRING" if name.startswith(("CHAR", "VARCHAR")) else name
    if name not in SIMPLE:
        raise DeclarationError(f"a column of type {name} cannot be read here: declare it as STRING")
    return SIMPLE[name]


def spark_name(kind: pa.DataType) -> str:
    """The Spark type of what Arrow holds; Arrow's own name when Spark has none.

    >>> spark_name(pa.timestamp("ns", "Europe/Berlin")), spark_name(pa.list_(pa.int32()))
    ('TIMESTAMP', 'ARRAY<INT>')
    """
    if pa.types.is_dictionary(kind):
        return spark_name(kind.value_type)
    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_map(kind):
        return f"MAP<{spark_name(kind.key_type)}, {spark_name(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{field.name}: {spark_name(field.type)}' for field in kind)}>"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"ARRAY<{spark_name(kind.value_type)}>"
    return NAMES.get(kind, str(kind).upper())


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """The schema of what an input gives."""
    fields = [pa.field(column.name, arrow_type(column.type)) for column in columns]
    return pa.schema([*fields, pa.field(MALFORMED, pa.string())])


def declared_table(owner: str, columns: Sequence[Column], table: pa.Table, place: str) -> pa.Table:
    """A table of a source as the declared columns and `_malformed`, or an error that names both sides.

    >>> from eventide.plan.expressions.columns import columns
    >>> there = pa.table({"b": [2], "A": pa.array([1], "int8")})
    >>> declared_table("stream 's'", columns("a BIGINT"), there, "x").to_pydict()
    {'a': [1], '_malformed': [None]}
    """
    found = matched(owner, columns, {field.name: spark_name(field.type) for field in table.schema}, place)
    broken = table.column(MALFORMED) if MALFORMED in table.column_names else pa.nulls(table.num_rows, pa.string())
    schema = schema_of(columns)
    try:
        # What is finer than a microsecond is cut off, as Spark does.
        wanted = (pc.CastOptions(arrow_type(column.type), allow_time_truncate=True) for column in columns)
        chosen = [table.column(name).cast(options=how) for (name, _), how in zip(found, wanted, strict=True)]
    except pa.ArrowInvalid as failure:
        raise InputError(f"{owner}: {place} has a value that does not fit its declared type: {failure}") from failure
    return pa.table([*chosen, broken.cast(pa.string())], schema=schema)
