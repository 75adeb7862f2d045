"""The queries and operators of a program bound without an engine: types are asked of the local backend, without a JVM.

Law: every query and operator is bound or has a reason why not. The reason may be that only Spark knows (`only_spark`):
a function that the local backend does not have, or a query below of which that is true.

>>> from eventide.plan.declared.query import Query, named_as
>>> from eventide.plan.declared.stream import Stream, columns
>>> from eventide.plan.declared.window import Window
>>> s = Stream("s", columns("t BIGINT, v INT"), time="t")
>>> queries = (Query("q", "s", Window(10), named_as(n="sum(v)")), Query("r", "s", Window(10), named_as(n="sum(f(v))")))
>>> found = bound_steps(Program((s,), queries))
>>> found.queries["q"].types, found.unbound["r"].only_spark
(('BIGINT',), True)
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from eventide.commands.functions import local_backend
from eventide.engine.local.backend import LocalBackend
from eventide.errors import DeclarationError
from eventide.language.script import Function
from eventide.plan.binding import BoundOperator, BoundProgram, running
from eventide.plan.bound.query import Bound
from eventide.plan.declared.program import Program, reads
from eventide.plan.declared.query import Query
from eventide.plan.declared.stream import Stream


@dataclass(frozen=True)
class Unbound:
    """Why a query or operator could not be bound."""

    reason: str
    only_spark: bool


@dataclass(frozen=True)
class BoundSteps:
    """What is bound, by name, the ways between them, and what is not bound."""

    plan: BoundProgram
    merges: Mapping[str, BoundOperator]
    """Plain merges that do not run: whoever reads them reads their inputs."""

    unbound: Mapping[str, Unbound] = field(default_factory=dict)

    @property
    def queries(self) -> Mapping[str, Bound]:
        """The queries that are bound."""
        return self.plan.queries

    def operator(self, name: str) -> BoundOperator | None:
        """The operator of that name, if it is bound."""
        return self.plan.operators.get(name) or self.merges.get(name)

    def ways_from(self, name: str) -> list[Bound]:
        """Where the rows of a stream, query or operator go."""
        return [way.bound for way in self.plan.ways_from(name)]


def bound_steps(program: Program, functions: Sequence[Function] = (), told: Collection[str] = ()) -> BoundSteps:
    """All of them, each after what it reads; `functions` are the user's, `told` whose rows somebody is told."""
    backend = local_backend(functions, run=False)
    unbound: dict[str, Unbound] = {}
    merges: dict[str, BoundOperator] = {}
    try:
        for stream in program.streams:
            backend.declare(stream)
        whole, run = BoundProgram(program), running(program, told)
        for step in program.steps:
            if (below := next((read for read in reads(step) if read in unbound), None)) is not None:
                unbound[step.name] = Unbound(f"it reads query {below!r}", True)
                continue
            asking = _Asking(backend)
            try:
                found = whole.with_step(step, asking)
            except DeclarationError as error:
                unbound[step.name] = Unbound(str(error), asking.unknown)
                continue
            if isinstance(step, Query) or step.name in run:
                whole = found
            else:
                merges[step.name] = found.operators[step.name]
        return BoundSteps(whole, merges, unbound)
    finally:
        backend.close()


@dataclass
class _Asking:
    """Asks for types, and knows whether one was not known."""

    backend: LocalBackend
    unknown: bool = False

    def declare(self, stream: Stream) -> None:
        self.backend.declare(stream)

    def type_of(self, stream: Stream, sql: str) -> str:
        try:
            return self.backend.type_of(stream, sql)
        except DeclarationError:
            self.unknown = True
            raise
