"""Many lines of JSON at once: DuckDB finds the declared columns in each and converts them.

Law: only rows are given whose every value is sure. Not sure are lines that are no strict JSON, and the few things that
DuckDB takes and Spark does not (a comma too many) or takes otherwise (a name that comes twice).

>>> from eventide.plan.columns import columns
>>> quick = QuickJson(columns("n INT, s STRING"))
>>> rows, sure = quick.rows(pa.array(['{"n": 1, "s": "a"}', '{"n": "1"}', '{"n": 2,}', '{"s": null}']))
>>> rows.to_pydict(), sure.tolist()
({'n': [1, None], 's': ['a', None]}, [True, False, False, True])
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from eventide.plan.columns import Column
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
        # An object, no comma before a closing bracket (nor, to be brief, in a text that looks so).
        plain = r"regexp_matches(line, '^[ \t]*\{') AND NOT regexp_matches(line, ',[ \t]*[}\]]')"
        docs = f"SELECT TRY(json_extract(line, [{pointers}])) AS doc, ({plain}) AS plain FROM lines"
        self._sql = sure_rows(
            used, values, f"(SELECT {found}, doc IS NOT NULL AND plain AS known FROM ({docs}))", also="known"
        )
        self._engine = connection()

    def rows(self, lines: pa.StringArray) -> tuple[pa.Table, Any]:
        """The rows of the lines that are sure, and which lines they are."""
        self._engine.register("lines", pa.table({"line": lines}))
        table = self._engine.sql(self._sql).to_arrow_table()
        sure = table.column("sure").combine_chunks()
        for name in self._names:
            twice = pc.greater(pc.count_substring(lines, json.dumps(name, ensure_ascii=False)), 1)
            sure = pc.and_not(sure, twice)
        values = table.drop_columns("sure").rename_columns(self._names)
        return values.filter(sure), sure.to_numpy(zero_copy_only=False)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
