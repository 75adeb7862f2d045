"""Many lines of CSV at once: Arrow cuts them into fields, DuckDB converts the fields.

Law: only lines whose cutting is beyond doubt are cut here: the right number of separators, and quotes (if any) around
whole fields, doubled inside. Of those, only the rows are given whose every value is sure.

>>> from eventide.plan.expressions.columns import columns
>>> quick = QuickCsv(columns("n INT, s STRING"), [0, 1], 2, ",", '"', "")
>>> block = b'1,"a, b"\\n2\\nx,c\\n3,\\n'
>>> rows, sure = quick.rows(lines_of(block, "csv"), block)
>>> rows.to_pydict(), sure.tolist()
({'n': [1, 3], 's': ['a, b', None]}, [True, False, False, True])
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from eventide.plan.expressions.columns import Column
from eventide.sources.lines import as_block, lines_of
from eventide.sources.quick_values import connection, of_csv, sure_rows

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

    def rows(self, lines: pa.StringArray, block: bytes) -> tuple[pa.Table, Any]:
        """The rows of the lines that are sure, and which lines they are; `block` has these lines, and blank ones."""
        plain = self._plain(lines, block)
        table = self._converted(lines, block) if plain.all() else self._converted(lines.filter(pa.array(plain)), None)
        sure = table.column("sure")
        plain[plain] = sure.to_numpy()
        values = table.drop_columns("sure").rename_columns(self._names)
        return values.filter(sure), plain

    def _plain(self, lines: pa.StringArray, block: bytes) -> Any:
        """Which lines can be cut without doubt."""
        bare, regular = lines, None
        if self._quote and self._quote.encode() in block:
            regular = pc.match_substring_regex(lines, self._regular)
            if self._null:
                # Here an empty text in quotes is not NULL; Arrow does not tell the two apart.
                regular = pc.and_not(regular, pc.match_substring(lines, self._quote * 2))
            bare = pc.replace_substring_regex(lines, self._inside, self._quote)
        plain = pc.equal(pc.count_substring(bare, self._sep), self._width - 1)
        return (plain if regular is None else pc.and_(plain, regular)).to_numpy(zero_copy_only=False).copy()

    def _converted(self, lines: pa.StringArray, block: bytes | None) -> pa.Table:
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
        return self._engine.sql(self._sql).to_arrow_table()
