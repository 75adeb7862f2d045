"""`... OVER (...)`: refused, with what to write instead.

Law: OVER looks at other rows than its own. Among the results of one window the first n are told by ORDER BY and LIMIT,
and a value over all groups of a window by a query over the query, both of which close with the window; among rows of a
stream, rows belong together by a window or by a join that relates their times. The hint says which of them is meant.

>>> import sqlglot
>>> hint_for(sqlglot.parse_one("rank() OVER (ORDER BY total DESC)"))
'for the first n of each window: ORDER BY total DESC LIMIT n, behind GROUP BY'
"""

from __future__ import annotations

from sqlglot import exp

from eventide.language.source_text import SourceText

RANKS = ("rank", "row_number", "rownumber", "dense_rank", "denserank", "percent_rank", "percentrank", "ntile")
NEIGHBOURS = ("lag", "lead")


def refuse_over(query: exp.Expr, source: SourceText) -> None:
    """An error for an OVER in a query, wherever it stands."""
    for over in query.find_all(exp.Window):
        raise source.error("OVER cannot be run yet", over, hint_for(over))


def hint_for(over: exp.Expr) -> str:
    """What to write instead.

    >>> import sqlglot
    >>> hint_for(sqlglot.parse_one("lag(speed) OVER (ORDER BY ts)"))
    'to meet rows before it, join the stream with itself: ON a.ts BETWEEN b.ts AND b.ts + INTERVAL 1 MINUTE'
    >>> hint_for(sqlglot.parse_one("sum(n) OVER (PARTITION BY k)"))
    "aggregate in a window, FROM s [RANGE 5 minutes]; over all groups of a window, by a query over the query's name"
    """
    inner = over.this
    name = (inner.name if isinstance(inner, exp.Anonymous) else inner.key).lower()
    if name in RANKS:
        order = over.args.get("order")
        by = order.sql("spark") if isinstance(order, exp.Order) else "ORDER BY value"
        return f"for the first n of each window: {by} LIMIT n, behind GROUP BY"
    if name in NEIGHBOURS:
        return "to meet rows before it, join the stream with itself: ON a.ts BETWEEN b.ts AND b.ts + INTERVAL 1 MINUTE"
    return (
        "aggregate in a window, FROM s [RANGE 5 minutes]; over all groups of a window, by a query over the query's name"
    )
