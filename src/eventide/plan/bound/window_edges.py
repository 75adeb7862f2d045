"""The edges of its own window in what a query selects: `window_start` and `window_end`, outside of aggregates.

Law: there they are the start and the end of the window of the result, in whatever expression; a value that is nothing
else carries time, as the columns of that name do. In an aggregate, and as a group, they are columns of what is read.

>>> from eventide.plan.declared.stream import TimeKind
>>> with_edges("window_end - INTERVAL '1' SECOND", (), TimeKind.TIMESTAMP)
"TIMESTAMP_MICROS(__end) - INTERVAL '1' SECOND"
>>> with_edges("max(window_start) + window_start", (), TimeKind.SEQUENCE)
'MAX(window_start) + __start'
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.plan.declared.query import Named, Query
from eventide.plan.declared.stream import WINDOW_END, WINDOW_START, Stream, TimeKind
from eventide.plan.declared.window import RowWindow, SessionWindow, Window
from eventide.plan.expressions.columns import Column
from eventide.plan.expressions.parse import outside_aggregates, parsed
from eventide.plan.expressions.spark_dialect import SPARK

IN_RESULTS = {WINDOW_START: "__start", WINDOW_END: "__end"}
"""The names that they have where results are computed, as whole numbers."""

EDGES = tuple(Column(name, "BIGINT") for name in IN_RESULTS.values())


def with_edges(sql: str, groups: Collection[str], kind: TimeKind) -> str:
    """The expression with the edges of the window in the place of their names; `groups` are names in small letters."""
    if WINDOW_START not in sql.lower() and WINDOW_END not in sql.lower():
        return sql
    whole = exp.Paren(this=parsed(sql, "a selected expression"))
    for column in outside_aggregates(whole):
        name = column.name.lower()
        if name in IN_RESULTS and name not in groups and len(column.parts) == 1:
            edge: exp.Expr = exp.column(IN_RESULTS[name])
            column.replace(
                edge if kind is TimeKind.SEQUENCE else exp.Anonymous(this="TIMESTAMP_MICROS", expressions=[edge])
            )
    return str(whole.this.sql(SPARK))


def edges_of(query: Query) -> dict[str, str]:
    """The values that are an edge of the window and nothing else, and which one.

    The start of a session is none of them: until it is over a late row may begin it anew.
    """
    known = {WINDOW_END} if isinstance(query.window, SessionWindow) else {WINDOW_START, WINDOW_END}
    found = {item.name: item.sql.strip().strip("`").lower() for item in query.select}
    groups = {group.name.lower() for group in query.groups}
    return {name: edge for name, edge in found.items() if edge in known - groups}


def items_with_edges(items: Sequence[Named], query: Query, stream: Stream) -> list[Named]:
    """What a query selects, with the edges of its windows in the place of their names."""
    kind = TimeKind.SEQUENCE if isinstance(query.window, RowWindow) else stream.time_kind
    groups = {group.name.lower() for group in query.groups}
    found = [Named(item.name, with_edges(item.sql, groups, kind)) for item in items]
    empty = isinstance(query.window, Window) and query.window.empty
    if empty and any(name in item.sql for item in found for name in IN_RESULTS.values()):
        raise DeclarationError(
            f"query {query.name!r} cannot compute with the edges of windows that have no rows: they are in every "
            "result as they are; compute with them in a query that reads this one"
        )
    return found
