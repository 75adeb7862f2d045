"""Schemas of Avro and types of Arrow, each as the other: by them records become columns, and results become records.

Laws. `arrow_type` names a type that holds every value of a schema exactly; what Avro calls a union has one only where
it is a type or nothing, or numbers that one type holds. `avro_type` goes the other way, and back again gives the same:
every field may be missing, and has `null` for its default, so that a schema with a column more or less can still read
what the other wrote.

>>> arrow_type({"type": "long", "logicalType": "timestamp-millis"}), arrow_type(["null", "string"])
(TimestampType(timestamp[ms, tz=UTC]), DataType(string))
>>> avro_type(pa.struct([("road", pa.string())]), "speeds")["fields"]
[{'name': 'road', 'type': ['null', 'string'], 'default': None}]

*Times* go as the numbers that they are in Avro, so that those beyond the calendar of Python keep their values.

>>> numbered({"type": "long", "logicalType": "timestamp-millis"})
{'type': 'long'}
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, TypeAlias

import pyarrow as pa

from eventide.errors import DeclarationError

try:
    from fastavro.schema import SchemaParseException, UnknownType, expand_schema
except ModuleNotFoundError as missing:
    raise DeclarationError("values in Avro need fastavro: pip install 'eventide[kafka]'") from missing

Schema: TypeAlias = Any
"""As JSON has it: a name, a list of several, or an object."""

PLAIN: dict[str, pa.DataType] = {
    "null": pa.null(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "bytes": pa.binary(),
    "string": pa.string(),
    "enum": pa.string(),
    "fixed": pa.binary(),
}
LOGICAL: dict[tuple[str, str], pa.DataType] = {
    ("int", "date"): pa.date32(),
    ("long", "timestamp-millis"): pa.timestamp("ms", "UTC"),
    ("long", "timestamp-micros"): pa.timestamp("us", "UTC"),
    ("long", "timestamp-nanos"): pa.timestamp("ns", "UTC"),
    ("long", "local-timestamp-millis"): pa.timestamp("ms"),
    ("long", "local-timestamp-micros"): pa.timestamp("us"),
    ("long", "local-timestamp-nanos"): pa.timestamp("ns"),
}
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
DECIMAL = "decimal"
DIGITS = 38
"""Those of the largest decimal."""


def parsed(text: str, owner: str) -> Schema:
    """A schema of a record as JSON, with every name in it replaced by what it stands for.

    >>> parsed('"long"', "stream 's'")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: stream 's': a value is a record, and this is the schema of 'long'
    """
    try:
        found = expand_schema(json.loads(text))
    except json.JSONDecodeError as error:
        raise DeclarationError(f"{owner}: this is no JSON, and so no schema of Avro: {error}") from None
    except UnknownType as error:
        raise DeclarationError(f"{owner}: the schema speaks of {error.name!r}, and does not say what it is") from None
    except (SchemaParseException, TypeError, ValueError, KeyError, AttributeError) as error:
        raise DeclarationError(f"{owner}: this is no schema of Avro: {error}") from None
    if not isinstance(found, dict) or found.get("type") != "record":
        kind = found.get("type") if isinstance(found, dict) else found
        raise DeclarationError(f"{owner}: a value is a record, and this is the schema of {kind!r}")
    return found


def arrow_type(schema: Schema) -> pa.DataType:
    """The type that holds the values of a schema, in which no name stands for another one."""
    if isinstance(schema, list):
        return _one_of([part for part in schema if part != "null"])
    if isinstance(schema, str):
        if schema not in PLAIN:
            raise DeclarationError(f"a value of type {schema!r}, which is within itself, cannot be read")
        return PLAIN[schema]
    kind = schema["type"]
    if not isinstance(kind, str):
        return arrow_type(kind)
    if schema.get("logicalType") == DECIMAL and kind in ("bytes", "fixed") and schema["precision"] <= DIGITS:
        return pa.decimal128(schema["precision"], schema.get("scale", 0))
    if kind == "record":
        return pa.struct([pa.field(field["name"], arrow_type(field["type"])) for field in schema["fields"]])
    if kind == "array":
        return pa.list_(pa.field("element", arrow_type(schema["items"])))
    if kind == "map":
        return pa.map_(pa.string(), arrow_type(schema["values"]))
    return LOGICAL.get((kind, schema.get("logicalType", "")), arrow_type(kind))


def _one_of(kinds: list[Schema]) -> pa.DataType:
    if not kinds:
        return pa.null()
    if len(kinds) == 1:
        return arrow_type(kinds[0])
    for numbers in (["int", "long"], ["float", "double"]):
        if sorted(kinds, key=str) == numbers:
            return arrow_type(numbers[-1])
    raise DeclarationError(f"a value that may be any of {json.dumps(kinds)} has no one type, and cannot be read")


def numbered(schema: Schema) -> Schema:
    """The same schema, with times, dates and the like as the numbers and texts that they are."""
    if isinstance(schema, list):
        return [numbered(part) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    kept = {name: value for name, value in schema.items() if name != "logicalType" or value == DECIMAL}
    for name in ("type", "items", "values"):
        if isinstance(kept.get(name), list | Mapping):
            kept[name] = numbered(kept[name])
    if "fields" in kept:
        kept["fields"] = [{"name": field["name"], "type": numbered(field["type"])} for field in kept["fields"]]
    return kept


def avro_type(kind: pa.DataType, name: str) -> Schema:
    """The schema of values of a type; `name` is that of the column, for records within it.

    >>> avro_type(pa.map_(pa.string(), pa.int64()), "by")
    {'type': 'map', 'values': ['null', 'long']}
    """
    if pa.types.is_dictionary(kind):
        return avro_type(kind.value_type, name)
    if pa.types.is_decimal(kind):
        return {"type": "bytes", "logicalType": DECIMAL, "precision": kind.precision, "scale": kind.scale}
    if pa.types.is_struct(kind):
        return {"type": "record", "name": checked(name), "fields": [field_of(field, name) for field in kind]}
    if pa.types.is_map(kind):
        if not pa.types.is_string(kind.key_type):
            raise DeclarationError(f"Avro has maps of texts alone, and {name!r} is {kind}: take map_entries of it")
        return {"type": "map", "values": optional(kind.item_type, f"{name}_value")}
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return {"type": "array", "items": optional(kind.value_type, f"{name}_element")}
    if kind in (pa.int8(), pa.int16()):
        return "int"
    for (number, logical), known in LOGICAL.items():
        if known == kind:
            return {"type": number, "logicalType": logical}
    for plain, known in PLAIN.items():
        if known == kind:
            return plain
    raise DeclarationError(f"Avro has no type for {name!r}, which is {kind}: cast it to another type")


def field_of(field: pa.Field, within: str) -> Schema:
    """A column as a field of a record."""
    name = checked(field.name)
    return {"name": name, "type": optional(field.type, f"{within}_{name}"), "default": None}


def optional(kind: pa.DataType, name: str) -> Schema:
    """A value of a type, or none."""
    return "null" if pa.types.is_null(kind) else ["null", avro_type(kind, name)]


def checked(name: str) -> str:
    """A name, if Avro takes it."""
    if NAME.fullmatch(name) is None:
        raise DeclarationError(
            f"Avro has no name {name!r}: write AS before one of letters, digits and _ that begins with no digit"
        )
    return name
