"""Columns of a stream that are computed from those that are read, as SQL over the rows as they were read.

Law: a computed column is the same as if the input had it: rows are told their time, their source and everything else
after it was computed. A row for which it cannot be computed (a text that is no time) is a malformed row, with the
expression as the reason: it is rejected, and the stream goes on.

>>> from eventide.plan.declared.stream import columns
>>> s = Stream("s", columns("t BIGINT, k STRING, no BOOLEAN"), time="t", computed=(("no", "k IS NULL"),))
>>> [column.name for column in s.as_read.columns], s.as_read.time
(['t', 'k'], 't')
>>> computed_text(s, "raw")
'SELECT `t`, `k`, k IS NULL AS `no`, _malformed FROM raw'
"""

from __future__ import annotations

from eventide.plan.declared.stream import Stream
from eventide.plan.expressions.columns import WHOLE_NUMBERS, literal, quoted
from eventide.plan.expressions.parse import parsed
from eventide.plan.expressions.spark_dialect import SPARK
from eventide.plan.expressions.spark_types import SparkTypes
from eventide.plan.sql.evaluation_order import in_evaluation_order, may_fail
from eventide.plan.sql.failing_rows import fails
from eventide.plan.sql.stream_rows import MALFORMED

PLAIN = ("STRING", "BOOLEAN", "DATE", "TIMESTAMP", *WHOLE_NUMBERS)


def computed_text(stream: Stream, rows: str) -> str:
    """The rows with all columns of the stream, and `_malformed`."""
    computed = dict(stream.computed)
    types = SparkTypes({column.name: column.type for column in stream.as_read.columns})
    shown, broken = [], []
    for column in stream.columns:
        if column.name not in computed:
            shown.append(quoted(column.name))
            continue
        tree = parsed(computed[column.name], f"the column {column.name!r}")
        value = in_evaluation_order(tree, types).sql(SPARK)
        value = value if types.of(tree) == column.type else f"CAST({value} AS {column.type})"
        if may_fail(parsed(value, "a column"), types):
            failing = fails(value, _readable(stream))
            reason = literal(f"column {column.name}: {computed[column.name]} cannot be computed")
            broken.append(f"CASE WHEN {failing} THEN {reason} END")
            value = f"CASE WHEN {failing} THEN NULL ELSE {value} END"
        shown.append(f"{value} AS {quoted(column.name)}")
    malformed = f"COALESCE({', '.join([MALFORMED, *broken])}) AS {MALFORMED}" if broken else MALFORMED
    return f"SELECT {', '.join([*shown, malformed])} FROM {rows}"


def _readable(stream: Stream) -> str:
    """TRUE for every row that could be read; what could not be is not computed with.

    Most inputs have no malformed rows, and an optimizer sees that. It does not see that a text is never shorter than
    nothing, so it does not take away the CASE that depends on it (see `HAS_TIME`).
    """
    known = next((column.name for column in stream.as_read.columns if column.type in PLAIN), None)
    unseen = "" if known is None else f" AND length(concat_ws('', CAST({quoted(known)} AS STRING))) >= 0"
    return f"{MALFORMED} IS NULL{unseen}"
