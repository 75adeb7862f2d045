"""Cut lines of CSV into fields: many at once in Arrow, and one by one as Spark cuts them.

*One line.* The fail-safe way cuts it into fields as Spark's parser does, then converts each field. The same fields as
Spark's, also for quotes where none should be. A quoted field that goes on after its closing quote is taken as it
stands, quotes and all, up to the next separator; a quote that never closes takes the rest. (Where such a field ends the
line and has yet another quote in it, Spark may add one to it; that is not copied.)

>>> fields('1,"a ""b"", c",', ",", '"'), fields('"a"b,c', ",", '"'), fields('x,"a', ",", '"')
(['1', 'a "b", c', None], ['"a"b', 'c'], ['x', 'a'])

*Many lines.* Arrow cuts them into fields, DuckDB converts the fields. Only lines whose cutting is beyond doubt are cut
here: the right number of separators, and quotes (if any) around whole fields, doubled inside. Of those, only the rows
are given whose every value is sure.

>>> from eventide.plan.expressions.columns import columns
>>> quick = QuickCsv(columns("n INT, s STRING"), [0, 1], 2, ",", '"', "")
>>> block = b'1,"a, b"\\n2\\nx,c\\n3,\\n'
>>> rows, sure = quick.rows(lines_of(block, "csv"), block)
>>> rows.to_pydict(), sure.tolist()
({'n': [1, 3], 's': ['a, b', None]}, [True, False, False, True])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
from numpy.typing import NDArray

from eventide.errors import DeclarationError
from eventide.plan.expressions.columns import Column
from eventide.sources.arrow_types import readable_type
from eventide.sources.text import values as text_values
from eventide.sources.text.lines import as_block, lines_of
from eventide.sources.text.values import connection, of_csv, sure_rows

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
    kind = readable_type(column.type)
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


class FailSafeCsv:
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


__all__ = ["QuickCsv", "lines_of"]

BLOCK = 1 << 20
"""Bytes that Arrow cuts at once; no line may be longer than a block."""


class QuickCsv:
    """Lines of CSV. `places` are the positions of the declared columns among `width` fields."""

    def __init__(
        self, columns: Sequence[Column], places: Sequence[int], width: int, sep: str, quote: str, null: str
    ) -> None:
        self._width = width
        self._sep = sep
        self._quote = quote
        self._null = null
        self._names = [column.name for column in columns]
        self._used = [f"f{place}" for place in places]
        values = [of_csv(field, column.type) for field, column in zip(self._used, columns, strict=True)]
        self._sql = sure_rows(self._used, values, "fields")
        self._engine = connection()
        q, s = re.escape(quote), re.escape(sep)
        # Whole fields in quotes, or fields without any.
        one = f"(?:{q}(?:[^{q}]|{q}{q})*{q}|[^{q}{s}]*)"
        self._regular = f"^{one}(?:{s}{one})*$"
        self._inside = f"{q}(?:[^{q}]|{q}{q})*{q}"

    def rows(self, lines: pa.Array, block: bytes) -> tuple[pa.Table, NDArray[np.bool_]]:
        """The rows of the lines that are sure, and which lines they are; `block` has these lines, and blank ones."""
        unquoted = self._cuttable(lines, block)
        table = (
            self._converted(lines, block) if unquoted.all() else self._converted(lines.filter(pa.array(unquoted)), None)
        )
        sure = table.column("sure")
        unquoted[unquoted] = sure.to_numpy()
        values = table.drop_columns("sure").rename_columns(self._names)
        return values.filter(sure), unquoted

    def _cuttable(self, lines: pa.Array, block: bytes) -> NDArray[np.bool_]:
        """Which lines can be cut without doubt."""
        bare, regular = lines, None
        if self._quote and self._quote.encode() in block:
            regular = pc.match_substring_regex(lines, self._regular)
            if self._null:
                # Here an empty text in quotes is not NULL; Arrow does not tell the two apart.
                regular = pc.and_not(regular, pc.match_substring(lines, self._quote * 2))
            bare = pc.replace_substring_regex(lines, self._inside, self._quote)
        unquoted = pc.equal(pc.count_substring(bare, self._sep), self._width - 1)
        return (unquoted if regular is None else pc.and_(unquoted, regular)).to_numpy(zero_copy_only=False).copy()

    def _converted(self, lines: pa.Array, block: bytes | None) -> pa.Table:
        names = [f"f{place}" for place in range(self._width)]
        if len(lines) == 0:
            fields = pa.schema([(name, pa.string()) for name in names]).empty_table()
        else:
            # A line of blanks is a row to Arrow: then the lines are put together again without them.
            if block is None or block.count(b"\n") != len(lines):
                block = as_block(lines)
            longest = pc.max(pc.binary_length(lines)).as_py()
            fields = pa_csv.read_csv(
                pa.BufferReader(block),
                read_options=pa_csv.ReadOptions(column_names=names, block_size=max(BLOCK, 2 * longest + 2)),
                parse_options=pa_csv.ParseOptions(delimiter=self._sep, quote_char=self._quote or False),
                convert_options=pa_csv.ConvertOptions(
                    include_columns=list(dict.fromkeys(self._used)),
                    column_types=dict.fromkeys(names, pa.string()),
                    null_values=["", self._null],
                    strings_can_be_null=True,
                    quoted_strings_can_be_null=True,
                ),
            )
        self._engine.register("fields", fields)
        converted: pa.Table = self._engine.sql(self._sql).to_arrow_table()
        return converted
