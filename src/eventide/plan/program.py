"""A program: the streams and the queries that run together, in one engine, round by round.

>>> from eventide.plan.stream import Stream, columns
>>> from eventide.plan.query import Query, named_as
>>> from eventide.plan.window import Window
>>> s = Stream("s", columns("t BIGINT, v INT"), time="t")
>>> q = Query("q", "s", Window(10), named_as(total="sum(v)"))
>>> Program((s,), (q,)).of_stream("s")[0].name
'q'
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from eventide.errors import DeclarationError
from eventide.plan.query import Query
from eventide.plan.stream import Stream

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Program:
    """Streams and the queries over them; names are unique, whatever their capital letters."""

    streams: tuple[Stream, ...]
    queries: tuple[Query, ...] = ()

    def __post_init__(self) -> None:
        for what, names in (("stream", [s.name for s in self.streams]), ("query", [q.name for q in self.queries])):
            seen: set[str] = set()
            for name in names:
                if not NAME.fullmatch(name):
                    raise DeclarationError(
                        f"{name!r} cannot name a {what}: use letters, digits and underscores, a letter first"
                    )
                if name.lower() in seen:
                    raise DeclarationError(f"there are two of name {name!r} among the {what} declarations: rename one")
                seen.add(name.lower())
        for query in self.queries:
            self.stream(query.stream, f"query {query.name!r} reads")

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
        """The queries that read a stream."""
        return tuple(query for query in self.queries if query.stream == name)

    def with_query(self, query: Query) -> Program:
        """The same, and one query more."""
        return replace(self, queries=(*self.queries, query))

    def without_query(self, name: str) -> Program:
        """The same, without that query."""
        gone = self.query(name)
        return replace(self, queries=tuple(query for query in self.queries if query is not gone))
