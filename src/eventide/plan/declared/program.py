"""A program: the streams, the queries and the operators that run together, in one engine, round by round.

Laws. A query reads a stream, another query or an operator, an operator reads one or more of them; none reads itself,
however long the way. So there is an order in which every one comes after what it reads, and a round goes through them
in that order. *Prods among rows*: a query that reads a stream with prods among its rows, directly or through other
queries and operators, is asked by them; it is a query that declares prods, whatever else it declares, and its results
have the columns of early answers. What may close source by source takes a whole program to say, too (`why_not`).

>>> from eventide.plan.declared.stream import Stream, columns
>>> from eventide.plan.declared.query import Query, named_as
>>> from eventide.plan.declared.window import Window
>>> s = Stream("s", columns("t BIGINT, v INT"), time="t")
>>> q = Query("q", "s", Window(10), named_as(total="sum(v)"))
>>> Program((s,), (q,)).of_stream("s")[0].name
'q'
>>> above = Query("above", "q", Window(60), named_as(most="max(total)"))
>>> [query.name for query in Program((s,), (above, q)).in_order]
['q', 'above']
>>> from eventide.plan.declared.rows import Rows
>>> both = Program((s, replace(s, name="s2")), (replace(q, stream="all"),), (Rows("all", ("s", "s2")),))
>>> [step.name for step in both.steps], [step.name for step in both.readers("s2")]
(['all', 'q'], ['all'])

>>> from eventide.plan.expressions.columns import columns
>>> from eventide.plan.declared.program import Program
>>> from eventide.plan.declared.query import named_as
>>> from eventide.plan.declared.stream import Stream
>>> from eventide.plan.declared.window import Window
>>> s = Stream("s", columns("t BIGINT, v INT, ask BOOLEAN"), time="t", prods="ask")
>>> sums, most = (Query(name, reads, Window(10), named_as(n="count(*)")) for name, reads in (("q", "s"), ("up", "q")))
>>> [query.prods.in_stream for query in Program((s,), (sums, most)).queries]
[True, True]

>>> from eventide.plan.declared.query import Query, named_as
>>> from eventide.plan.declared.stream import Stream, columns
>>> from eventide.plan.declared.window import Window
>>> s = Stream("s", columns("t BIGINT, who STRING, v INT"), time="t", source=("who",))
>>> why_not(Query("q", "s", Window(10), named_as(n="count(*)"), named_as("who")), s) is None
True
>>> why_not(Query("q", "s", Window(10), named_as(n="count(*)")), s)
'its groups do not tell the source: group by who, as a plain column'
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NoReturn

from eventide.errors import DeclarationError
from eventide.eventtime.policies.skew.declared import names_of_bounds
from eventide.plan.declared.join import Join, Lookup
from eventide.plan.declared.query import Prods, Query
from eventide.plan.declared.reading import check_read, check_reading
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Stream, TimeKind, Timestamps
from eventide.plan.declared.window import RowWindow, SameWindow, SessionWindow, Window
from eventide.plan.expressions.columns import WHOLE_NUMBERS, literal, nearest_of, quoted

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

Operator = Rows | Join | Lookup
"""Gives rows, not windows: a merge, a projection, a join, a lookup in a table."""

Step = Query | Operator
"""Whatever a round goes through after the streams."""


@dataclass(frozen=True)
class Program:
    """Streams, and the queries and operators over them; names are unique, whatever their capital letters."""

    streams: tuple[Stream, ...]
    queries: tuple[Query, ...] = ()
    operators: tuple[Operator, ...] = ()

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for what, declared in (("stream", self.streams), ("query", self.queries), ("query", self.operators)):
            for name in (one.name for one in declared):
                if not NAME.fullmatch(name):
                    raise DeclarationError(
                        f"{name!r} cannot name a {what}: use letters, digits and underscores, a letter first"
                    )
                if name.lower() in seen:
                    raise DeclarationError(f"there are two of name {name!r} among the declarations: rename one")
                seen.add(name.lower())
        for stream in self.streams:
            if stream.rows_of not in self._streams_by_name:
                raise DeclarationError(f"{stream.name!r} is a twin of {stream.twin_of!r}, which is not declared")
        names = {one.name for one in (*self.streams, *self.queries, *self.operators)}
        for step in (*self.queries, *self.operators):
            for read in reads(step):
                if read not in names:
                    self._refuse_unknown(step, read)
        for query in self.queries:
            check_reading(query, self.below(query), query.stream in self._streams_by_name)
            if query.by_source and (reason := self.not_by_source(query)) is not None:
                raise DeclarationError(f"query {query.name!r} cannot close by source: {reason}")
        for operator in self.operators:
            for read in operator.inputs:
                if (below := self._queries_by_name.get(read)) is not None:
                    check_read(below, operator.name)
        object.__setattr__(self, "queries", with_prods_of_streams(self))
        # Prods may have made other queries of them.
        self.__dict__.pop("_queries_by_name", None)
        _ = self.steps

    def _refuse_unknown(self, step: Step, read: str) -> NoReturn:
        others = [one.name for one in (*self.streams, *self.queries, *self.operators) if one is not step]
        raise DeclarationError(
            f"query {step.name!r} reads {read!r}, which is neither a stream nor a query; "
            f"declared: {', '.join(others) or 'none'}"
        )

    @cached_property
    def _streams_by_name(self) -> dict[str, Stream]:
        return {stream.name: stream for stream in self.streams}

    @property
    def inputs(self) -> tuple[Stream, ...]:
        """The streams that rows are read for: a twin has those of another."""
        return tuple(stream for stream in self.streams if stream.twin_of is None)

    @cached_property
    def reduced_together(self) -> tuple[tuple[Stream, ...], ...]:
        """The streams whose rows one statement reduces: with the same rows and time, and bounds of the same sources.

        The first of them is a twin only where the stream itself goes by another time, or has bounds of other sources.
        """
        found: dict[tuple[object, ...], list[Stream]] = {}
        for stream in sorted(self.streams, key=lambda one: one.twin_of is not None):
            bounded = stream.known if names_of_bounds(stream.policy) is not None else ()
            found.setdefault((stream.rows_of, stream.time, bounded), []).append(stream)
        return tuple(map(tuple, found.values()))

    @cached_property
    def _queries_by_name(self) -> dict[str, Query]:
        return {query.name: query for query in self.queries}

    @cached_property
    def _operators_by_name(self) -> dict[str, Operator]:
        return {operator.name: operator for operator in self.operators}

    def not_by_source(self, query: Query) -> str | None:
        """What keeps a query from closing source by source; None where nothing does."""
        return why_not(query, self._streams_by_name.get(query.stream))

    def below(self, query: Query) -> Query | None:
        """The query that a query reads; None where it reads a stream or an operator."""
        return self._queries_by_name.get(query.stream)

    def windows_of(self, query: Query) -> Window:
        """The windows of a query as they are shown: over time, or over the numbers of rows."""
        if isinstance(query.window, SameWindow):
            below = self.below(query)
            assert below is not None
            return self.windows_of(below)
        if isinstance(query.window, SessionWindow):
            return query.window.over_instants
        return query.window.over_numbers if isinstance(query.window, RowWindow) else query.window

    def times_of(self, name: str) -> TimeKind:
        """What the times of a stream, of the results of a query, or of the rows of an operator are."""
        operator, query = self.operator(name), self._queries_by_name.get(name)
        if operator is None and query is None:
            return self.stream(name).time_kind
        if query is not None and isinstance(query.window, RowWindow):
            return TimeKind.SEQUENCE
        read = operator.inputs[0] if operator is not None else query.stream if query is not None else name
        return TimeKind.SEQUENCE if self.times_of(read) is TimeKind.SEQUENCE else TimeKind.TIMESTAMP

    def operator(self, name: str) -> Operator | None:
        """The operator of that name; None where that is a stream or a query."""
        return self._operators_by_name.get(name)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """The queries and operators, each after all that it reads, otherwise as declared."""
        known = {step.name: step for step in (*self.operators, *self.queries)}
        order: dict[str, Step] = {}

        def visit(step: Step, way: tuple[Step, ...]) -> None:
            if step in way:
                circle = " reads ".join(repr(one.name) for one in (*way[way.index(step) :], step))
                raise DeclarationError(f"{circle}: a query cannot read its own results; let one of them read a stream")
            for read in reads(step):
                if read in known and read not in order:
                    visit(known[read], (*way, step))
            order.setdefault(step.name, step)

        for step in (*self.queries, *self.operators):
            visit(step, ())
        return tuple(order.values())

    @property
    def in_order(self) -> tuple[Query, ...]:
        """The queries alone, each after the one it reads."""
        return tuple(step for step in self.steps if isinstance(step, Query))

    def readers(self, name: str) -> tuple[Step, ...]:
        """The queries and operators that read the stream, query or operator of that name."""
        return tuple(step for step in self.steps if name in reads(step))

    def stream(self, name: str, because: str = "there is no") -> Stream:
        """The stream of that name, or an error that says which there are."""
        if (stream := self._streams_by_name.get(name)) is not None:
            return stream
        known = ", ".join(stream.name for stream in self.streams) or "none"
        raise DeclarationError(f"{because} stream {name!r}, which is not declared; declared: {known}")

    def query(self, name: str) -> Query:
        """The query of that name, or an error that says which there are."""
        if (query := self._queries_by_name.get(name)) is not None:
            return query
        known = ", ".join(query.name for query in self.queries) or "none"
        raise DeclarationError(f"there is no query {name!r}; there are: {known}")

    def of_stream(self, name: str) -> tuple[Query, ...]:
        """The queries that read a stream, or the query of that name."""
        return tuple(query for query in self.queries if query.stream == name)

    def with_query(self, query: Query) -> Program:
        """A copy of the program with one query more."""
        return replace(self, queries=(*self.queries, query))

    def without_query(self, name: str) -> Program:
        """A copy without that query; refused while another reads it."""
        if self.operator(name) is not None:
            raise DeclarationError(
                f"{name!r} merges or joins, and stays as long as the engine runs: remove what reads it"
            )
        gone = self.query(name)
        if above := self.readers(name):
            names = ", ".join(query.name for query in above)
            raise DeclarationError(f"query {name!r} cannot go: {names} would have nothing to read; remove that first")
        return replace(self, queries=tuple(query for query in self.queries if query is not gone))


def reads(step: Step) -> tuple[str, ...]:
    """What a query or operator reads.

    >>> reads(Rows("all", ("north", "south")))
    ('north', 'south')
    """
    return (step.stream,) if isinstance(step, Query) else step.inputs


def streams_below(program: Program, name: str) -> frozenset[str]:
    """The names of the streams that a query or operator reads in the end."""
    return _below(name, {step.name: step for step in (*program.queries, *program.operators)})


def _below(name: str, known: Mapping[str, Query | Operator]) -> frozenset[str]:
    seen, waiting = set[str](), [name]
    while waiting:
        seen.add(one := waiting.pop())
        step = known.get(one)
        reads = () if step is None else (step.stream,) if isinstance(step, Query) else step.inputs
        waiting += [read for read in reads if read not in seen]
    return frozenset(seen - known.keys())


def with_prods_of_streams(program: Program) -> tuple[Query, ...]:
    """The queries of a program, each asked by the prods among the rows that it reads."""
    prodded = {stream.name for stream in program.streams if stream.prods is not None}
    found = []
    known = {step.name: step for step in (*program.queries, *program.operators)}
    for query in program.queries:
        below = _below(query.name, known)
        in_stream = bool(below & prodded)
        if query.prods is None:
            # Values that are shown as they change need not be asked for.
            asked = in_stream and not query.changes
            found.append(replace(query, prods=Prods(in_stream=True)) if asked else query)
            continue
        if query.prods.by is not None:
            _check_by(program, query.name, query.prods.by, below)
        if query.prods.in_stream and not in_stream:
            raise DeclarationError(
                f"query {query.name!r} has early answers without a prod: say when (EVERY, AT, WITHIN), or by which rows"
            )
        found.append(query if query.prods.in_stream == in_stream else _asked_by_rows(query, query.prods))
    return tuple(found)


def _asked_by_rows(query: Query, prods: Prods) -> Query:
    return replace(query, prods=replace(prods, in_stream=True))


def _check_by(program: Program, name: str, by: str, below: frozenset[str]) -> None:
    """Refuse a stream of prods that is not there, or whose times are no times of the query."""
    streams = {stream.name: stream for stream in program.streams}
    if by not in streams:
        raise DeclarationError(f"query {name!r} is prodded by {by!r}, which is no stream: {nearest_of(by, streams)}")
    kinds = {streams[one].time_kind is TimeKind.SEQUENCE for one in below if one in streams}
    if kinds and (streams[by].time_kind is TimeKind.SEQUENCE) not in kinds:
        numbers = "numbers" if streams[by].time_kind is TimeKind.SEQUENCE else "times of a clock"
        others = "times of a clock" if numbers == "numbers" else "numbers"
        raise DeclarationError(
            f"query {name!r} cannot be prodded by {by!r}: its times are {numbers}, those of the query {others}"
        )


MOST_NAMED = 1000
"""So many values are written into a statement at most."""


def why_not(query: Query, stream: Stream | None) -> str | None:
    """What keeps a query from closing by source, and the way out; None where nothing does. `stream`: what it reads."""
    if stream is None:
        return f"it reads the query {query.stream!r}, and results have no source: let it read a stream"
    if stream.timestamps is not Timestamps.EXTERNAL:
        return f"rows of stream {stream.name!r} are stamped by the clock, so no source is ahead of another"
    if not stream.source:
        return f"stream {stream.name!r} is one source: name the columns that tell its sources (SOURCE BY)"
    if isinstance(query.window, SessionWindow):
        return f"{query.window.noun}s close with all sources together: give it windows of a fixed length"
    if not isinstance(query.window, Window):
        return "rows of all sources are counted together: give it windows of time"
    if query.window.empty:
        return "a window without rows belongs to no source: do not ask for empty windows"
    if query.retain:
        return "windows that close source by source cannot be revised: drop RETAIN"
    if query.order or query.limit is not None:
        return "ORDER BY and LIMIT need all results of a window together: drop them"
    if missing := [name for name in stream.source if place_of(name, query) is None]:
        return f"its groups do not tell the source: group by {', '.join(missing)}, as a plain column"
    return None


def place_of(column: str, query: Query) -> int | None:
    """Which group is this column itself, counted from 0; None where none is."""
    same = (column.lower(), quoted(column).lower())
    return next((place for place, group in enumerate(query.groups) if group.sql.strip().lower() in same), None)


def among(stream: Stream, values: Sequence[Sequence[object]]) -> str | None:
    """A condition that holds for the rows of some sources, and perhaps of others; None where it is not worth saying.

    `values` are those sources have in each column that names one.

    >>> from eventide.plan.expressions.columns import Column
    >>> s = Stream("s", (Column("t", "BIGINT"), Column("who", "STRING")), time="t", source=("who",))
    >>> among(s, [["a", "b", None]])
    "(`who` IN ('a', 'b') OR `who` IS NULL)"
    """
    conditions = [
        _is_one_of(name, stream.column(name).type, of) for name, of in zip(stream.source, values, strict=True)
    ]
    return " AND ".join(condition for condition in conditions if condition is not None) or None


def _is_one_of(name: str, kind: str, values: Sequence[object]) -> str | None:
    if len(values) > MOST_NAMED or kind not in ("STRING", *WHOLE_NUMBERS):
        return None
    literals = [literal(value) if isinstance(value, str) else str(value) for value in values if value is not None]
    parts = [f"{quoted(name)} IN ({', '.join(literals)})"] if literals else []
    parts += [f"{quoted(name)} IS NULL"] if None in values else []
    return f"({' OR '.join(parts)})"
