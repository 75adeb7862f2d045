"""What a SELECT can read, the columns that it sees, and the expression that each name in it stands for.

Laws. A column carries time where it is computed from the time of its row and nothing else (`plan.declared.temporal`);
how, is said by an expression over one name, TIME, whatever the time column below is called. A name is a column of
what is read, or the name of an input and a column of that input; a column that several inputs of a join have must say
which it means. A name that nobody knows is an error at its place, with the nearest known name.

>>> from eventide.plan.expressions.parse import parsed
>>> clock = Clock(TimeKind.SEQUENCE, {"ts": exp.column(TIME), "tb": parsed(f"{TIME} div 60", "q")})
>>> int(clock.of(parsed("tb + 1", "q")).value(120)), clock.of(parsed("speed", "q"))
(3, None)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.language.grammar.nodes import StreamWindow
from eventide.language.grammar.source_text import SourceText, offset_of
from eventide.language.grammar.spelling import meant
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
    """A join that has neither a name nor columns yet: what makes a pair, and what is emitted of it."""

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
    """The scope of a query that reads a stream."""
    columns: Columns = {column.name.lower(): (column.name, column_of(column.name)) for column in stream.columns}
    return Scope(stream, columns, aliases, Clock.of_stream(stream))


def over(known: ScopeRelation, aliases: set[str]) -> Scope:
    """The scope of a query that reads the results of a query or operator."""
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


EDGES = (WINDOW_START, WINDOW_END, "window")
"""What is called so in every result, and is known only when its window is emitted."""


@dataclass(frozen=True)
class Resolver:
    """Spells expressions out over the columns of what is read."""

    source: SourceText

    def spelled_out(self, expression: exp.Expr, level: Scope, also: Iterable[str] = ()) -> exp.Expr:
        """The expression over the columns of the stream; names in `also` stay."""
        for node in expression.find_all(exp.Query, exp.Max, exp.Min, exp.Is, exp.Star):
            self._check(node, expression)
        names = {name.lower() for name in also}
        found = expression.copy()
        root = exp.Paren(this=found)
        for column in list(root.find_all(exp.Column)):
            if not isinstance(column.this, exp.Star) and not is_lambda_name(column):
                column.replace(self._resolved(column, level, names))
        result = root.this
        result.pop()
        return result  # type: ignore[no-any-return]

    def _check(self, node: exp.Expr, expression: exp.Expr) -> None:
        """Refuse what no expression over single columns can hold."""
        if isinstance(node, exp.Query):
            raise self.source.error("a query inside an expression cannot be run yet", node, "join what it gives")
        if isinstance(node, exp.Max | exp.Min) and node.expressions:
            several = "greatest" if isinstance(node, exp.Max) else "least"
            raise self.source.error("an aggregate takes one value", node, f"of several values take {several}(..)")
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Literal | exp.Column):
            raise self.source.error("IS is for NULL, TRUE and FALSE", node.expression, "write = instead")
        if isinstance(node, exp.Star):
            around = node.parent if not isinstance(node.parent, exp.Column) else node.parent.parent
            if not isinstance(around, exp.Count):
                raise self.source.error(
                    "* stands for all columns, and no expression takes them all", expression, "name the columns"
                )

    def _resolved(self, column: exp.Column, level: Scope, also: set[str]) -> exp.Expr:
        columns, parts = place_of(column, level)
        name = parts[0].name.lower()
        if name not in columns:
            if len(parts) == 1 and name in also:
                return exp.column(parts[0].copy())
            if columns is level.columns and name in level.shared:
                owners = level.shared[name]
                raise self.source.error(
                    f"{parts[0].name!r} is a column of {' and of '.join(owners)}",
                    parts[0],
                    f"say which: {' or '.join(f'{owner}.{parts[0].name}' for owner in owners)}",
                )
            if columns is level.columns and level.owned and len(parts) > 1:
                inputs = list(dict.fromkeys(level.owned))
                raise self.source.error(
                    f"no input of this join is called {parts[0].name!r}, and no column",
                    parts[0],
                    meant(parts[0].name, inputs),
                )
            if name in EDGES:
                raise self.source.error(
                    f"{name!r} is in every result as it is, and cannot be computed with or named otherwise here",
                    parts[0],
                    "read the results: SELECT window_start AS .. FROM (SELECT .. FROM .. [RANGE ..])",
                )
            owner = min(level.aliases, default=None)
            if columns is level.columns and len(parts) > 1 and parts[1].name.lower() in columns and owner is not None:
                raise self.source.error(
                    f"nothing here is called {parts[0].name!r}", parts[0], f"did you mean {owner}.{parts[1].name}?"
                )
            known = [spelled for spelled, _ in columns.values()] + [other for other in also if other not in columns]
            known += [f"{level.shared[key][0]}.{key}" for key in level.shared] if columns is level.columns else []
            raise self.source.error(f"there is no column {parts[0].name!r}", parts[0], meant(parts[0].name, known))
        place = offset_of(parts[0])
        inner = wrapped(columns[name][1].copy())
        inner.meta["start"] = place
        if len(parts) == 1:
            return inner
        if isinstance(inner, exp.Column) and inner.table:
            # A field of a struct, not a column of a table of a database.
            inner = exp.Paren(this=inner)
        for part in parts[1:]:
            inner = exp.Dot(this=inner, expression=part.copy())
        return inner


def place_of(column: exp.Column, level: Scope) -> tuple[Columns, list[exp.Expr]]:
    """Among which columns a name is to be looked up, and what is left of it without the name of its input."""
    parts = list(column.parts)
    first = parts[0].name.lower()
    second = parts[1].name.lower() if len(parts) > 1 else ""
    if level.owned:
        mine = level.owned.get(first)
        if second and mine is not None and (second in mine or first not in level.columns):
            return mine, parts[1:]
        if len(parts) > 2 and f"{first}_{second}" in level.owned:
            return level.owned[f"{first}_{second}"], parts[2:]
        return level.columns, parts
    if second and first in level.aliases and (second in level.columns or first not in level.columns):
        return level.columns, parts[1:]
    if len(parts) > 2 and f"{first}_{second}" in level.aliases:
        return level.columns, parts[2:]
    return level.columns, parts


def is_lambda_name(column: exp.Column) -> bool:
    """Whether this is a parameter of a lambda around it, and no column."""
    around = column.find_ancestor(exp.Lambda)
    while around is not None:
        if column.parts[0].name.lower() in {parameter.name.lower() for parameter in around.expressions}:
            return True
        around = around.find_ancestor(exp.Lambda)
    return False


def stars_in(item: exp.Expr, level: Scope, source: SourceText) -> list[tuple[str, exp.Expr]] | None:
    """The columns that `*` or `a.*` stands for; None where the item is no star."""
    star = isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star))
    if not star:
        return None
    inner = item.this if isinstance(item, exp.Column) else item
    if any(inner.args.get(key) for key in ("except_", "replace", "rename")):
        raise source.error("* with EXCEPT cannot be run yet", item, "name the columns")
    owner = item.table.lower() if isinstance(item, exp.Column) else ""
    known = level.stars or {"": level.all_columns, **dict.fromkeys(level.aliases, level.all_columns)}
    if owner not in known:
        raise source.error(f"there is no input {owner!r}", item, meant(owner, filter(None, known)))
    return known[owner]
