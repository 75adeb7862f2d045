"""Spark's own way to write a window: `GROUP BY window(ts, '5 minutes', '1 minute')`.

Law: it means the same as `[RANGE 5 minutes SLIDE 1 minute]` behind the stream. `window.start` and `window.end` are
`window_start` and `window_end`, which are in every result.
"""

from __future__ import annotations

from sqlglot import exp

from eventide.language.known import Level
from eventide.language.nodes import Amount, Clause, StreamWindow
from eventide.language.reading_from import FromReader
from eventide.language.source_text import SourceText, offset_of

CLAUSES = ("RANGE", "SLIDE", "OFFSET")


def is_spark_window(node: exp.Expr) -> bool:
    """Whether this is a call of `window`."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "window"


def is_part_of_window(node: exp.Expr) -> bool:
    """Whether this is `window`, `window.start` or `window.end`."""
    if not isinstance(node, exp.Column):
        return False
    parts = [part.name.lower() for part in node.parts]
    return parts[0] == "window" and (len(parts) == 1 or parts[1:] in (["start"], ["end"]))


def stream_window(call: exp.Expr, level: Level, origin: FromReader, source: SourceText) -> StreamWindow:
    """The call as a window behind a stream."""
    column, *lengths = call.expressions
    time = level.clock.of(origin.spelled_out(column, level)) if isinstance(column, exp.Column) else None
    if time is None or time.shifted != 0:
        names = [name for name, one in level.times.items() if one.shifted == 0]
        way = f"its time is {names[0]}" if names else "write WINDOW [RANGE ..] instead"
        raise source.error("window() goes by the time of the stream", call, way)
    if not 1 <= len(lengths) <= len(CLAUSES) or not all(isinstance(e, exp.Literal) and e.is_string for e in lengths):
        raise source.error("expected window(time, '5 minutes' [, '1 minute' [, '30 seconds']])", call)
    clauses = []
    for name, written in zip(CLAUSES, lengths, strict=False):
        number, _, unit = written.name.strip().partition(" ")
        amount = Amount(this=number, unit=unit.strip().lower() or None)
        amount.meta["start"] = offset_of(written)
        clauses.append(Clause(this=name, expressions=[amount]))
    return StreamWindow(expressions=clauses)
