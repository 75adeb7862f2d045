"""Bind a program: check every query and operator, and find the ways by which rows come into each.

Laws. *Ways*: a query has one way in from what it reads, an operator one port for each input. *Through*: a query over a
plain merge reads its inputs themselves, each by a way of its own, so that rows of a stream are reduced where they are
(two-level plan; Gigascope paper, section 2). Only a query that speaks of `window_start` or `window_end` reads the merge
itself, whose rows alone have them. *Running*: an operator runs if someone receives its rows, or reads them.

>>> from eventide.plan.expressions.columns import columns
>>> from eventide.plan.declared.query import named_as
>>> from eventide.plan.declared.window import Window
>>> north = Stream("north", columns("ts BIGINT, speed INT"), time="ts")
>>> south = Stream("south", columns("ts BIGINT, speed INT"), time="ts")
>>> fastest = Query("fastest", "both", Window(60), named_as(most="max(speed)"))
>>> program = Program((north, south), (fastest,), (Rows("both", ("north", "south")),))
>>> through(program, fastest), running(program), running(program, with_results=("both",))
(('north', 'south'), frozenset(), frozenset({'both'}))

*Types.* An engine is asked for the type of an expression only where the declaration does not tell it. The answer is the
engine's. A column alone has its declared type; of a wide stream the engine sees the columns that an expression names,
so that a thousand of them are not looked at a thousand times.

>>> from eventide.plan.declared.stream import columns
>>> stream = Stream("s", columns("t BIGINT, v INT, " + ", ".join(f"c{i} INT" for i in range(100))), time="t")
>>> asked = lambda stream, sql: f"{sql} over {', '.join(column.name for column in stream.columns)}"
>>> declared_first(asked)(stream, "`v`"), declared_first(asked)(stream, "V + 1")
('INT', 'V + 1 over t, v')

*Input managers.* Rows wait before a join in programs in which operators may be held back. A join tells a pair when its
second row comes, whatever the heartbeats; so it can be held back only by keeping rows from it. Where that is wanted,
every input of a join goes through a merge of its own, the *input manager* of the STREAM paper (section 7.2), which lets
rows go in the order of time and as far as the join may go. The pairs are the same.

>>> from eventide.plan.declared.join import Band, Join, Side
>>> from eventide.plan.declared.stream import Stream, columns
>>> a, b = (Stream(name, columns("t BIGINT"), time="t") for name in "ab")
>>> managed = with_input_managers(Program((a, b), operators=(Join("j", Side("a"), Side("b"), (Band("t", "t"),)),)))
>>> [(one.name, one.inputs) for one in managed.operators]
[('j__a', ('a',)), ('j__b', ('b',)), ('j', ('j__a', 'j__b'))]
>>> input_managers(managed)
{'j__a': 'j', 'j__b': 'j'}
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

from eventide.errors import DeclarationError
from eventide.eventtime.scheduling.labels import HeartbeatScope
from eventide.plan.bound.join import BoundJoin, bind_join
from eventide.plan.bound.join_inputs import meeting
from eventide.plan.bound.lookup import BoundLookup, bind_lookup, joining
from eventide.plan.bound.over import bind_over
from eventide.plan.bound.query import BoundQuery, bind, inside_aggregates
from eventide.plan.bound.rows import BoundRows, bind_rows, check_mergeable
from eventide.plan.declared.join import Join, Side
from eventide.plan.declared.over import Over
from eventide.plan.declared.program import Operator, Program, Step, reads
from eventide.plan.declared.query import Query
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Stream
from eventide.plan.expressions.parse import TOO_DEEP
from eventide.plan.sql.stream_rows import check_patterns

ALONE = re.compile(r"`([^`]+)`|([A-Za-z_]\w*)")
WORD = re.compile(r"\w+")
PLAIN = re.compile(r"TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|STRING|BOOLEAN|DATE|TIMESTAMP|TIMESTAMP_NTZ|BINARY")
FEW = 20
"""A stream with so few columns is looked at as it is, and so few types are asked for one by one."""

TypeIn = Callable[[Stream, str], str]


def declared_first(type_of: TypeIn) -> TypeIn:
    """A resolver that asks an engine only for types which no declaration tells."""

    def known(stream: Stream, sql: str) -> str:
        if (alone := ALONE.fullmatch(sql.strip())) is not None:
            name = (alone[1] or alone[2]).lower()
            kind = next((column.type for column in stream.columns if column.name.lower() == name), "")
            if PLAIN.fullmatch(kind):
                return kind
        return type_of(_narrowed(stream, sql), sql)

    return known


def asked_together(types: TypeResolver, query: Query, stream: Stream) -> Callable[[str], str]:
    """Types of expressions of a query: those in its aggregates are asked for in one question, all others one by one.

    A statement for each of hundreds of aggregates takes longer than all else that is done with them.
    """
    one_by_one = partial(declared_first(types.type_of), stream)
    several = [sql for sql in inside_aggregates(query) if ALONE.fullmatch(sql) is None]
    if len(several) < FEW:
        return one_by_one
    try:
        found = dict(zip(several, types.types_of(_narrowed(stream, " ".join(several)), several), strict=True))
    except DeclarationError:
        # Alone, the one that is wrong is named as it was written.
        return one_by_one
    return lambda sql: found.get(sql) or one_by_one(sql)


def _narrowed(stream: Stream, sql: str) -> Stream:
    """The stream with the columns that may be named in an expression, and those it cannot be without."""
    if len(stream.columns) <= FEW or "*" in sql:
        return stream
    roles = (*stream.source, stream.time, stream.arrival, stream.punctuation, stream.prods)
    roles += tuple(name for one in stream.promised for name in one)
    named = {word.lower() for word in (*WORD.findall(sql), *filter(None, roles))}
    odd = [column for column in stream.columns if WORD.fullmatch(column.name) is None]
    kept = tuple(c for c in stream.columns if c.name.lower() in named or c in odd)
    return stream if len(kept) == len(stream.columns) else replace(stream, columns=kept)


SPAN = re.compile(r"\bwindow_(start|end)\b", re.IGNORECASE)

BoundOperator = BoundRows | BoundJoin | BoundLookup


class TypeResolver(Protocol):
    """Finds the types of expressions."""

    def declare(self, stream: Stream) -> None:
        """Make the columns of a stream known."""
        ...

    def type_of(self, stream: Stream, sql: str) -> str:
        """The Spark type of an expression over a declared stream."""
        ...

    def types_of(self, stream: Stream, several: Sequence[str]) -> list[str]:
        """The Spark types of expressions over a declared stream; an error if one of them has none."""
        ...


@dataclass(frozen=True)
class Edge:
    """How the rows of `source`, a stream, query or operator, come into `step`, a query or operator."""

    source: str
    step: str
    bound: BoundQuery

    @property
    def name(self) -> str:
        """The name of what comes this way: that of the query, or of the port."""
        return self.bound.query.name

    @property
    def into_port(self) -> bool:
        """Whether it leads into an operator."""
        return self.bound.operator is not None


@dataclass(frozen=True)
class BoundProgram:
    """The queries and the running operators of a program, bound, and the ways between them."""

    program: Program
    queries: Mapping[str, BoundQuery] = field(default_factory=dict)
    operators: Mapping[str, BoundOperator] = field(default_factory=dict)
    ways: tuple[Edge, ...] = ()

    @classmethod
    def of(cls, program: Program, types: TypeResolver, with_results: Collection[str] = ()) -> BoundProgram:
        """Bind a program; `with_results` are the names of operators whose rows have a sink."""
        for stream in program.streams:
            types.declare(stream)
        whole = cls(program)
        run = running(program, with_results)
        for step in program.steps:
            if isinstance(step, Query) or step.name in run:
                whole = whole.with_step(step, types)
        return whole

    def with_step(self, step: Step, types: TypeResolver) -> BoundProgram:
        """A copy with one more query or operator of the program bound, after all that it reads."""
        try:
            return self._with_query(step, types) if isinstance(step, Query) else self._with_operator(step, types)
        except RecursionError as error:
            raise DeclarationError(f"{step.name!r} has an expression that is nested too deeply: {TOO_DEEP}") from error

    def with_query(self, query: Query, types: TypeResolver) -> BoundProgram:
        """A copy of the program with one query more."""
        added = replace(self, program=self.program.with_query(query))
        for read in through(added.program, query):
            if self.program.operator(read) is not None:
                raise DeclarationError(
                    f"query {query.name!r} cannot be added over {read!r} while it runs: it may have emitted rows "
                    "already that belong to a window with later ones; declare the query from the beginning"
                )
        return added._with_query(added.program.query(query.name), types)

    def without_query(self, name: str) -> BoundProgram:
        """A copy of the program without a query."""
        program = self.program.without_query(name)
        queries = {other: bound for other, bound in self.queries.items() if other != name}
        return replace(self, program=program, queries=queries, ways=tuple(w for w in self.ways if w.step != name))

    def rows_of(self, name: str) -> Stream:
        """The stream of that name, or the rows of the query or operator of that name as a stream."""
        if name in self.queries:
            return self.queries[name].results
        if name in self.operators:
            return self.operators[name].results
        return self.program.stream(name)

    def ways_from(self, source: str) -> tuple[Edge, ...]:
        """The ways by which the rows of a stream, query or operator go."""
        return tuple(way for way in self.ways if way.source == source)

    def ways_from_all(self, streams: Iterable[Stream]) -> tuple[Edge, ...]:
        """The ways by which the rows of several streams go, of twins for example."""
        return tuple(way for stream in streams for way in self.ways_from(stream.name))

    def ways_into(self, step: str) -> tuple[Edge, ...]:
        """The ways by which rows come into a query or operator."""
        return tuple(way for way in self.ways if way.step == step)

    def judged_by(self, way: Edge) -> tuple[str, ...]:
        """The streams and operators whose least heartbeat makes a row late that comes this way.

        A merge is as slow as its slowest input; rows of a join may lack partners that were freed as their own input
        went on.
        """
        if way.into_port and not isinstance(self.operators[way.step], BoundRows):
            return (way.source,)
        return tuple(other.source for other in self.ways_into(way.step))

    def _with_query(self, query: Query, types: TypeResolver) -> BoundProgram:
        sources = through(self.program, query)
        inputs = self._declared(sources, types)
        if len(inputs) > 1:
            check_mergeable(query.stream, inputs)
        # The same query over each input: what slices keep is the same, how it is reduced may not be.
        bounds = [bind(query, stream, asked_together(types, query, stream)) for stream in inputs]
        check_patterns(self.program, bounds[0])
        ways = (Edge(source, query.name, bound) for source, bound in zip(sources, bounds, strict=True))
        return replace(self, queries={**self.queries, query.name: bounds[0]}, ways=(*self.ways, *ways))

    def _with_operator(self, operator: Operator, types: TypeResolver) -> BoundProgram:
        inputs = self._declared(operator.inputs, types)
        bound: BoundOperator
        type_of = declared_first(types.type_of)
        if isinstance(operator, Over):
            bound = bind_over(operator, inputs[0], type_of)
        elif isinstance(operator, Rows):
            bound = bind_rows(operator, inputs, type_of)
        else:
            left, right = inputs[0], inputs[-1]
            join = operator if isinstance(operator, Join) else joining(operator, left, right)
            types.declare(meeting(join, left, right))
            if isinstance(operator, Join):
                bound = bind_join(operator, left, right, type_of)
            else:
                bound = bind_lookup(operator, left, right, type_of)
        ways = (Edge(port.stream.name, operator.name, port) for port in bound.ports)
        return replace(self, operators={**self.operators, operator.name: bound}, ways=(*self.ways, *ways))

    def _declared(self, names: Iterable[str], types: TypeResolver) -> tuple[Stream, ...]:
        streams = tuple(self.rows_of(name) for name in names)
        for stream in streams:
            if stream not in self.program.streams:
                types.declare(stream)
        return streams


def through(program: Program, query: Query) -> tuple[str, ...]:
    """The streams, queries and operators whose rows a query takes itself, where it reads a plain merge through."""
    found = () if _speaks_of_span(query) else _inputs(program, query.stream)
    # A row that comes by two ways counts twice, which only the merge itself can tell.
    return found if found and len(set(found)) == len(found) else (query.stream,)


def running(program: Program, with_results: Collection[str] = ()) -> frozenset[str]:
    """The operators that run: all but plain merges of which no row is emitted, or read by another way than through."""
    found: set[str] = set()
    wanted = set(with_results)
    for step in reversed(program.steps):
        if isinstance(step, Query):
            wanted.update(through(program, step))
        elif step.name in wanted or not _passes_through(step):
            found.add(step.name)
            wanted.update(reads(step))
    return frozenset(found)


def _inputs(program: Program, name: str) -> tuple[str, ...]:
    operator = program.operator(name)
    if operator is None or not _passes_through(operator):
        return (name,)
    return tuple(leaf for read in operator.inputs for leaf in _inputs(program, read))


def _passes_through(step: Step) -> bool:
    return isinstance(step, Rows) and step.passes_through


def _speaks_of_span(query: Query) -> bool:
    named = [item.sql for item in (*query.groups, *query.select)] + [one.sql for one in query.order]
    return any(SPAN.search(text) for text in (*named, query.where or "", query.having or ""))


def as_run(program: Program, heartbeats: HeartbeatScope) -> Program:
    """The program that an engine runs: with input managers, unless every operator goes by its own inputs."""
    return program if heartbeats is HeartbeatScope.OPERATOR else with_input_managers(program)


def with_input_managers(program: Program) -> Program:
    """A copy of the program with input managers, which hold rows back before its joins."""
    operators: list[Operator] = []
    for operator in program.operators:
        if isinstance(operator, Join):
            sides = operator.left, operator.right
            operators += (Rows(_name(operator, side), (side.input,)) for side in sides)
            left, right = (replace(side, input=_name(operator, side)) for side in sides)
            operator = replace(operator, left=left, right=right)
        operators.append(operator)
    return replace(program, operators=tuple(operators))


def input_managers(program: Program) -> dict[str, str]:
    """The join that each input manager is for, by the name of the input manager."""
    joins = [operator for operator in program.operators if isinstance(operator, Join)]
    sides = ((join, side) for join in joins for side in (join.left, join.right))
    return {side.input: join.name for join, side in sides if side.input == _name(join, side)}


def _name(join: Join, side: Side) -> str:
    return f"{join.name}__{side.alias}"
