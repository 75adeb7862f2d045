"""What makes a pair in a join, taken apart: bands between times, equal keys, conditions on one side, and the rest.

Law: the parts together say what the conditions said. Comparisons of temporal attributes of both sides are bands
(`join_times`), and so is what a row says itself of its partners' time (`row_bounds`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.language.from_clause.join_times import DifferenceBounds, JoinInput, TimeRelations, bare, tables_of
from eventide.language.from_clause.row_bounds import RowBound, row_bound
from eventide.plan.declared.join import Band, JoinKind


@dataclass
class ConditionParts:
    """The conditions of a join, each where it belongs; all but `rest` are over the columns of one side, unqualified."""

    bands: list[Band] = field(default_factory=list)
    keys: list[tuple[exp.Expr, exp.Expr]] = field(default_factory=list)
    left: list[exp.Expr] = field(default_factory=list)
    right: list[exp.Expr] = field(default_factory=list)
    rest: list[exp.Expr] = field(default_factory=list)
    open: list[tuple[exp.Expr, DifferenceBounds]] = field(default_factory=list)
    """Comparisons of times that have no other end."""

    without_end: list[JoinInput] = field(default_factory=list)
    """The sides whose rows could never be let go."""

    def place(self, kind: JoinKind) -> None:
        """Conditions on one side choose its rows before the join, unless rows they leave out must be emitted alone."""
        if kind.keeps_left:
            self.rest += self.left
            self.left = []
        if kind.keeps_right:
            self.rest += self.right
            self.right = []

    def is_without_end(self) -> bool:
        """Whether the rows of some side could never be let go."""
        return bool(self.without_end) and not any(band.is_closed for band in self.bands)


def take_apart(
    conditions: Iterable[exp.Expr], left: JoinInput, right: JoinInput, by_time: bool = True
) -> ConditionParts:
    """The parts of conditions whose columns are qualified by the names of the two sides; bands only `by_time`."""
    parts, found = ConditionParts(), TimeRelations(left, right)
    by_rows: list[RowBound] = []
    for condition in (half for one in conditions for half in _halves(one)):
        sides = tables_of(condition)
        if sides == {left.alias}:
            parts.left.append(condition)
        elif sides == {right.alias}:
            parts.right.append(condition)
        elif by_time and found.take(condition):
            continue
        elif by_time and (said := row_bound(condition, left, right, found.linear)) is not None:
            by_rows.append(said)
        elif (key := _key(condition, left.alias, right.alias)) is not None:
            parts.keys.append(key)
        else:
            parts.rest.append(condition)
    for bounds in found.bounds.values():
        if bounds.is_closed:
            parts.bands.append(bounds.band)
        else:
            parts.open.append((bounds.conditions[0], bounds))
    # Beside a band that ends the rows of both sides, what may be no time chooses pairs and no more.
    ends = [one for one in by_rows if one.is_certain or not parts.bands]
    parts.rest += [one.condition for one in by_rows if one not in ends]
    if not parts.bands:
        ended = {one.ended for one in ends}.union(*(bounds.ended for _, bounds in parts.open))
        parts.without_end = [side for side in (left, right) if side.alias not in ended]
    if parts.bands or parts.without_end:
        parts.rest += [found.in_whole_numbers(one) for _, bounds in parts.open for one in bounds.conditions]
    else:
        parts.bands += [bounds.band for _, bounds in parts.open]
    parts.bands += [one.band for one in ends]
    return parts


def _halves(condition: exp.Expr) -> tuple[exp.Expr, ...]:
    """A condition, or what BETWEEN says of several inputs as the two comparisons that it is."""
    node = condition.unnest()
    if not isinstance(node, exp.Between) or node.args.get("symmetric") or len(tables_of(node)) < 2:
        return (condition,)
    low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
    high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
    return low, high


def _key(condition: exp.Expr, left: str, right: str) -> tuple[exp.Expr, exp.Expr] | None:
    equal = condition.unnest()
    if not isinstance(equal, exp.EQ):
        return None
    one, other = equal.this, equal.expression
    if (tables_of(one), tables_of(other)) == ({left}, {right}):
        return bare(one), bare(other)
    if (tables_of(one), tables_of(other)) == ({right}, {left}):
        return bare(other), bare(one)
    return None
