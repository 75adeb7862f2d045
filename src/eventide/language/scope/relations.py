"""Relations that a SELECT can read, what it sees of them, and the time that several have in common.

What a SELECT may read by name, and what it then sees: columns, the rows that pass, and which columns carry time.

Law: a column carries time where it is computed from the time of its row and nothing else (`plan.temporal`). It is told
by an expression over one name, TIME, whatever the column is called that tells the time below.

>>> from eventide.plan.expressions.parse import parsed
>>> clock = Clock(TimeKind.SEQUENCE, {"ts": exp.column(TIME), "tb": parsed(f"{TIME} div 60", "q")})
>>> int(clock.of(parsed("tb + 1", "q")).value(120)), clock.of(parsed("speed", "q"))
(3, None)

The time of several inputs together: which columns carry it in all of them, in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.language.grammar.nodes import StreamWindow
from eventide.language.grammar.source_text import SourceText
from eventide.language.scope.expression_text import column_of, wrapped
from eventide.plan.declared.join import Join, Lookup
from eventide.plan.declared.program import Operator, Step
from eventide.plan.declared.query import Query
from eventide.plan.declared.stream import WINDOW_END, WINDOW_START, Derived, Stream, TimeKind
from eventide.plan.declared.temporal import Temporal, temporal
from eventide.plan.declared.window import Window
from eventide.plan.expressions.columns import Column

TIME = WINDOW_END
"""The time of a row, in the expressions that say how a column is computed from it."""

Columns = dict[str, tuple[str, exp.Expr]]
"""By their names in small letters: the name as it was given, and the expression over what is read."""


@dataclass(frozen=True)
class Clock:
    """Which columns of a stream, query or operator carry time: expressions over TIME, by their names.

    Those that `follow` are not computed from the time of their row itself, but from one that cannot fall behind it for
    ever, as the time of the earlier row in a pair: enough to let go of rows in a join, not to cut windows.
    """

    kind: TimeKind
    carried: Mapping[str, exp.Expr] = field(default_factory=dict)
    follow: Mapping[str, exp.Expr] = field(default_factory=dict)

    @classmethod
    def of_stream(cls, stream: Stream) -> Clock:
        """The clock of a stream's own rows."""
        return cls(stream.time_kind, {stream.time.lower(): exp.column(TIME)} if stream.time is not None else {})

    def over_time(self, expression: exp.Expr, following: bool = False) -> exp.Expr | None:
        """The expression over TIME; None where something else is in it. `following`: also over what follows time."""
        known = {**self.follow, **self.carried} if following else self.carried
        root = exp.Paren(this=expression.copy())
        for column in list(root.find_all(exp.Column)):
            carried_as = known.get(column.name.lower()) if len(column.parts) == 1 else None
            if carried_as is None:
                return None
            column.replace(wrapped(carried_as.copy()))
        found: exp.Expr = root.this
        found.pop()
        return found

    def of(self, expression: exp.Expr, following: bool = False) -> Temporal | None:
        """What an expression over the columns says about time."""
        carried_as = self.over_time(expression, following)
        return temporal(carried_as, TIME, self.kind) if carried_as is not None else None


@dataclass(frozen=True)
class ScopeRelation:
    """A query or operator that others may read: its columns, the kind of its time, and which columns carry it."""

    query: Step
    tree: exp.Expr
    outputs: tuple[Column, ...]
    """The user's columns; without a type where that is found when it runs."""

    clock: Clock
    hidden: bool = False

    @property
    def results(self) -> Derived:
        """The stream of its results."""
        return Derived.of(self.query.name, self.outputs, self.clock.kind, Window(1))

    @property
    def operator(self) -> Operator | None:
        """The operator, where the relation gives rows and not windows."""
        return None if isinstance(self.query, Query) else self.query


Hide = Callable[[Operator, tuple[Column, ...], Clock, exp.Expr], ScopeRelation]
"""Takes an operator in under a name of its own; its own name, if it has one, is where that begins."""


@dataclass(frozen=True)
class NamedInput:
    """An input of a join under all the names it may be called by; `columns` are over the two sides of the join."""

    alias: str
    names: frozenset[str]
    columns: Columns
    starred: tuple[str, ...]
    """The columns that `*` stands for."""


@dataclass(frozen=True)
class Pending:
    """A join that has neither a name nor columns yet: what makes a pair, and what is told of it."""

    join: Join | Lookup
    sides: Mapping[str, Scope]
    """The two inputs, by their names in the join."""

    inputs: tuple[NamedInput, ...]
    """What the user calls inputs; in a join of three there are more of them than sides."""

    preferred: Mapping[str, str]
    """Columns that USING made one: whose they are."""

    used: frozenset[tuple[str, str]]
    """What the SELECT speaks of: the input as the user calls it, and the column."""


@dataclass
class Scope:
    """What a SELECT sees: named expressions over the columns of a stream, and the rows that pass."""

    stream: Stream
    columns: Columns
    aliases: set[str]
    clock: Clock
    where: list[exp.Expr] = field(default_factory=list)
    window: StreamWindow | None = None
    sample: float | None = None
    below: ScopeRelation | None = None
    """The query that is read; None where it is a stream."""

    called: exp.Expr | None = None
    """The call of Spark's `window` that the window was taken from."""

    owned: dict[str, Columns] = field(default_factory=dict)
    """Of a join: the columns of each input, by every name it may be called by."""

    shared: dict[str, list[str]] = field(default_factory=dict)
    """Of a join: columns that several inputs have, and their names."""

    stars: dict[str, list[tuple[str, exp.Expr]]] = field(default_factory=dict)
    """Of a join: what `*` and `input.*` stand for, by the name of the input."""

    pending: Pending | None = None

    @property
    def times(self) -> dict[str, Temporal]:
        """The columns that carry time."""
        found = ((name, self.clock.of(expression)) for name, expression in self.columns.values())
        return {name: one for name, one in found if one is not None}

    @property
    def over_query(self) -> Query | None:
        """The query with windows that is read; None where it is a stream or an operator."""
        return self.below.query if self.below is not None and isinstance(self.below.query, Query) else None

    def type_of(self, expression: exp.Expr) -> str:
        """The type of a column; nothing where it is computed, or found when it runs."""
        inner = expression.unnest()
        if not isinstance(inner, exp.Column) or len(inner.parts) > 1:
            return ""
        return next((c.type for c in self.stream.columns if c.name.lower() == inner.name.lower()), "")

    @property
    def all_columns(self) -> list[tuple[str, exp.Expr]]:
        """What `*` stands for: the ends of a result's window are in every result anyway."""
        edges = (WINDOW_START, WINDOW_END) if isinstance(self.stream, Derived) else ()
        return [(name, e) for name, e in self.columns.values() if e.sql() not in edges or name.lower() not in edges]


def over_stream(stream: Stream, aliases: set[str]) -> Scope:
    """The rows of a stream, as a query sees them."""
    columns: Columns = {column.name.lower(): (column.name, column_of(column.name)) for column in stream.columns}
    return Scope(stream, columns, aliases, Clock.of_stream(stream))


def over(known: ScopeRelation, aliases: set[str]) -> Scope:
    """The results of a query or operator, as the query above sees them."""
    results = known.results
    columns: Columns = {column.name.lower(): (column.name, column_of(column.name)) for column in results.columns}
    return Scope(results, columns, aliases, known.clock, below=known)


def common_clock(clocks: list[Clock], at: exp.Expr, source: SourceText) -> Clock:
    """Which columns carry time in all of them; times must be of one kind."""
    sequences = {clock.kind is TimeKind.SEQUENCE for clock in clocks}
    if len(sequences) > 1:
        raise source.error(
            "the time of one counts in numbers and that of the other is a time, so their rows have no common order",
            at,
            "declare the time of both as a TIMESTAMP, or of both as a number",
        )
    first, *others = clocks
    shared = {
        name: carried_as
        for name, carried_as in first.carried.items()
        if all(other.carried.get(name) == carried_as for other in others)
    }
    follow = {
        name: carried_as
        for name, carried_as in {**first.follow, **first.carried}.items()
        if name not in shared and all({**other.follow, **other.carried}.get(name) == carried_as for other in others)
    }
    return Clock(first.kind if len({clock.kind for clock in clocks}) == 1 else TimeKind.TIMESTAMP, shared, follow)
