"""The same type in three tongues: Spark's, Arrow's, DuckDB's.

Law: a Spark type goes to Arrow and back unchanged. TIMESTAMP is an instant (UTC), TIMESTAMP_NTZ a wall clock's reading;
both in microseconds.

>>> arrow_type("ARRAY<DECIMAL(10, 2)>")
ListType(list<element: decimal128(10, 2)>)
>>> spark_type_of(pa.timestamp("us", "UTC")), spark_type_of(pa.timestamp("us"))
('TIMESTAMP', 'TIMESTAMP_NTZ')
>>> duckdb_type("STRUCT<a: INT, b: ARRAY<TIMESTAMP>>")
'STRUCT("a" INTEGER, "b" TIMESTAMP WITH TIME ZONE[])'
"""

from __future__ import annotations

from functools import cache

import pyarrow as pa
from sqlglot import exp
from sqlglot.errors import SqlglotError

from eventide.errors import DeclarationError

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
