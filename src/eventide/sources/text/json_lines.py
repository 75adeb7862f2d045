"""Read lines of JSON as columns: many at once in DuckDB, and one by one by the rules of Spark.

*One line.* The fail-safe way has Spark's rules for which JSON it takes and what becomes of each value. What follows the
first object of a line does not matter. Of a name that comes twice the last value counts, but each must be readable. A
column of text takes any value as it is written. An array of objects is one row for each.

>>> safe = FailSafeJson(columns("n INT, s STRING"))
>>> safe.rows('{"n": 1, "s": {"a": 1.10}} and more'), safe.rows('{"n": "1"}'), safe.rows('[{"n": 1}, {}]')
([[1, '{"a": 1.10}']], [None], [[1, None], [None, None]])

*Many lines.* DuckDB finds the declared columns in each and converts them. Only rows are given whose every value is
sure. Not sure are lines that are no strict JSON, and the few things that DuckDB takes and Spark does not (a comma too
many) or takes otherwise (a name that comes twice).

>>> from eventide.plan.expressions.columns import columns
>>> quick = QuickJson(columns("n INT, s STRING"))
>>> lines = ['{"n": 1, "s": "a"}', '{"n": "1"}', '{"n": 2,}', '{"s": null}']
>>> rows, sure = quick.rows(pa.array(lines), "\\n".join(lines).encode())
>>> rows.to_pydict(), sure.tolist()
({'n': [1, None], 's': ['a', None]}, [True, False, False, True])
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from eventide.plan.expressions.columns import Column, columns
from eventide.sources.arrow_types import readable_type
from eventide.sources.text import values as text_values
from eventide.sources.text.values import connection, of_json, sure_rows

__all__ = ["FailSafeJson", "columns"]


class Number(str):
    """A number as it was written."""

    __slots__ = ()


class WholeNumber(Number):
    """A whole number as it was written."""

    __slots__ = ()


class JsonObject(list[tuple[str, Any]]):
    """The names and values of an object, in order, doubles included."""


Convert = Callable[[Any, str], Any]
SPACE = re.compile(r"[ \t\n\r]*")
# Python reads NaN, Infinity and -Infinity; Java these, too.
SIGNED = re.compile(r"[+-]INF|\+Infinity")
ONLY_AS_TEXT = {"NaN", "+INF", "+Infinity", "Infinity", "-INF", "-Infinity"}
NUMBER = re.compile(r"-?[0-9.]+(?:[eE][+-]?[0-9]+)?")
DECODER = json.JSONDecoder(
    object_pairs_hook=JsonObject, parse_int=WholeNumber, parse_float=Number, parse_constant=Number
)


class FailSafeJson:
    """Lines of JSON, one by one."""

    def __init__(self, declared: Sequence[Column]) -> None:
        self._names = {column.name: place for place, column in enumerate(declared)}
        self._convert = [converter(readable_type(column.type)) for column in declared]

    def rows(self, line: str) -> list[list[Any] | None]:
        """The rows of a line, as values for Arrow; None for one that is malformed."""
        line = line.removeprefix("\ufeff")
        at = _skip(line, 0)
        try:
            if line.startswith("{", at):
                found = [self._object(line, at)[0]]
            elif line.startswith("[", at):
                found = self._objects(line, at)
            else:
                return [None]
        except (ValueError, IndexError, RecursionError):
            return [None]
        return [None] * len(found) if None in found else list(found)

    def _objects(self, line: str, at: int) -> list[list[Any] | None]:
        found: list[list[Any] | None] = []
        at = _skip(line, at + 1)
        if line[at] == "]":
            return found
        while True:
            row, at = self._object(line, at)
            found.append(row)
            at = _skip(line, at)
            if line[at] == "]":
                return found
            if line[at] != ",":
                raise ValueError(line)
            at = _skip(line, at + 1)

    def _object(self, line: str, at: int) -> tuple[list[Any] | None, int]:
        """The values of the object that begins at `at` (None if one is of another type) and where it ends."""
        if line[at] != "{":
            raise ValueError(line)
        row: list[Any] = [None] * len(self._convert)
        good = True
        at = _skip(line, at + 1)
        if line[at] == "}":
            return row, at + 1
        while True:
            if line[at] != '"':
                raise ValueError(line)
            name, at = DECODER.raw_decode(line, at)
            at = _skip(line, at)
            if line[at] != ":":
                raise ValueError(line)
            start = _skip(line, at + 1)
            value, at = _value(line, start)
            place = self._names.get(name)
            if place is not None:
                try:
                    row[place] = None if value is None else self._convert[place](value, line[start:at])
                except ValueError:
                    good = False
            at = _skip(line, at)
            if line[at] == "}":
                return row if good else None, at + 1
            if line[at] != ",":
                raise ValueError(line)
            at = _skip(line, at + 1)


def _skip(line: str, at: int) -> int:
    found = SPACE.match(line, at)
    assert found is not None
    return found.end()


def _value(line: str, at: int) -> tuple[Any, int]:
    signed = SIGNED.match(line, at)
    if signed:
        return Number(signed.group()), signed.end()
    return DECODER.raw_decode(line, at)


def converter(kind: pa.DataType) -> Convert:
    """How a value, and the text it was written as, becomes a value for Arrow."""
    if kind in SIMPLE:
        return SIMPLE[kind]
    if pa.types.is_decimal(kind):
        return partial(_decimal, kind.precision, kind.scale)
    if pa.types.is_map(kind):
        return partial(_map, converter(kind.item_type))
    if pa.types.is_struct(kind):
        return partial(_struct, {field.name: converter(field.type) for field in kind})
    return partial(_list, converter(kind.value_type))


def _inside(convert: Convert, value: Any) -> Any:
    return None if value is None else convert(value, _written(value))


def _written(value: Any) -> str:
    """The text of a value inside of another, where the text as it was written is not at hand: the same but for blanks.

    >>> _written(JsonObject([("a", [WholeNumber("1"), "x", None])]))
    '{"a":[1,"x",null]}'
    """
    if isinstance(value, Number):
        return value
    if isinstance(value, JsonObject):
        return "{" + ",".join(f"{json.dumps(name)}:{_written(inner)}" for name, inner in value) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_written, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def _list(convert: Convert, value: Any, text: str) -> list[Any]:
    if not isinstance(value, list) or isinstance(value, JsonObject):
        raise ValueError(text)
    return [_inside(convert, inner) for inner in value]


def _struct(converts: dict[str, Convert], value: Any, text: str) -> dict[str, Any]:
    if not isinstance(value, JsonObject):
        raise ValueError(text)
    found: dict[str, Any] = dict.fromkeys(converts)
    found.update((name, _inside(converts[name], inner)) for name, inner in value if name in converts)
    return found


def _map(convert: Convert, value: Any, text: str) -> list[tuple[str, Any]]:
    if not isinstance(value, JsonObject):
        raise ValueError(text)
    return [(name, _inside(convert, inner)) for name, inner in value]


def _text(value: Any, text: str) -> str:
    if isinstance(value, str) and not isinstance(value, Number):
        # Half of a surrogate pair is no character: Java writes it as a question mark.
        return value.encode("utf-8", "replace").decode()
    return text


def _whole(bits: int, value: Any, text: str) -> int:
    if not isinstance(value, WholeNumber):
        raise ValueError(text)
    return text_values.in_range(int(value), bits)


def _double(value: Any, text: str) -> float:
    if isinstance(value, Number) or (isinstance(value, str) and value in ONLY_AS_TEXT):
        return float(value.replace("INF", "Infinity"))
    raise ValueError(text)


def _float(value: Any, text: str) -> float:
    double = _double(value, text)
    # Rounded once: by way of a double, a number just beside the middle of two floats would take the wrong one.
    return float(pc.cast(value, pa.float32()).as_py()) if NUMBER.fullmatch(value) else double


def _decimal(precision: int, scale: int, value: Any, text: str) -> Any:
    if not isinstance(value, str):
        raise ValueError(text)
    return text_values.decimal(value, precision, scale)


def _boolean(value: Any, text: str) -> bool:
    if not isinstance(value, bool):
        raise ValueError(text)
    return value


def _by_text(read: Callable[[str], int], value: Any, text: str) -> int:
    if not isinstance(value, str) or isinstance(value, Number):
        raise ValueError(text)
    return read(value)


def _timestamp(value: Any, text: str) -> int:
    if isinstance(value, WholeNumber):
        return text_values.in_range(int(value) * text_values.MICROS, 64)
    return _by_text(text_values.timestamp, value, text)


def _binary(value: Any, text: str) -> bytes:
    if not isinstance(value, str) or isinstance(value, Number):
        raise ValueError(text)
    return base64.b64decode(value, validate=True)


SIMPLE: dict[pa.DataType, Convert] = {
    pa.int8(): partial(_whole, 8),
    pa.int16(): partial(_whole, 16),
    pa.int32(): partial(_whole, 32),
    pa.int64(): partial(_whole, 64),
    pa.float32(): _float,
    pa.float64(): _double,
    pa.bool_(): _boolean,
    pa.string(): _text,
    pa.binary(): _binary,
    pa.date32(): partial(_by_text, text_values.date),
    pa.timestamp("us", "UTC"): _timestamp,
    pa.timestamp("us"): partial(_by_text, text_values.timestamp_ntz),
}


class QuickJson:
    """Parses many lines of JSON at once, in DuckDB."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._names = [column.name for column in columns]
        pointers = ", ".join(_literal("/" + name.replace("~", "~0").replace("/", "~1")) for name in self._names)
        found = ", ".join(
            f"nullif(CAST(doc[{place}] AS VARCHAR), 'null') AS j{place}" for place in range(1, len(columns) + 1)
        )
        used = [f"j{place}" for place in range(1, len(columns) + 1)]
        values = [of_json(value, column.type) for value, column in zip(used, columns, strict=True)]
        # What DuckDB takes and Spark does not: a comma before a closing bracket (also, to be brief, inside of a text).
        is_simple = r"regexp_matches(line, '^[ \t]*\{') AND NOT regexp_matches(line, ',[ \t]*[}\]]')"
        there = [f"p{place}" for place in range(1, len(columns) + 1)]
        shown = ", ".join(f"doc[{place}] IS NOT NULL AS p{place}" for place in range(1, len(columns) + 1))
        self._sql, self._checked_sql = (
            sure_rows(
                used,
                values,
                f"(SELECT {found}, {shown}, doc IS NOT NULL AND plain AS known FROM "
                f"(SELECT json_extract({line}, [{pointers}]) AS doc, {is_simple} AS plain FROM lines))",
                also="known",
                more=there,
            )
            for line in ("line", "CASE WHEN json_valid(line) THEN line END")
        )
        self._engine = connection()

    def _found(self, lines: pa.Array) -> pa.Table:
        """The values in all lines; only where one of them is no JSON at all is each checked first."""
        self._engine.register("lines", pa.table({"line": lines}))
        found: pa.Table
        try:
            found = self._engine.sql(self._sql).to_arrow_table()
        except duckdb.Error:
            found = self._engine.sql(self._checked_sql).to_arrow_table()
        return found

    def rows(self, lines: pa.Array, block: bytes) -> tuple[pa.Table, NDArray[np.bool_]]:
        """The rows of the lines that are sure, and which lines they are; `block` has these lines, and blank ones."""
        table = self._found(lines)
        sure = table.column("sure").combine_chunks()
        unknown = lines.filter(pc.invert(sure))
        for place, name in enumerate(self._names, start=1):
            sure = self._only_once(name, table.column(f"p{place}"), lines, unknown, block, sure)
        values = table.select([f"v{place}" for place in range(len(self._names))]).rename_columns(self._names)
        return values.filter(sure), sure.to_numpy(zero_copy_only=False)

    def _only_once(
        self, name: str, there: pa.ChunkedArray, lines: pa.Array, unknown: pa.Array, block: bytes, sure: pa.Array
    ) -> pa.Array:
        """Not sure, too, where a name comes twice: Spark takes the last value, DuckDB the first.

        A name that is in so many lines, and written as many times in the whole block, is in none of them twice.
        """
        written = json.dumps(name, ensure_ascii=False)
        counted = block.count(written.encode()) - (pc.sum(pc.count_substring(unknown, written)).as_py() or 0)
        if counted == pc.sum(pc.and_(there, sure)).as_py():
            return sure
        return pc.and_not(sure, pc.greater(pc.count_substring(lines, written), 1))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
