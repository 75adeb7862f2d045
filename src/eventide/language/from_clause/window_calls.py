"""Windows as functions: those of Spark, and those that Flink has in GROUP BY, as our windows in brackets.

Law: a call means the same as a window behind the stream: `window(ts, '5 minutes', '1 minute')` as [RANGE 5 minutes
SLIDE 1 minute], `session_window(ts, '10 minutes')` as [SESSION 10 minutes]; so do Flink's `TUMBLE(ts, size)`, `HOP(ts,
slide, size)` and `SESSION(ts, gap)`. The first argument is the time of the stream.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from sqlglot import exp

from eventide.language.from_clause.from_clause import FromReader
from eventide.language.grammar.nodes import Amount, Clause, StreamWindow
from eventide.language.grammar.source_text import SourceText, offset_of
from eventide.language.scope.scope import Scope
from eventide.plan.declared.stream import WINDOW_END, WINDOW_START


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
COLUMNS = ("window", "session_window")
"""Those of Spark, which are columns, too, with a start and an end."""

SPARKS = tuple(CALLS[name] for name in COLUMNS)


def is_window_call(node: exp.Expr) -> bool:
    """Whether this is a call of a function that makes windows."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in CALLS


def is_part_of_window(node: exp.Expr, columns: Collection[str] = ()) -> bool:
    """Whether this is `window`, `window.start` or `window.end`, and no column of what is read."""
    if not isinstance(node, exp.Column):
        return False
    parts = [part.name.lower() for part in node.parts]
    return parts[0] in COLUMNS and parts[0] not in columns and (len(parts) == 1 or parts[1:] in (["start"], ["end"]))


MARKS = {"__window_start": WINDOW_START, "__window_end": WINDOW_END}
"""How the edges of a query's own window go by while names are looked up: a row of an operator has columns of the same
names."""

_EDGE_CALLS = {
    f"{name}_{edge}": f"__window_{edge}" for name in ("tumble", "hop", "session") for edge in ("start", "end")
}


def is_own_edge(node: exp.Expr, level: Scope) -> bool:
    """Whether this is the start or end of the query's own window, which is in every result."""
    edge = isinstance(node, exp.Column) and not node.table and node.name.lower() in (WINDOW_START, WINDOW_END)
    if level.over_query is not None:
        return edge and level.window is None
    return edge and (level.below is not None or node.name.lower() not in level.columns)


def marked_edges(expression: exp.Expr, level: Scope) -> exp.Expr:
    """The expression with marks for the edges of the query's own window, however they are written.

    Over a query whose windows it has, `window_start` is a column that is read, which is the same.
    """

    def marked(node: exp.Expr) -> exp.Expr:
        if node.find_ancestor(exp.AggFunc) is not None:
            return node
        if isinstance(node, exp.Anonymous) and node.name.lower() in _EDGE_CALLS:
            found = _EDGE_CALLS[node.name.lower()]
        elif isinstance(node, exp.Column) and is_part_of_window(node, level.columns) and len(node.parts) == 2:
            found = f"__window_{node.parts[1].name.lower()}"
        elif level.over_query is None and is_own_edge(node, level):
            found = f"__{node.name.lower()}"
        else:
            return node
        mark = exp.column(found)
        mark.meta.update(node.meta)
        return mark

    return expression.copy().transform(marked, copy=False)


def unmarked(expression: exp.Expr) -> exp.Expr:
    """The expression with the names of the edges in the place of their marks."""

    def named(node: exp.Expr) -> exp.Expr:
        known = MARKS.get(node.name) if isinstance(node, exp.Column) else None
        return node if known is None else exp.column(known)

    return expression.transform(named)


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
    # Spark has no plain numbers here, whose unit would be left to guessing.
    is_plain = known in SPARKS and isinstance(written, exp.Literal) and not written.is_string
    if (amount is None and words != "SESSION") or is_plain:
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
