"""Blocks of CSV or JSON lines become tables: the quick way for the many, the careful way for the rest.

Law: rows come in the order of their lines; each is either all values as Spark would read them, or all NULL with the
text of its line in `_malformed`. The quick way (DuckDB) says of which rows it is sure; only the others are looked at
one by one. So are lines that are few: to begin the quick way takes 13 ms, in which the careful one reads hundreds.

>>> from eventide.plan.columns import columns
>>> parser = TextParser(columns("n INT, s STRING"), "json", {})
>>> parser.table(b'{"n": 1, "s": "a"}\\n{"n": "?"}\\n').to_pydict()
{'n': [1, None], 's': ['a', None], '_malformed': [None, '{"n": "?"}']}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from eventide.plan.columns import Column
from eventide.plan.reduce_text import MALFORMED
from eventide.sources.arrow_schema import schema_of
from eventide.sources.careful_csv import CarefulCsv
from eventide.sources.careful_json import CarefulJson
from eventide.sources.conform import places_in_header
from eventide.sources.lines import as_block, lines_of, normal
from eventide.sources.quick_csv import QuickCsv
from eventide.sources.quick_json import QuickJson

FEW_LINES = 32
"""Up to so many lines of a block are read the careful way."""


class Quick(Protocol):
    """Many lines at once."""

    def rows(self, lines: pa.StringArray, block: bytes) -> tuple[pa.Table, Any]:
        """The rows of the lines that are sure, and which lines they are (NumPy booleans).

        `block` has the same lines, each ended by LF, and perhaps blank ones.
        """
        ...


class Careful(Protocol):
    """One line at a time."""

    def rows(self, line: str) -> list[list[Any] | None]:
        """The rows of a line; None for a malformed one."""
        ...


class TextParser:
    """Lines of one format, for declared columns. `names` are those of a CSV header; None: the declared ones."""

    def __init__(
        self, declared: Sequence[Column], kind: str, options: Mapping[str, str], names: Sequence[str] | None = None
    ) -> None:
        self._schema = schema_of(declared)
        self._kind = kind
        self._quick: Quick
        self._careful: Careful
        if kind == "json":
            self._quick, self._careful = QuickJson(declared), CarefulJson(declared)
            return
        there = [column.name for column in declared] if names is None else list(names)
        places = places_in_header("the stream", declared, there, "the file")
        shape = (declared, places, len(there), options["sep"], options["quote"], options.get("nullvalue", ""))
        self._quick, self._careful = QuickCsv(*shape), CarefulCsv(*shape)

    def table(self, block: bytes) -> pa.Table:
        """The rows of a block of whole lines."""
        broken: list[int] = []
        try:
            block.decode()
        except UnicodeDecodeError:
            block, broken = self._repaired(block)
        block = normal(block)
        lines = lines_of(block, self._kind)
        if len(lines) == 0:
            return self._schema.empty_table()
        if len(lines) <= FEW_LINES:
            return self._merged(self._schema.empty_table(), np.zeros(len(lines), np.bool_), lines, set(broken))
        sure = np.ones(len(lines), dtype=np.bool_)
        sure[broken] = False
        tried = lines.filter(pa.array(sure)) if broken else lines
        rows, sure[sure] = self._quick.rows(tried, as_block(tried) + b"\n" if broken else block)
        good = rows.append_column(MALFORMED, pa.nulls(rows.num_rows, pa.string())).cast(self._schema)
        return good if sure.all() else self._merged(good, sure, lines, set(broken))

    def _repaired(self, block: bytes) -> tuple[bytes, list[int]]:
        """Valid UTF-8; in JSON the lines that were not are malformed, in CSV the damage is part of the text."""
        repaired = block.decode("utf-8", "replace").encode()
        if self._kind != "json":
            return repaired, []
        # Which of them, by their place among those not blank: a replaced character is always longer than a blank.
        was = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        kept = [line for line in was if line.strip(b" \t")]
        return repaired, [number for number, line in enumerate(kept) if not _valid(line)]

    def _merged(self, good: pa.Table, sure: Any, lines: pa.StringArray, broken: set[int]) -> pa.Table:
        """The sure rows, and in the places of the others what the careful way makes of them."""
        doubtful = np.flatnonzero(~sure)
        rows: list[Sequence[Any]] = []
        places: list[int] = []
        nothing = [None] * (len(self._schema) - 1)
        for number, line in zip(doubtful.tolist(), lines.take(pa.array(doubtful)).to_pylist(), strict=True):
            for row in [None] if number in broken else self._careful.rows(line):
                rows.append([*nothing, line] if row is None else [*row, None])
                places.append(number)
        columns = zip(*rows, strict=True) if rows else ([] for _ in self._schema)
        arrays = [pa.array(list(column), field.type) for column, field in zip(columns, self._schema, strict=True)]
        both = pa.concat_tables([good, pa.table(arrays, schema=self._schema)])
        order = np.argsort(np.concatenate([np.flatnonzero(sure), np.asarray(places, dtype=np.intp)]), kind="stable")
        return both.take(pa.array(order))


def _valid(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
