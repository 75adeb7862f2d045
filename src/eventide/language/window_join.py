"""The symmetric window join: `FROM a [RANGE 5 s] JOIN b [RANGE 10 s] ON a.k = b.k`.

Law: each row of a meets the rows of b within b's RANGE before it, and the other way round (Stream Mill paper, figures 1
and 6). So b is later than a by less than a's RANGE, and earlier by less than its own.
"""

from __future__ import annotations

from sqlglot import exp

from eventide.language.amounts import Amounts
from eventide.language.known import Level
from eventide.language.source_text import SourceText
from eventide.language.words import column_of, spark_text
from eventide.plan.declared.join import Band
from eventide.plan.declared.stream import Derived, Stream

STAMP = "_time"
"""How a band speaks of the time of rows that are stamped as they arrive."""


def window_band(left: Level, right: Level, node: exp.Expr, source: SourceText) -> Band | None:
    """How far the times of the two sides may lie apart by their windows; None where they have none."""
    if left.window is None and right.window is None:
        return None
    lengths = []
    for level, other in ((left, right), (right, left)):
        if level.window is None:
            assert other.window is not None
            if level.below is not None and level.below.hidden:
                raise source.error(
                    "windows on both sides join two streams, and what is joined already has none",
                    other.window,
                    "relate the times in ON, as in ON a.t = c.t, and leave this window out",
                )
            raise source.error(
                f"{other.stream.name!r} has a window in this join and {level.stream.name!r} has none",
                other.window,
                "give both a [RANGE ..], or neither; windows over pairs are WINDOW [RANGE ..] behind the joins",
            )
        lengths.append(_length(level, source))
    if _is_sequence(left) != _is_sequence(right):
        raise source.error("one side counts in numbers and the other in time", node)
    shift = _ahead(right.stream) - _ahead(left.stream)
    times = [spark_text(column_of(level.stream.time or STAMP)) for level in (left, right)]
    return Band(times[0], times[1], shift + 1 - lengths[1], shift + lengths[0] - 1)


def _length(level: Level, source: SourceText) -> int:
    assert level.window is not None
    clauses = {str(clause.this): clause for clause in level.window.expressions}
    for name, clause in clauses.items():
        if name in ("SLACK", "DRATIO"):
            raise source.error(f"{name} is for a stream, and this is a join", clause, "say it in CREATE STREAM")
        if name != "RANGE":
            raise source.error(f"{name} does not go with a window of a join", clause, "write [RANGE length]")
    if "RANGE" not in clauses:
        raise source.error("a window of a join has a RANGE", level.window, "write [RANGE 5 seconds]")
    amount = clauses["RANGE"].expressions[0]
    amounts = Amounts(source, level.clock.kind)
    if amounts.says_rows(amount):
        raise source.error("a join with the last rows of a stream cannot be run yet", amount, "give a length of time")
    length = amounts.length(amount, "RANGE")
    if length < 1:
        raise source.error("a window of RANGE 0 or less holds nothing: give a RANGE above 0", amount)
    return length


def _is_sequence(level: Level) -> bool:
    return level.clock.kind.value == "sequence"


def _ahead(stream: Stream) -> int:
    """By how much the column that tells the time is ahead of it: the end of a window is the instant after its last."""
    return 1 if isinstance(stream, Derived) else 0
