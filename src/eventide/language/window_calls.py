"""Windows as functions: those of Spark, and those that Flink has in GROUP BY, as our windows in brackets.

Law: a call means the same as a window behind the stream: `window(ts, '5 minutes', '1 minute')` as [RANGE 5 minutes
SLIDE 1 minute], `session_window(ts, '10 minutes')` as [SESSION 10 minutes]; so do Flink's `TUMBLE(ts, size)`, `HOP(ts,
slide, size)` and `SESSION(ts, gap)`. The first argument is the time of the stream.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from eventide.language.from_clause import FromReader
from eventide.language.grammar.nodes import Amount, Clause, StreamWindow
from eventide.language.grammar.source_text import SourceText, offset_of
from eventide.language.scope import Scope


@dataclass(frozen=True)
class WindowCall:
    """The clauses that the arguments behind the time stand for, how many there must be, and how it is written."""

    clauses: tuple[str, ...]
    least: int
    written: str


CALLS = {
    "window": WindowCall(("RANGE", "SLIDE", "OFFSET"), 1, "window(time, '5 minutes' [, '1 minute' [, '30 seconds']])"),
    "session_window": WindowCall(("SESSION",), 1, "session_window(time, '10 minutes')"),
    "tumble": WindowCall(("RANGE",), 1, "TUMBLE(time, INTERVAL '5' MINUTES)"),
    "hop": WindowCall(("SLIDE", "RANGE"), 2, "HOP(time, INTERVAL '1' MINUTE, INTERVAL '5' MINUTES)"),
    "session": WindowCall(("SESSION",), 1, "SESSION(time, INTERVAL '10' MINUTES)"),
}
SPARKS = ("window", "session_window")
"""Those that are columns, too, with a start and an end."""


def is_window_call(node: exp.Expr) -> bool:
    """Whether this is a call of a function that makes windows."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in CALLS


def is_part_of_window(node: exp.Expr, columns: Collection[str] = ()) -> bool:
    """Whether this is `window`, `window.start` or `window.end`, and no column of what is read."""
    if not isinstance(node, exp.Column):
        return False
    parts = [part.name.lower() for part in node.parts]
    return parts[0] in SPARKS and parts[0] not in columns and (len(parts) == 1 or parts[1:] in (["start"], ["end"]))


def called_window(call: exp.Expr, level: Scope, origin: FromReader, source: SourceText) -> StreamWindow:
    """The call as a window behind a stream."""
    name, known = call.name, CALLS[call.name.lower()]
    column, *lengths = call.expressions or [None]
    time = level.clock.of(origin.spelled_out(column, level)) if isinstance(column, exp.Column) else None
    if time is None or time.shifted != 0:
        names = [name for name, one in level.times.items() if one.shifted == 0]
        way = f"its time is {names[0]}" if names else "write WINDOW [RANGE ..] instead"
        raise source.error(f"{name}() goes by the time of the stream", call, way)
    if not known.least <= len(lengths) <= len(known.clauses):
        raise source.error(f"expected {known.written}", call)
    return StreamWindow(
        expressions=[
            _clause(words, written, known, source) for words, written in zip(known.clauses, lengths, strict=False)
        ]
    )


def _clause(words: str, written: exp.Expr, known: WindowCall, source: SourceText) -> Clause:
    amount = amount_of(written)
    if amount is None and words != "SESSION":
        raise source.error(f"expected {known.written}", written)
    return Clause(this=words, expressions=[written if amount is None else amount])


def amount_of(written: exp.Expr) -> Amount | None:
    """A text, number or interval as a length; None for any other expression.

    >>> import sqlglot
    >>> [amount_of(sqlglot.parse_one(text)).sql() for text in ("'5 minutes'", "INTERVAL '10' MINUTES", "5")]
    ['5 minutes', '10 minutes', '5']
    """
    inner = written.unnest()
    unit: str | None = None
    if isinstance(inner, exp.Interval):
        named = inner.args.get("unit")
        unit = named.name.lower() if isinstance(named, exp.Var) else None
        inner = inner.this
    if not isinstance(inner, exp.Literal):
        return None
    number, _, behind = inner.name.strip().partition(" ")
    amount = Amount(this=number, unit=unit or behind.strip().lower() or None)
    amount.meta["start"] = offset_of(written)
    return amount
