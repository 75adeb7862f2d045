"""A share of the rows, chosen by what is in them.

Law: whether a row is taken depends on its values alone, not on rounds, on the order of arrival or on the engine; so
rows that are equal are taken together or not at all. Of rows that differ, about the share is taken.

Texts, numbers, times and truth values count; columns of other types do not.
"""

from __future__ import annotations

from eventide.errors import DeclarationError
from eventide.plan.aggregate_call import FRACTIONS, decimal_of
from eventide.plan.columns import WHOLE_NUMBERS, Column, quoted
from eventide.plan.stream import Stream, kind_of

BETWEEN, NOTHING = "\x1f", "\x1e"
"""What stands between two values, and in the place of NULL: no text has them."""

DIGITS = 8


def sampled(stream: Stream, share: float) -> str | None:
    """The condition under which a row is among the share; None where all rows are.

    >>> from eventide.plan.stream import columns
    >>> s = Stream("s", columns("t BIGINT, k STRING"), time="t")
    >>> sampled(s, 1.0) is None
    True
    >>> print(sampled(s, 0.25).replace(BETWEEN, "|").replace(NOTHING, "~"))
    left(md5(concat_ws('|', COALESCE(CAST(`t` AS STRING), '~'), COALESCE(`k`, '~'))), 8) < '40000000'
    """
    threshold = round(share * 16**DIGITS)
    if threshold >= 16**DIGITS:
        return None
    texts = [text for column in stream.columns if (text := _text(column)) is not None]
    if not texts:
        raise DeclarationError(
            f"no column of stream {stream.name!r} can tell which rows to take: a sample needs a column of texts, "
            "numbers, times or truth values"
        )
    values = ", ".join(f"COALESCE({text}, '{NOTHING}')" for text in texts)
    return f"left(md5(concat_ws('{BETWEEN}', {values})), {DIGITS}) < '{threshold:0{DIGITS}x}'"


def _text(column: Column) -> str | None:
    """The value as a text that both engines write alike."""
    name = quoted(column.name)
    if column.type == "STRING":
        return name
    if column.type in (*WHOLE_NUMBERS, *FRACTIONS, "BOOLEAN") or decimal_of(column.type) is not None:
        return f"CAST({name} AS STRING)"
    if column.type == "DATE":
        return f"CAST(unix_date({name}) AS STRING)"
    if kind_of(column) is not None:
        return f"CAST(unix_micros(CAST({name} AS TIMESTAMP)) AS STRING)"
    return None
