"""Merges, joins and lookups, built in Python with what the language makes of UNION ALL, JOIN and AS OF."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

from sqlglot import exp

from eventide.api.arguments import Expression, Length, condition_text, life, value_named
from eventide.api.rows import NOWHERE, EventRows, Node
from eventide.errors import DeclarationError, LanguageError
from eventide.language.from_clause.join_forms import with_version
from eventide.language.from_clause.join_scope import called, joined_output, kind_of, see
from eventide.language.from_clause.joins import JoinReader, JoinStep
from eventide.language.grammar.source_text import SourceText
from eventide.language.scope.expression_text import column_of, conjuncts, unused
from eventide.language.scope.scope import Clock, NamedInput, Pending, Resolver, Scope, ScopeRelation, common_clock
from eventide.language.scope.state_clauses import StateRequest
from eventide.plan.declared.join import JoinKind
from eventide.plan.declared.query import RESERVED
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import TimeKind
from eventide.plan.expressions.parse import parsed

HOW = {
    **dict.fromkeys(("inner",), JoinKind.INNER),
    **dict.fromkeys(("left", "leftouter", "left_outer"), JoinKind.LEFT),
    **dict.fromkeys(("right", "rightouter", "right_outer"), JoinKind.RIGHT),
    **dict.fromkeys(("full", "outer", "fullouter", "full_outer"), JoinKind.FULL),
    **dict.fromkeys(("semi", "leftsemi", "left_semi"), JoinKind.SEMI),
    **dict.fromkeys(("anti", "leftanti", "left_anti"), JoinKind.ANTI),
}
"""The words of PySpark."""


def unfolded(node: Node) -> tuple[Node, list[exp.Expr]]:
    """What is read where rows are only chosen, and the conditions: a join chooses by itself."""
    conditions: list[exp.Expr] = []
    while isinstance(node, EventRows) and node.name is None and isinstance(node.declared, Rows):
        if node.declared.select or len(node.inputs) != 1:
            break
        if node.declared.where is not None:
            conditions.insert(0, parsed(node.declared.where, "a condition"))
        node = node.inputs[0]
    return node, conditions


def merged(inputs: list[Node]) -> EventRows:
    """The merge of all inputs: every row of each."""
    if len({id(one) for one in inputs}) < len(inputs):
        raise DeclarationError("a stream cannot be merged with itself: its rows would be emitted twice; leave it out")
    levels = [one._scope() for one in inputs]
    columns = [one.columns for one in inputs]
    for node, other in zip(inputs[1:], columns[1:], strict=True):
        for mine, theirs in zip(other, columns[0], strict=False):
            if mine.name.lower() != theirs.name.lower() or (mine.type and theirs.type and mine.type != theirs.type):
                raise DeclarationError(
                    f"{node._name!r} has {mine.name} {mine.type} where {inputs[0]._name!r} has {theirs.name} "
                    f"{theirs.type}: select the same columns of both, .select('{theirs.name}', ...)"
                )
        if len(other) != len(columns[0]):
            raise DeclarationError(
                f"{node._name!r} has {len(other)} columns and {inputs[0]._name!r} has {len(columns[0])}: "
                "select the same columns of both, .select(...)"
            )
    with _without_place():
        clock = common_clock([level.clock for level in levels], NOWHERE, SourceText(""))
    names = tuple(f"input_{number}" for number in range(len(inputs)))
    return EventRows(Rows("", names), tuple(inputs), columns[0], clock)


def joined(
    left: Node,
    right: Node,
    on: str | Sequence[str],
    within: Length | None,
    how: str,
) -> EventJoin:
    """Build the join of two inputs."""
    kind = _kind(how)
    owner = f"the join of {left._alias!r} and {right._alias!r}"
    names, conditions = _equalities(left, right, on, owner)
    if within is not None:
        conditions.append(_within(left, right, within, owner))
    return EventJoin.of(left, right, kind, tuple(conditions), names)


def looked_up(rows: Node, versions: Node, on: str | Sequence[str], how: str) -> EventJoin:
    """Rows with the versions that hold at their times."""
    kind = _kind(how)
    owner = f"the lookup of {rows._alias!r} in {versions._alias!r}"
    names, conditions = _equalities(rows, versions, on, owner)
    return EventJoin.of(rows, versions, kind, tuple(conditions), names, as_of=_time_of(rows, owner))


def _kind(how: str) -> JoinKind:
    kind = HOW.get(how.lower())
    if kind is None:
        raise DeclarationError(f"there is no join {how!r}: give inner, left, right, full, semi or anti")
    return kind


def _equalities(left: Node, right: Node, on: str | Sequence[str], owner: str) -> tuple[tuple[str, ...], list[exp.Expr]]:
    """The columns that `on` names, and the equalities that it says."""
    mine, theirs = left._alias, right._alias
    if mine.lower() == theirs.lower():
        raise DeclarationError(
            f"both inputs of this join are called {mine!r}: give one another name, such as .alias('other')"
        )
    is_name = isinstance(on, str) and on.isidentifier()
    names = () if isinstance(on, str) and not is_name else (on,) if isinstance(on, str) else tuple(on)
    conditions = [*conjuncts(parsed(on, owner))] if isinstance(on, str) and not is_name else []
    for name in names:
        for side in (left, right):
            if name.lower() not in side._scope().columns:
                raise DeclarationError(f"{owner}: {side._alias!r} has no column {name!r}")
        conditions.append(exp.EQ(this=column_of(name, mine), expression=column_of(name, theirs)))
    return names, conditions


@dataclass(frozen=True, repr=False)
class EventJoin(EventRows):
    """A join; `where` and `select` speak of the columns of both inputs, `"north.speed"`, or by a name only one has."""

    conditions: tuple[exp.Expr, ...] = ()
    after: tuple[exp.Expr, ...] = ()
    pending: Pending | None = None
    given: tuple[Node, ...] = ()
    """The two sides as they were given, with their conditions."""

    kind: JoinKind = JoinKind.INNER
    as_of: exp.Expr | None = None
    """The time whose versions are meant, in a lookup."""

    @classmethod
    def of(
        cls,
        left: Node,
        right: Node,
        kind: JoinKind,
        conditions: tuple[exp.Expr, ...],
        shared: tuple[str, ...],
        after: tuple[exp.Expr, ...] = (),
        as_of: exp.Expr | None = None,
    ) -> EventJoin:
        """The join with all columns: those that are equal by name once, then those of the left, then of the right."""
        sides, read = [], []
        for one in (left, right):
            node, chosen = unfolded(one)
            level = node._scope()
            level.where += chosen
            sides.append((one._alias, level))
            read.append(node)
        inputs = [called(alias, {alias.lower()}, level) for alias, level in sides]
        owner = sides[1][0] if kind is JoinKind.RIGHT else sides[0][0]
        preferred = {name.lower(): owner for name in shared}
        scope = see(Scope(sides[0][1].stream, {}, set(), sides[0][1].clock), inputs, preferred)
        is_inner = kind is JoinKind.INNER
        on = [*conditions, *(after if is_inner else ())]
        nowhere = SourceText("")
        state = StateRequest(nowhere)
        reader = JoinReader(nowhere, lambda table, computed: sides[0][1], lambda *given: _nothing(), state)
        step = JoinStep(NOWHERE if as_of is None else with_version(as_of), kind, inputs[1], sides[1][1], on, [])
        with _without_place():
            join = reader.pair(sides[0], sides[1], step, scope, [] if is_inner else list(after))
        # Of a semi or anti join, nothing above sees the other input.
        inputs = inputs[:1] if kind.chooses else inputs
        pending = Pending(join, dict(sides), tuple(inputs), preferred, frozenset())
        scope.clock = Clock(kind_of(pending))
        outputs = _all_columns(inputs, shared, kind)
        declared, columns, clock = joined_output(pending, outputs)
        return cls(
            declared, tuple(read), columns, clock,
            conditions=conditions, after=after, pending=pending, given=(left, right), kind=kind, as_of=as_of,
        )  # fmt: skip

    def where(self, condition: Expression) -> EventJoin:  # type: ignore[override]
        """Only pairs for which this holds."""
        conditions_of = conjuncts(parsed(condition_text(condition, None, "this join"), "this join"))
        left, right = self.given
        shared, after = tuple(self._pending.preferred), (*self.after, *conditions_of)
        made = EventJoin.of(left, right, self.kind, self.conditions, shared, after, self.as_of)
        return replace(made, name=self.name)

    filter = where  # type: ignore[assignment]

    def select(self, *columns: Expression, **expressions: Expression) -> EventRows:
        """The pairs with these columns: `"north.car"`, `F.col("south.speed")`, `gap="south.ts - north.ts"`."""
        given = [value_named(each, None, "this join") for each in columns]
        given += [value_named(each, None, "this join", name) for name, each in expressions.items()]
        pending = self._pending
        left = pending.sides[pending.inputs[0].alias]
        scope = see(Scope(left.stream, {}, set(), left.clock), pending.inputs, pending.preferred)
        outputs: list[tuple[str, exp.Expr]] = []
        with _without_place():
            for item in given:
                spelled = Resolver(SourceText(item.sql)).spelled_out(parsed(item.sql, "this join"), scope)
                outputs.append((_unqualified(item.name, outputs), spelled))
        join, shown, clock = joined_output(pending, outputs)
        return EventRows(join, self.inputs, shown, clock, self.name)

    def named(self, name: str) -> EventJoin:
        """The same join under a name."""
        found = super().named(name)
        assert isinstance(found, EventJoin)
        return found

    @property
    def _pending(self) -> Pending:
        assert self.pending is not None
        return self.pending


def _within(left: Node, right: Node, within: Length, owner: str) -> exp.Expr:
    """The condition that the times of both sides are at most so far apart."""
    if left._scope().clock.kind is TimeKind.SEQUENCE:
        most: exp.Expr = exp.Literal.number(life(within, TimeKind.SEQUENCE, "within"))
    else:
        micros = life(within, TimeKind.TIMESTAMP, "within")
        most = exp.Interval(this=exp.Literal.string(str(micros)), unit=exp.Var(this="MICROSECOND"))
    apart = exp.Sub(this=_time_of(left, owner), expression=_time_of(right, owner))
    return exp.LTE(this=exp.Abs(this=apart), expression=most)


def _time_of(node: Node, owner: str) -> exp.Column:
    """The column that carries the time of a side."""
    name = next((name for name, one in node._scope().times.items() if one.shifted == 0), None)
    if name is None:
        raise DeclarationError(f"{owner}: no column of {node._alias!r} carries its time; select it, too")
    return column_of(name, node._alias)


def _all_columns(inputs: list[NamedInput], shared: tuple[str, ...], kind: JoinKind) -> list[tuple[str, exp.Expr]]:
    outputs: list[tuple[str, exp.Expr]] = []
    for name in shared if not kind.chooses else ():
        left, right = inputs
        mine, theirs = left.columns[name.lower()][1], right.columns[name.lower()][1]
        both = exp.Coalesce(this=mine.copy(), expressions=[theirs.copy()])
        outputs.append((name, both if kind is JoinKind.FULL else theirs if kind is JoinKind.RIGHT else mine))
    once = {name.lower() for name, _ in outputs}
    for one in inputs:
        for key in one.starred:
            if key not in once:
                name, expression = one.columns[key]
                is_used = name.lower() in {other.lower() for other, _ in outputs} or name.lower() in RESERVED
                outputs.append((f"{one.alias}_{name}" if is_used else name, expression))
    return outputs


def _unqualified(name: str, outputs: list[tuple[str, exp.Expr]]) -> str:
    """`north.car` is the column `car`, or `north_car` where that is taken."""
    owner, _, column = name.rpartition(".")
    is_used = {other.lower() for other, _ in outputs}
    if owner.isidentifier() and column.isidentifier():
        name = column if column.lower() not in is_used and column.lower() not in RESERVED else f"{owner}_{column}"
    return unused(name, is_used)


@contextmanager
def _without_place() -> Iterator[None]:
    """Errors of the language without a place: there is no text."""
    try:
        yield
    except LanguageError as error:
        raise DeclarationError(f"{error.message}: {error.hint}" if error.hint else error.message) from error


def _nothing() -> ScopeRelation:
    raise AssertionError("a join of two inputs hides nothing")
