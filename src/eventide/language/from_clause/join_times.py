"""Comparisons of the times of two sides of a join, brought into the form right - left >= or <= a constant.

Law: both are whole numbers, so `a.t < b.t + 5` is the same as `a.t <= b.t + 4`. Two comparisons of the same attributes
bound one difference. `time/60` counts in whole numbers, as in GROUP BY.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor, gcd, lcm

from sqlglot import exp

from eventide.language.scope.expression_text import column_of, spark_text, wrapped
from eventide.language.scope.scope import TIME, Scope
from eventide.language.scope.time_buckets import ScaledTime, counted
from eventide.plan.declared.join import Band
from eventide.plan.declared.stream import WINDOW_END, WINDOW_START, TimeKind
from eventide.plan.declared.temporal import Temporal, temporal

FLIPPED = {exp.LT: exp.GT, exp.LTE: exp.GTE, exp.GT: exp.LT, exp.GTE: exp.LTE, exp.EQ: exp.EQ}


@dataclass(frozen=True)
class JoinInput:
    """One side of a join: its name there, and what it is."""

    alias: str
    level: Scope


@dataclass(frozen=True)
class SideAttribute:
    """A temporal attribute of one side."""

    alias: str
    expression: exp.Expr
    times: Temporal


@dataclass
class DifferenceBounds:
    """What is known of right - left; None where there is no bound."""

    left: SideAttribute
    right: SideAttribute
    low: int | None = None
    high: int | None = None
    conditions: list[exp.Expr] = field(default_factory=list)

    @property
    def is_closed(self) -> bool:
        """Whether both ends are bounded, and something is between them."""
        return self.low is not None and self.high is not None and self.low <= self.high

    @property
    def band(self) -> Band:
        """The band that it is."""
        return Band(spark_text(self.left.expression), spark_text(self.right.expression), self.low, self.high)

    @property
    def ended(self) -> set[str]:
        """The side whose rows one end alone ends: later times of the other side are beyond it."""
        if self.low is not None and self.high is not None:
            return set()
        is_left = (self.high is not None) is self.left.times.increasing
        return {self.left.alias if is_left else self.right.alias}


@dataclass(frozen=True)
class Linear:
    """A sum of attributes times numbers, and a constant; `micros` where it is in microseconds, None for either."""

    terms: dict[tuple[str, str], tuple[SideAttribute, Fraction]]
    constant: Fraction
    micros: bool | None

    def plus(self, other: Linear, times: int) -> Linear | None:
        """The sum, or with -1 the difference; None where numbers would be added to lengths of time."""
        if self.micros is not None and other.micros is not None and self.micros != other.micros:
            return None
        terms = dict(self.terms)
        for key, (attribute, factor) in other.terms.items():
            before = terms[key][1] if key in terms else Fraction(0)
            terms[key] = (attribute, before + times * factor)
        micros = other.micros if self.micros is None else self.micros
        return Linear(terms, self.constant + times * other.constant, micros)

    def times(self, factor: Fraction) -> Linear:
        """Every number in it multiplied."""
        return Linear({k: (a, f * factor) for k, (a, f) in self.terms.items()}, self.constant * factor, self.micros)


def tables_of(expression: exp.Expr) -> set[str]:
    """The names of inputs that an expression speaks of."""
    return {column.table for column in expression.find_all(exp.Column) if column.table}


def bare(expression: exp.Expr) -> exp.Expr:
    """The expression without the names of inputs."""
    found = expression.copy()
    for column in found.find_all(exp.Column):
        column.set("table", None)
    return found


@dataclass
class TimeRelations:
    """Collects what comparisons say of the times of two sides."""

    left: JoinInput
    right: JoinInput
    bounds: dict[tuple[str, str], DifferenceBounds] = field(default_factory=dict)

    def take(self, condition: exp.Expr) -> bool:
        """Whether a condition compares times; what it says is kept."""
        node = condition.unnest()
        if isinstance(node, exp.LTE | exp.LT | exp.GTE | exp.GT) and (halves := _of_distance(node)) is not None:
            found = [self._compared(half) for half in halves]
        else:
            found = [self._compared(node)]
        if not all(found):
            return False
        for bounds in found:
            assert bounds is not None
            self._keep(bounds, condition)
        return True

    def in_whole_numbers(self, condition: exp.Expr) -> exp.Expr:
        """The condition with times divided as in a band, rounded down."""
        root = exp.Paren(this=condition.copy())
        for node in list(root.find_all(exp.Div)):
            side = next((one for one in (self.left, self.right) if tables_of(node) == {one.alias}), None)
            scaled = _counted(bare(node), side.level) if side is not None else None
            if scaled is not None and side is not None:
                exact = scaled.exact
                for column in exact.find_all(exp.Column):
                    column.set("table", exp.to_identifier(side.alias))
                node.replace(wrapped(exact))
        found: exp.Expr = root.this
        found.pop()
        return found

    def _keep(self, new: DifferenceBounds, condition: exp.Expr) -> None:
        key = (spark_text(new.left.expression), spark_text(new.right.expression))
        known = self.bounds.setdefault(key, DifferenceBounds(new.left, new.right))
        if new.low is not None:
            known.low = new.low if known.low is None else max(known.low, new.low)
        if new.high is not None:
            known.high = new.high if known.high is None else min(known.high, new.high)
        if condition not in known.conditions:
            known.conditions.append(condition)

    def _compared(self, node: exp.Expr) -> DifferenceBounds | None:
        """What a comparison says of right - left."""
        operator = type(node)
        if operator not in FLIPPED or not isinstance(node, exp.Binary):
            return None
        one, other = self.linear(node.this), self.linear(node.expression)
        whole = one.plus(other, -1) if one is not None and other is not None else None
        if whole is None:
            return None
        terms = [(attribute, factor) for attribute, factor in whole.terms.values() if factor]
        mine = {attribute.alias: (attribute, factor) for attribute, factor in terms}
        if len(terms) != 2 or len(mine) != 2:
            return None
        (left, by_left), (right, by_right) = mine[self.left.alias], mine[self.right.alias]
        if by_left * by_right > 0 or left.times.increasing != right.times.increasing:
            return None
        constant = whole.constant
        if by_right < 0:
            by_left, by_right, constant, operator = -by_left, -by_right, -constant, FLIPPED[operator]
        whole_by = lcm(by_left.denominator, by_right.denominator)
        scale = Fraction(whole_by, gcd(int(by_left * whole_by), int(by_right * whole_by)))
        by_left, by_right, constant = -by_left * scale, by_right * scale, -constant * scale
        bounds = DifferenceBounds(_scaled(left, int(by_left)), _scaled(right, int(by_right)))
        if operator in (exp.GTE, exp.EQ):
            bounds.low = ceil(constant)
        if operator in (exp.LTE, exp.EQ):
            bounds.high = floor(constant)
        if operator is exp.GT:
            bounds.low = floor(constant) + 1
        if operator is exp.LT:
            bounds.high = ceil(constant) - 1
        return bounds

    def linear(self, node: exp.Expr) -> Linear | None:
        """An expression as a sum of temporal attributes; None where something else is in it."""
        if isinstance(node, exp.Paren):
            return self.linear(node.this)
        if isinstance(node, exp.Neg):
            below = self.linear(node.this)
            return below.times(Fraction(-1)) if below is not None else None
        if isinstance(node, exp.Literal):
            return _number(node)
        if isinstance(node, exp.Interval):
            length = length_of(node)
            return Linear({}, Fraction(length), True) if length is not None else None
        if isinstance(node, exp.Add | exp.Sub):
            one, other = self.linear(node.this), self.linear(node.expression)
            if one is not None and other is not None:
                return one.plus(other, 1 if isinstance(node, exp.Add) else -1)
            return None
        if isinstance(node, exp.Mul):
            one, other = self.linear(node.this), self.linear(node.expression)
            if one is None or other is None or one.micros or other.micros:
                return None
            if not one.terms:
                return other.times(one.constant) if one.constant else None
            return one.times(other.constant) if not other.terms and other.constant else None
        return self._attribute(node)

    def _attribute(self, node: exp.Expr) -> Linear | None:
        for side in (self.left, self.right):
            if tables_of(node) == {side.alias}:
                inner = bare(node)
                scaled = _counted(inner, side.level)
                inner = scaled.as_floor if scaled is not None else inner
                times = side.level.clock.of(inner, following=True)
                if times is None or not times.whole or len(list(inner.find_all(exp.Column))) != 1:
                    return None
                inner, ahead = _by_its_end(inner, times, side.level)
                attribute = SideAttribute(side.alias, inner, times)
                return Linear({(side.alias, spark_text(inner)): (attribute, Fraction(1))}, ahead, times.micros)
        return None


def _counted(node: exp.Expr, level: Scope) -> ScaledTime | None:
    return counted(node, level) if isinstance(node, exp.Div) else None


def _by_its_end(inner: exp.Expr, times: Temporal, level: Scope) -> tuple[exp.Expr, Fraction]:
    """Write bounds on a window's start as bounds on its end, so that they are bounds of one attribute."""
    starts = isinstance(inner, exp.Column) and inner.name.lower() == WINDOW_START
    if not starts or level.over_query is None or times.shifted is None:
        return inner, Fraction(0)
    return column_of(WINDOW_END), Fraction(times.shifted)


def length_of(interval: exp.Expr) -> int | None:
    """The microseconds of an interval of fixed length.

    >>> from eventide.plan.expressions.parse import parsed
    >>> length_of(parsed("INTERVAL 5 SECONDS", "q")), length_of(parsed("INTERVAL 1 MONTH", "q"))
    (5000000, None)
    """
    moved = temporal(exp.Add(this=exp.column(TIME), expression=interval.copy()), TIME, TimeKind.TIMESTAMP)
    return int(moved.value(0)) if moved is not None else None


def _number(node: exp.Literal) -> Linear | None:
    try:
        return Linear({}, Fraction(node.name), False) if not node.is_string else None
    except (ValueError, ZeroDivisionError):
        return None


def _scaled(attribute: SideAttribute, factor: int) -> SideAttribute:
    if factor == 1:
        return attribute
    times = exp.Mul(this=exp.Literal.number(factor), expression=wrapped(attribute.expression.copy()))
    return SideAttribute(attribute.alias, times, attribute.times)


def _of_distance(node: exp.Binary) -> tuple[exp.Expr, exp.Expr] | None:
    """`abs(x) <= c` says `x <= c` and `x >= -c`; the same from the other side."""
    operator, one, other = type(node), node.this, node.expression
    if isinstance(other.unnest(), exp.Abs):
        operator, one, other = FLIPPED[operator], other, one
    distance = one.unnest()
    if not isinstance(distance, exp.Abs) or operator not in (exp.LTE, exp.LT):
        return None
    below = operator(this=distance.this.copy(), expression=other.copy())
    negative = exp.Neg(this=wrapped(other.copy()))
    return below, FLIPPED[operator](this=distance.this.copy(), expression=negative)
