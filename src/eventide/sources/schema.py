"""Declared columns in Arrow's types, and what a source has against them.

Declared columns in Arrow's types, and Arrow tables brought to them.

Law: a table that leaves an input has exactly the declared columns, in order, in the Arrow types of `readable_type`, and
`_malformed` last. What a file has may be narrower than what was declared, never wider or other.

>>> readable_type("ARRAY<DECIMAL(10, 2)>"), readable_type("TIMESTAMP")
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

from eventide.errors import DeclarationError, InputError
from eventide.plan.expressions.columns import Column
from eventide.plan.sql.reduce import MALFORMED
from eventide.sources.arrow_types import arrow_type, spark_type_of

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


@cache
def readable_type(spark_type: str) -> pa.DataType:
    """The Arrow type that holds the values of a declared column.

    >>> readable_type("VARIANT")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: a column of type VARIANT cannot be read here: declare it as STRING
    """
    try:
        return arrow_type(spark_type)
    except DeclarationError as unknown:
        raise DeclarationError(f"a column of type {spark_type} cannot be read here: declare it as STRING") from unknown


def spark_name(kind: pa.DataType) -> str:
    """The Spark type of what Arrow holds; Arrow's own name when Spark has none.

    >>> spark_name(pa.timestamp("ns", "Europe/Berlin")), spark_name(pa.list_(pa.int32())), spark_name(pa.time32("s"))
    ('TIMESTAMP', 'ARRAY<INT>', 'TIME32[S]')
    """
    try:
        return spark_type_of(kind)
    except DeclarationError:
        return str(kind).upper()


def schema_of(columns: Sequence[Column]) -> pa.Schema:
    """The schema of what an input gives."""
    fields = [pa.field(column.name, readable_type(column.type)) for column in columns]
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
        wanted = (pc.CastOptions(readable_type(column.type), allow_time_truncate=True) for column in columns)
        chosen = [table.column(name).cast(options=how) for (name, _), how in zip(found, wanted, strict=True)]
    except pa.ArrowInvalid as failure:
        raise InputError(f"{owner}: {place} has a value that does not fit its declared type: {failure}") from failure
    return pa.table([*chosen, broken.cast(pa.string())], schema=schema)
