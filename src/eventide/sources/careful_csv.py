"""One line of CSV, the careful way: cut into fields as Spark's parser does, then each field converted.

Law: the same fields as Spark's, also for quotes where none should be. A quoted field that goes on after its closing
quote is taken as it stands, quotes and all, up to the next separator; a quote that never closes takes the rest. (Where
such a field ends the line and has yet another quote in it, Spark may add one to it; that is not copied.)

>>> fields('1,"a ""b"", c",', ",", '"'), fields('"a"b,c', ",", '"'), fields('x,"a', ",", '"')
(['1', 'a "b", c', None], ['"a"b', 'c'], ['x', 'a'])
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from eventide.errors import DeclarationError
from eventide.plan.expressions.columns import Column
from eventide.sources import text_values
from eventide.sources.arrow_schema import arrow_type

Convert = Callable[[str], Any]


def fields(line: str, sep: str, quote: str) -> list[str | None]:
    """The fields of a line; None where there is nothing between two separators."""
    found: list[str | None] = []
    at = 0
    while at <= len(line):
        if quote and line.startswith(quote, at):
            text, at = _quoted(line, at, sep, quote)
            found.append(text)
        else:
            end = line.find(sep, at)
            end = len(line) if end < 0 else end
            found.append(line[at:end] or None)
            at = end + 1
    return found


def _quoted(line: str, start: int, sep: str, quote: str) -> tuple[str, int]:
    """The field that begins with a quote at `start`, and where the next one begins."""
    if start + 1 == len(line):
        return quote, len(line) + 1
    parts: list[str] = []
    at = start + 1
    while True:
        close = line.find(quote, at)
        if close < 0:
            return "".join(parts) + line[at:], len(line) + 1
        parts.append(line[at:close])
        if not line.startswith(quote, close + 1):
            break
        parts.append(quote)
        at = close + 2
    after = close + 1
    while after < len(line) and line[after] <= " " and line[after] != sep:
        after += 1
    if after == len(line) or line[after] == sep:
        return "".join(parts), after + 1
    end = line.find(sep, close)
    end = len(line) if end < 0 else end
    return quote + "".join(parts) + line[close:end], end + 1


def converter(column: Column) -> Convert:
    """How the text of a field becomes a value for Arrow.

    >>> converter(Column("a", "DECIMAL(4, 1)"))("2.25")
    Decimal('2.3')
    """
    if column.type in SIMPLE:
        return SIMPLE[column.type]
    kind = arrow_type(column.type)
    if pa.types.is_decimal(kind):
        return partial(text_values.decimal, precision=kind.precision, scale=kind.scale)
    if kind == pa.string():
        return str
    raise DeclarationError(f"csv cannot hold the column {column.name} {column.type}: read it as STRING, or use json")


def _double(text: str) -> float:
    known = {"NaN": float("nan"), "Inf": float("inf"), "-Inf": float("-inf")}
    return known[text] if text in known else text_values.floating(text)


def _without_gmt(read: Callable[[str], int], text: str) -> int:
    """Spark reads old forms such as 2020-01-01T00:00:00GMT+01:00 by taking GMT out, wherever it stands."""
    try:
        return read(text)
    except ValueError:
        if "GMT" not in text:
            raise
        return read(text.replace("GMT", "", 1))


SIMPLE: dict[str, Convert] = {
    "TINYINT": partial(text_values.whole_number, bits=8),
    "SMALLINT": partial(text_values.whole_number, bits=16),
    "INT": partial(text_values.whole_number, bits=32),
    "BIGINT": partial(text_values.whole_number, bits=64),
    "FLOAT": _double,
    "DOUBLE": _double,
    "BOOLEAN": text_values.boolean,
    "DATE": partial(_without_gmt, text_values.date),
    "TIMESTAMP": partial(_without_gmt, text_values.timestamp),
    "TIMESTAMP_NTZ": text_values.timestamp_ntz,
}


class CarefulCsv:
    """Lines of CSV, one by one. `places` are the positions of the declared columns among `width` fields."""

    def __init__(
        self, columns: Sequence[Column], places: Sequence[int], width: int, sep: str, quote: str, null: str
    ) -> None:
        self._convert = [converter(column) for column in columns]
        self._places = places
        self._width = width
        self._sep = sep
        self._quote = quote
        self._null = null

    def rows(self, line: str) -> list[list[Any] | None]:
        """The one row of a line, as values for Arrow; None for one that is malformed."""
        found = fields(line, self._sep, self._quote)
        if len(found) != self._width:
            return [None]
        try:
            texts = (found[place] for place in self._places)
            return [
                [
                    None if text is None or text == self._null else convert(text)
                    for text, convert in zip(texts, self._convert, strict=True)
                ]
            ]
        except ValueError:
            return [None]
