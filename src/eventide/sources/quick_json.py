"""Many lines of JSON at once: DuckDB finds the declared columns in each and converts them.

Law: only rows are given whose every value is sure. Not sure are lines that are no strict JSON, and the few things that
DuckDB takes and Spark does not (a comma too many) or takes otherwise (a name that comes twice).

>>> from eventide.plan.expressions.columns import columns
>>> quick = QuickJson(columns("n INT, s STRING"))
>>> lines = ['{"n": 1, "s": "a"}', '{"n": "1"}', '{"n": 2,}', '{"s": null}']
>>> rows, sure = quick.rows(pa.array(lines), "\\n".join(lines).encode())
>>> rows.to_pydict(), sure.tolist()
({'n': [1, None], 's': ['a', None]}, [True, False, False, True])
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from eventide.plan.expressions.columns import Column
from eventide.sources.quick_values import connection, of_json, sure_rows


class QuickJson:
    """Lines of JSON."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self._names = [column.name for column in columns]
        pointers = ", ".join(_literal("/" + name.replace("~", "~0").replace("/", "~1")) for name in self._names)
        found = ", ".join(
            f"nullif(CAST(doc[{place}] AS VARCHAR), 'null') AS j{place}" for place in range(1, len(columns) + 1)
        )
        used = [f"j{place}" for place in range(1, len(columns) + 1)]
        values = [of_json(value, column.type) for value, column in zip(used, columns, strict=True)]
        # What DuckDB takes and Spark does not: a comma before a closing bracket (also, to be brief, inside of a text).
        plain = r"regexp_matches(line, '^[ \t]*\{') AND NOT regexp_matches(line, ',[ \t]*[}\]]')"
        there = [f"p{place}" for place in range(1, len(columns) + 1)]
        shown = ", ".join(f"doc[{place}] IS NOT NULL AS p{place}" for place in range(1, len(columns) + 1))
        self._sql, self._checked_sql = (
            sure_rows(
                used,
                values,
                f"(SELECT {found}, {shown}, doc IS NOT NULL AND plain AS known FROM "
                f"(SELECT json_extract({line}, [{pointers}]) AS doc, {plain} AS plain FROM lines))",
                also="known",
                more=there,
            )
            for line in ("line", "CASE WHEN json_valid(line) THEN line END")
        )
        self._engine = connection()

    def _found(self, lines: pa.StringArray) -> pa.Table:
        """The values in all lines; only where one of them is no JSON at all is each checked first."""
        self._engine.register("lines", pa.table({"line": lines}))
        try:
            return self._engine.sql(self._sql).to_arrow_table()
        except duckdb.Error:
            return self._engine.sql(self._checked_sql).to_arrow_table()

    def rows(self, lines: pa.StringArray, block: bytes) -> tuple[pa.Table, Any]:
        """The rows of the lines that are sure, and which lines they are; `block` has these lines, and blank ones."""
        table = self._found(lines)
        sure = table.column("sure").combine_chunks()
        unknown = lines.filter(pc.invert(sure))
        for place, name in enumerate(self._names, start=1):
            sure = self._only_once(name, table.column(f"p{place}"), lines, unknown, block, sure)
        values = table.select([f"v{place}" for place in range(len(self._names))]).rename_columns(self._names)
        return values.filter(sure), sure.to_numpy(zero_copy_only=False)

    def _only_once(
        self, name: str, there: pa.ChunkedArray, lines: pa.StringArray, unknown: pa.StringArray, block: bytes, sure: Any
    ) -> Any:
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
