"""Types of Spark in Arrow and DuckDB, declared columns in Arrow's types, and what a source has against them.

Laws. A Spark type goes to Arrow and back unchanged. TIMESTAMP is an instant (UTC), TIMESTAMP_NTZ a wall clock's
reading; both in microseconds. *Tables* that leave an input have exactly the declared columns, in order, in the Arrow
types of `readable_type`, and `_malformed` last. A column may be wider than what the source has (INT there, BIGINT
declared); nothing is ever narrowed or reinterpreted: what does not fit is an error that names both sides.

>>> arrow_type("ARRAY<DECIMAL(10, 2)>")
ListType(list<element: decimal128(10, 2)>)
>>> spark_type_of(pa.timestamp("us", "UTC")), spark_type_of(pa.timestamp("us"))
('TIMESTAMP', 'TIMESTAMP_NTZ')
>>> duckdb_type("STRUCT<a: INT, b: ARRAY<TIMESTAMP>>")
'STRUCT("a" INTEGER, "b" TIMESTAMP WITH TIME ZONE[])'

>>> readable_type("ARRAY<DECIMAL(10, 2)>"), readable_type("TIMESTAMP")
(ListType(list<element: decimal128(10, 2)>), TimestampType(timestamp[us, tz=UTC]))
>>> from eventide.plan.expressions.columns import columns
>>> schema_of(columns("a INT")).names
['a', '_malformed']

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
from sqlglot.errors import SqlglotError

from eventide.errors import DeclarationError, InputError
from eventide.plan.expressions.columns import Column
from eventide.plan.sql.stream_rows import MALFORMED

# Spark, Arrow, DuckDB; the first of several Arrow types is the one Spark's becomes.
SIMPLE: tuple[tuple[str, pa.DataType, str], ...] = (
    ("BOOLEAN", pa.bool_(), "BOOLEAN"),
    ("TINYINT", pa.int8(), "TINYINT"),
    ("SMALLINT", pa.int16(), "SMALLINT"),
    ("INT", pa.int32(), "INTEGER"),
    ("BIGINT", pa.int64(), "BIGINT"),
    ("FLOAT", pa.float32(), "FLOAT"),
    ("DOUBLE", pa.float64(), "DOUBLE"),
    ("STRING", pa.string(), "VARCHAR"),
    ("BINARY", pa.binary(), "BLOB"),
    ("DATE", pa.date32(), "DATE"),
    ("TIMESTAMP", pa.timestamp("us", "UTC"), "TIMESTAMP WITH TIME ZONE"),
    ("TIMESTAMP_NTZ", pa.timestamp("us"), "TIMESTAMP"),
    ("VOID", pa.null(), '"NULL"'),
)

ARROW = {spark: arrow for spark, arrow, _ in SIMPLE}
DUCKDB = {spark: duckdb for spark, _, duckdb in SIMPLE}
SPARK = {arrow: spark for spark, arrow, _ in SIMPLE} | {
    pa.large_string(): "STRING",
    pa.string_view(): "STRING",
    pa.large_binary(): "BINARY",
    pa.binary_view(): "BINARY",
    pa.date64(): "DATE",
    pa.float16(): "FLOAT",
    # Spark has no unsigned numbers: the next larger type holds them all.
    pa.uint8(): "SMALLINT",
    pa.uint16(): "INT",
    pa.uint32(): "BIGINT",
    pa.uint64(): "DECIMAL(20, 0)",
}


NO_LENGTH = (
    "a length of time (INTERVAL) can be no column: take a number instead, such as unix_seconds(b) - unix_seconds(a), "
    "or datediff(b, a) for days"
)


@cache
def arrow_type(spark_type: str) -> pa.DataType:
    """The Arrow type that holds the values of a Spark type.

    >>> arrow_type("VARIANT")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: columns of type VARIANT cannot be used here: cast them to another type
    """
    return _arrow(_read(spark_type))


def duckdb_type(spark_type: str) -> str:
    """The DuckDB type that holds the values of a Spark type."""
    return _duckdb(_read(spark_type))


@cache
def spark_type_of(arrow: pa.DataType) -> str:
    """The Spark type, in capital letters, of what Arrow holds.

    >>> spark_type_of(pa.map_(pa.string(), pa.struct([("x", pa.int32())])))
    'MAP<STRING, STRUCT<x: INT>>'
    """
    if arrow in SPARK:
        return SPARK[arrow]
    if pa.types.is_timestamp(arrow):
        return "TIMESTAMP" if arrow.tz else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(arrow):
        return f"DECIMAL({min(arrow.precision, 38)}, {arrow.scale})"
    if pa.types.is_map(arrow):
        return f"MAP<{spark_type_of(arrow.key_type)}, {spark_type_of(arrow.item_type)}>"
    if pa.types.is_struct(arrow):
        fields = ", ".join(f"{_name(field.name)}: {spark_type_of(field.type)}" for field in arrow)
        return f"STRUCT<{fields}>"
    if pa.types.is_dictionary(arrow):
        return spark_type_of(arrow.value_type)
    if pa.types.is_list(arrow) or pa.types.is_large_list(arrow) or pa.types.is_fixed_size_list(arrow):
        return f"ARRAY<{spark_type_of(arrow.value_type)}>"
    if pa.types.is_interval(arrow) or pa.types.is_duration(arrow):
        raise DeclarationError(NO_LENGTH)
    raise DeclarationError(f"columns of the Arrow type {arrow} have no counterpart in Spark: cast them to another type")


def _read(spark_type: str) -> exp.DataType:
    if spark_type.upper() == "VOID":
        return exp.DataType(this=exp.DataType.Type.NULL)
    try:
        return exp.DataType.build(spark_type, dialect="spark")
    except SqlglotError as error:
        raise DeclarationError(f"{spark_type!r} is no type of Spark's") from error


def _arrow(kind: exp.DataType) -> pa.DataType:
    precision = _precision(kind)
    if precision is not None:
        return pa.decimal128(*precision)
    inner = [_inner(part) for part in kind.expressions]
    if kind.is_type("array"):
        return pa.list_(pa.field("element", _arrow(inner[0][1])))
    if kind.is_type("map"):
        return pa.map_(_arrow(inner[0][1]), _arrow(inner[1][1]))
    if kind.is_type("struct"):
        return pa.struct([pa.field(name, _arrow(part)) for name, part in inner])
    return ARROW[_simple(kind)]


def _duckdb(kind: exp.DataType) -> str:
    precision = _precision(kind)
    if precision is not None:
        return f"DECIMAL({precision[0]}, {precision[1]})"
    inner = [_inner(part) for part in kind.expressions]
    if kind.is_type("array"):
        return f"{_duckdb(inner[0][1])}[]"
    if kind.is_type("map"):
        return f"MAP({_duckdb(inner[0][1])}, {_duckdb(inner[1][1])})"
    if kind.is_type("struct"):
        fields = ", ".join(f"{exp.to_identifier(name, quoted=True).sql('duckdb')} {_duckdb(p)}" for name, p in inner)
        return f"STRUCT({fields})"
    return DUCKDB[_simple(kind)]


def _simple(kind: exp.DataType) -> str:
    name = "VOID" if kind.is_type("null") else kind.sql("spark").split("(")[0]
    name = "STRING" if name in ("CHAR", "VARCHAR") else name
    if name.startswith("INTERVAL"):
        raise DeclarationError(NO_LENGTH)
    if name not in ARROW:
        raise DeclarationError(f"columns of type {kind.sql('spark')} cannot be used here: cast them to another type")
    return name


def _precision(kind: exp.DataType) -> tuple[int, int] | None:
    if not kind.is_type("decimal"):
        return None
    digits = [part.this.name for part in kind.expressions]
    if not all(text.isdecimal() for text in digits):
        raise DeclarationError(f"{kind.sql('spark')} is no type of Spark's: write DECIMAL(10, 2)")
    given = list(map(int, digits))
    return (given[0] if given else 10, given[1] if len(given) > 1 else 0)


def _inner(part: exp.Expression) -> tuple[str, exp.DataType]:
    """A field of a struct with its name, or the type inside of an array or map."""
    if isinstance(part, exp.ColumnDef):
        return part.name, part.args["kind"]
    assert isinstance(part, exp.DataType | exp.DataTypeParam)
    return "", part if isinstance(part, exp.DataType) else exp.DataType.build("int")


def _name(field: str) -> str:
    return field if field.isidentifier() else exp.to_identifier(field, quoted=True).sql("spark")


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
