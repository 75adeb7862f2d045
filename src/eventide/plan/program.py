"""A program: the streams and the queries that run together, in one engine, round by round.

Law: a query reads a stream or another query; none reads itself, however long the way. So there is an order in which
every query comes after what it reads, and a round goes through the queries in that order.

>>> from eventide.plan.stream import Stream, columns
>>> from eventide.plan.query import Query, named_as
>>> from eventide.plan.window import Window
>>> s = Stream("s", columns("t BIGINT, v INT"), time="t")
>>> q = Query("q", "s", Window(10), named_as(total="sum(v)"))
>>> Program((s,), (q,)).of_stream("s")[0].name
'q'
>>> above = Query("above", "q", Window(60), named_as(most="max(total)"))
>>> [query.name for query in Program((s,), (above, q)).in_order]
['q', 'above']
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from functools import cached_property

from eventide.errors import DeclarationError
from eventide.plan.by_source import why_not
from eventide.plan.query import Query
from eventide.plan.stream import Stream
from eventide.plan.window import SameWindow

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Program:
    """Streams and the queries over them; names are unique, whatever their capital letters."""

    streams: tuple[Stream, ...]
    queries: tuple[Query, ...] = ()

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for what, names in (("stream", [s.name for s in self.streams]), ("query", [q.name for q in self.queries])):
            for name in names:
                if not NAME.fullmatch(name):
                    raise DeclarationError(
                        f"{name!r} cannot name a {what}: use letters, digits and underscores, a letter first"
                    )
                if name.lower() in seen:
                    raise DeclarationError(f"there are two of name {name!r} among the declarations: rename one")
                seen.add(name.lower())
        for query in self.queries:
            below = self.below(query)
            if below is None:
                self._check_over_stream(query)
            else:
                _check_over_query(query, below)
            if query.by_source and (reason := self.not_by_source(query)) is not None:
                raise DeclarationError(f"query {query.name!r} cannot close by source: {reason}")
        _ = self.in_order

    def _check_over_stream(self, query: Query) -> None:
        if all(stream.name != query.stream for stream in self.streams):
            known = ", ".join([stream.name for stream in self.streams] + [q.name for q in self.queries if q != query])
            raise DeclarationError(
                f"query {query.name!r} reads {query.stream!r}, which is neither a stream nor a query; "
                f"declared: {known or 'none'}"
            )
        if isinstance(query.window, SameWindow):
            raise DeclarationError(
                f"query {query.name!r} reads the stream {query.stream!r}, which has no windows: give it a window of "
                "its own"
            )

    def not_by_source(self, query: Query) -> str | None:
        """What keeps a query from closing source by source; None where nothing does."""
        return why_not(query, next((stream for stream in self.streams if stream.name == query.stream), None))

    def below(self, query: Query) -> Query | None:
        """The query that a query reads; None where it reads a stream."""
        return next((other for other in self.queries if other.name == query.stream), None)

    @cached_property
    def in_order(self) -> tuple[Query, ...]:
        """The queries, each after the one it reads, otherwise as declared."""
        order: dict[str, Query] = {}
        for query in self.queries:
            way = [query]
            while (below := self.below(way[-1])) is not None and below.name not in order:
                if below in way:
                    circle = " reads ".join(repr(one.name) for one in (*way[way.index(below) :], below))
                    raise DeclarationError(
                        f"{circle}: a query cannot read its own results; let one of them read a stream"
                    )
                way.append(below)
            order.update((one.name, one) for one in reversed(way) if one.name not in order)
        return tuple(order.values())

    def stream(self, name: str, because: str = "there is no") -> Stream:
        """The stream of that name, or an error that says which there are."""
        for stream in self.streams:
            if stream.name == name:
                return stream
        known = ", ".join(stream.name for stream in self.streams) or "none"
        raise DeclarationError(f"{because} stream {name!r}, which is not declared; declared: {known}")

    def query(self, name: str) -> Query:
        """The query of that name, or an error that says which there are."""
        for query in self.queries:
            if query.name == name:
                return query
        known = ", ".join(query.name for query in self.queries) or "none"
        raise DeclarationError(f"there is no query {name!r}; there are: {known}")

    def of_stream(self, name: str) -> tuple[Query, ...]:
        """The queries that read a stream, or the query of that name."""
        return tuple(query for query in self.queries if query.stream == name)

    def with_query(self, query: Query) -> Program:
        """The same, and one query more."""
        return replace(self, queries=(*self.queries, query))

    def without_query(self, name: str) -> Program:
        """The same, without that query; refused while another reads it."""
        gone = self.query(name)
        if above := self.of_stream(name):
            names = ", ".join(query.name for query in above)
            raise DeclarationError(f"query {name!r} cannot go: {names} would have nothing to read; remove that first")
        return replace(self, queries=tuple(query for query in self.queries if query is not gone))


def _check_over_query(query: Query, below: Query) -> None:
    if below.retain:
        raise DeclarationError(
            f"query {below.name!r} revises its windows, and query {query.name!r} reads it: what was read cannot be "
            "taken back. Drop its `retain`; or declare it twice, once with `retain` and once to be read"
        )
    if query.retain:
        raise DeclarationError(
            f"query {query.name!r} reads query {below.name!r}, whose results are never late, so it has nothing to "
            "revise: drop its `retain`"
        )
