"""Types of expressions, asked of an engine only where the declaration does not tell them.

Law: the answer is the engine's. A column alone has its declared type; of a wide stream the engine sees the columns that
an expression names, so that a thousand of them are not looked at a thousand times.

>>> from eventide.plan.stream import columns
>>> stream = Stream("s", columns("t BIGINT, v INT, " + ", ".join(f"c{i} INT" for i in range(100))), time="t")
>>> asked = lambda stream, sql: f"{sql} over {', '.join(column.name for column in stream.columns)}"
>>> declared_first(asked)(stream, "`v`"), declared_first(asked)(stream, "V + 1")
('INT', 'V + 1 over t, v')
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from eventide.plan.stream import Stream

ALONE = re.compile(r"`([^`]+)`|([A-Za-z_]\w*)")
WORD = re.compile(r"\w+")
PLAIN = re.compile(r"TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|STRING|BOOLEAN|DATE|TIMESTAMP|TIMESTAMP_NTZ|BINARY")
FEW = 20
"""A stream with so few columns is looked at as it is."""

TypeIn = Callable[[Stream, str], str]


def declared_first(type_of: TypeIn) -> TypeIn:
    """The same answers, with less asked of an engine."""

    def known(stream: Stream, sql: str) -> str:
        if (alone := ALONE.fullmatch(sql.strip())) is not None:
            name = (alone[1] or alone[2]).lower()
            kind = next((column.type for column in stream.columns if column.name.lower() == name), "")
            if PLAIN.fullmatch(kind):
                return kind
        return type_of(_narrowed(stream, sql), sql)

    return known


def _narrowed(stream: Stream, sql: str) -> Stream:
    """The stream with the columns that may be named in an expression, and those it cannot be without."""
    if len(stream.columns) <= FEW or "*" in sql:
        return stream
    roles = (*stream.source, stream.time, stream.arrival, stream.punctuation, stream.prods)
    named = {word.lower() for word in (*WORD.findall(sql), *filter(None, roles))}
    odd = [column for column in stream.columns if WORD.fullmatch(column.name) is None]
    kept = tuple(c for c in stream.columns if c.name.lower() in named or c in odd)
    return stream if len(kept) == len(stream.columns) else replace(stream, columns=kept)
