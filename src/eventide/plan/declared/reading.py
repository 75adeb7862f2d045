"""What a query may read, and who may read it: where results would be missing, or told twice, reading is refused.

Law: who reads a query sees its final results, each once.

>>> from eventide.plan.declared.query import named_as
>>> from eventide.plan.declared.window import LONGEST_GAP
>>> check_read(Query("q", "s", LifeWindow(LONGEST_GAP), named_as(n="count(*)")), "above")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: query 'above' reads 'q', whose state lives for ever, so it has no final results, \
which others read: let its state end (STATE TTL 1 day), or give it a window
"""

from __future__ import annotations

from eventide.errors import DeclarationError
from eventide.plan.declared.query import Query
from eventide.plan.declared.window import LifeWindow, SameWindow, SessionWindow


def check_reading(query: Query, below: Query | None, of_stream: bool) -> None:
    """Refuse a query that cannot read what it reads: a query `below`, a stream, or rows of an operator."""
    if query.prods is not None and query.prods.discarding and not of_stream:
        raise DeclarationError(
            f"query {query.name!r} reads {query.stream!r}, whose rows are told early more than once: DISCARDING is for "
            "queries that read a stream themselves"
        )
    if below is None:
        if isinstance(query.window, SameWindow):
            raise DeclarationError(
                f"query {query.name!r} reads {query.stream!r}, which has no windows: give it a window of its own"
            )
        return
    check_read(below, query.name)
    if query.retain:
        raise DeclarationError(
            f"query {query.name!r} reads query {below.name!r}, whose results are never late, so it has nothing to "
            "revise: drop its `retain`"
        )
    if isinstance(query.window, SameWindow) and isinstance(below.window, SessionWindow):
        raise DeclarationError(
            f"query {query.name!r} has the windows of {below.name!r}, and no two {below.window.noun}s are the same "
            "window: give it one of its own, [RANGE 1 hour]"
        )


def check_read(below: Query, reader: str) -> None:
    """Refuse that a query is read whose results are taken back, or never final."""
    if below.retain:
        raise DeclarationError(
            f"query {below.name!r} revises its windows, and query {reader!r} reads it: what was read cannot be "
            "taken back. Drop its `retain`; or declare it twice, once with `retain` and once to be read"
        )
    if isinstance(below.window, LifeWindow) and below.window.endless:
        raise DeclarationError(
            f"query {reader!r} reads {below.name!r}, whose state lives for ever, so it has no final results, which "
            "others read: let its state end (STATE TTL 1 day), or give it a window"
        )
