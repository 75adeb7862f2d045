"""Queries that call an expensive function: a queue before them, and what SIDELINE says of it.

Law: a query with windows of its own that calls a function declared EXPENSIVE, in a value, a group or a condition, reads
its rows from a queue; one over the few results of another query does not. SIDELINE means nothing without a queue.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from eventide.errors import DeclarationError
from eventide.language.amounts import Amounts
from eventide.language.nodes import Clause
from eventide.language.source_text import SourceText
from eventide.plan.declared.query import Query
from eventide.plan.declared.queue import Queue, Sideline, calls, check_sideline
from eventide.plan.declared.window import SameWindow


def needs_queue(query: Query, expensive: Collection[str]) -> bool:
    """Whether each of its rows goes through an expensive function.

    >>> from eventide.plan.declared.query import named_as
    >>> from eventide.plan.declared.window import Window
    >>> needs_queue(Query("q", "s", Window(10), named_as(n="count(*)"), where="foundIn(word, 'x')"), ["foundin"])
    True
    """
    if not expensive or isinstance(query.window, SameWindow):
        return False
    texts = (query.where, *(item.sql for item in (*query.select, *query.groups)))
    return any(calls(text, expensive) for text in texts)


def with_sideline(queue: Queue | None, query: Query, written: Sequence[Clause], source: SourceText) -> Queue:
    """The queue of a query as the clauses behind its SELECT say; they are about the clock, so lengths are of time."""
    if queue is None:
        raise source.error(
            f"SIDELINE is for rows that wait before an expensive function, and query {query.name!r} calls none",
            written[0],
            "leave it out, or declare the function it calls EXPENSIVE",
        )
    clauses = {str(clause.this): clause for clause in written}
    amounts = Amounts(source)
    one_in, within = clauses.get("SIDELINE ONE IN"), clauses.get("SIDELINE WITHIN")
    try:
        sideline = Sideline(
            None if one_in is None else amounts.count(one_in.expressions[0], "SIDELINE ONE IN", ("row", "rows")),
            None if within is None else amounts.length(within.expressions[0], "SIDELINE WITHIN"),
        )
        check_sideline(query)
        return replace(queue, sideline=sideline)
    except DeclarationError as error:
        if type(error) is not DeclarationError:
            raise
        raise source.error(str(error), written[0]) from error
