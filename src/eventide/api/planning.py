"""From what was built in Python to one program: streams, operators and queries, each once.

Law: an operator that was given no name is called after what reads it, as a sub-query in SQL is, and tells its rows at
once: whoever reads them needs no order. What was given a name is the same for all that read it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from eventide.api.query import ContinuousQuery, QueueOptions
from eventide.api.rows import EventRows
from eventide.api.startable import UNNAMED, Startable
from eventide.errors import DeclarationError
from eventide.language.expression_text import unused
from eventide.plan.binding import through
from eventide.plan.declared.join import Join, Lookup
from eventide.plan.declared.program import Operator, Program
from eventide.plan.declared.query import Query
from eventide.plan.declared.rows import queued

if TYPE_CHECKING:
    from eventide.api.nodes import Node
    from eventide.api.stream import EventStream


def planned(asked: Iterable[Startable]) -> tuple[list[EventStream], Program]:
    """The streams that are read, and the program."""
    results = [one for one in asked if isinstance(one, EventRows | ContinuousQuery)]
    placing = ProgramNames(frozenset(map(id, results)))
    if len(placing.results) < len(results):
        raise DeclarationError("a query cannot be started twice in one engine: leave it out, or start it apart")
    for one in results:
        placing.place(one, one.called)
    if not placing.streams:
        raise DeclarationError("there is nothing to start: give at least one query, made by .agg(...) or .select(...)")
    streams = list(placing.streams.values())
    declared = tuple(stream.declared for stream in streams)
    return streams, Program(declared, tuple(placing.queries), tuple(placing.operators))


@dataclass
class ProgramNames:
    """Gives everything its place in a program; what is `results` goes by its own name."""

    results: frozenset[int]
    streams: dict[str, EventStream] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    known: dict[int, str] = field(default_factory=dict)

    def place(self, node: Node, name: str) -> str:
        """Take in a stream, or rows or a query and all below them; the name under which it is read.

        `name` is that of its reader.
        """
        if not isinstance(node, EventRows | ContinuousQuery):
            self._take(node)
            return node.declared.name
        if id(node) in self.known:
            return self.known[id(node)]
        is_own = id(node) in self.results or node.called != UNNAMED
        mine = node.called if is_own else unused(f"{name}_below", self._used)
        self.known[id(node)] = mine
        if isinstance(node, ContinuousQuery):
            self._place_query(node, mine)
        else:
            inputs = [self.place(one, mine) for one in node.inputs]
            self.operators.append(_over(node, mine, inputs, is_own))
        return mine

    def _place_query(self, node: ContinuousQuery, name: str) -> None:
        query = replace(node.declared, name=name, stream=self.place(node.stream, name))
        self.queries.append(self.behind_queue(query, node.queue) if node.queue is not None else query)
        if node.asking is not None:
            self.place(node.asking, name)

    def behind_queue(self, query: Query, wanted: QueueOptions) -> Query:
        """A query that reads its rows from a queue, which is put in before it."""
        name = unused(f"{query.name}_queue", self._used)
        streams = tuple(stream.declared for stream in self.streams.values())
        below = Program(streams, (*self.queries, query), tuple(self.operators))
        queue, query = queued(query, through(below, query), name, wanted.functions, wanted.room, wanted.sideline)
        self.operators.append(queue)
        return query

    @property
    def _used(self) -> list[str]:
        return [*self.streams, *(step.name for step in (*self.operators, *self.queries))]

    def _take(self, stream: EventStream) -> None:
        known = self.streams.setdefault(stream.declared.name, stream)
        if known.given is not stream.given or known.declared != stream.declared:
            raise DeclarationError(
                f"two different streams are both called {stream.declared.name!r}: give each its name, "
                "eventide.stream(..., name='traffic'); queries that share a stream are made of the same one"
            )


def _over(node: EventRows, name: str, inputs: list[str], is_own: bool) -> Operator:
    operator = node.declared
    if isinstance(operator, Join):
        left, right = replace(operator.left, input=inputs[0]), replace(operator.right, input=inputs[-1])
        return replace(operator, name=name, left=left, right=right)
    if isinstance(operator, Lookup):
        rows, versions = replace(operator.rows, input=inputs[0]), replace(operator.versions, input=inputs[-1])
        return replace(operator, name=name, rows=rows, versions=versions)
    return replace(operator, name=name, inputs=tuple(inputs), ordered=operator.ordered and is_own)
