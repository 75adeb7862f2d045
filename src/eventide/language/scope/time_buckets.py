"""Stretches of time: Gigascope's `time/60` counts them in whole numbers, rounded down.

>>> from eventide.language.scope.scope import over_stream
>>> from eventide.plan.expressions.parse import parsed
>>> from eventide.plan.declared.stream import Stream, columns
>>> packets = over_stream(Stream("packets", columns("time BIGINT"), time="time"), set())
>>> found = counted(parsed("time / 60", "q"), packets)
>>> found.exact.sql("spark"), found.as_floor.sql("spark")
('(time - PMOD(time, 60)) DIV 60', 'FLOOR(time / 60)')
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from eventide.language.scope.expression_text import wrapped
from eventide.language.scope.scope import Scope
from eventide.plan.expressions.spark_dialect import SPARK


@dataclass(frozen=True)
class ScaledTime:
    """A time in whole numbers, and by what it is divided."""

    time: exp.Expr
    divisor: exp.Literal

    @property
    def exact(self) -> exp.Expr:
        """As it is computed for groups: in whole numbers all through."""
        rest = exp.Anonymous(this="pmod", expressions=[self.time.copy(), self.divisor.copy()])
        whole = exp.Paren(this=exp.Sub(this=wrapped(self.time.copy()), expression=rest))
        return exp.IntDiv(this=whole, expression=self.divisor.copy())

    @property
    def as_floor(self) -> exp.Expr:
        """The expression with functions whose effect on time is known."""
        return exp.Floor(this=exp.Div(this=self.time.copy(), expression=self.divisor.copy()))


def counted(node: exp.Div | exp.IntDiv, level: Scope) -> ScaledTime | None:
    """The division of a time by a whole number; of a timestamp, its seconds."""
    divisor = node.expression.unnest()
    below = level.clock.of(node.this, following=True)
    if below is None or not below.increasing or not below.whole or _is_fraction(node.this):
        return None
    if not isinstance(divisor, exp.Literal) or not divisor.name.isdigit() or int(divisor.name) == 0:
        return None
    if not below.micros:
        return ScaledTime(node.this.unnest(), divisor)
    if below.shifted != 0 or isinstance(node, exp.IntDiv):
        return None
    stamped = level.type_of(node.this) in ("TIMESTAMP", "")
    instant = node.this.copy() if stamped else exp.cast(node.this.copy(), "TIMESTAMP", dialect=SPARK)
    return ScaledTime(exp.UnixSeconds(this=instant), divisor)


def rounded_down(node: exp.Expr, level: Scope) -> exp.Expr:
    """A group over a time, its stretches counted in whole numbers and rounded down, before 0 as after it.

    Spark cuts `div` and casts off towards 0: the stretch around 0 would be twice as long as any other, and each one
    before it would end a row later than its window does.

    >>> from eventide.language.scope.scope import over_stream
    >>> from eventide.plan.expressions.parse import parsed
    >>> from eventide.plan.declared.stream import Stream, columns
    >>> packets = over_stream(Stream("packets", columns("time BIGINT"), time="time"), set())
    >>> for sql in ("time / 60 * 60", "time div 60", "cast(time / 2.5 AS INT)", "ceil(time / 60)"):
    ...     print(rounded_down(parsed(sql, "q"), packets).sql("spark"))
    ((time - PMOD(time, 60)) DIV 60) * 60
    (time - PMOD(time, 60)) DIV 60
    CAST(FLOOR(time / 2.5) AS INT)
    CEIL(time / 60)
    """
    if isinstance(node, exp.Paren):
        return _with(node, this=rounded_down(node.this, level))
    if isinstance(node, exp.Cast):
        inner = rounded_down(node.this, level)
        below = level.clock.of(inner, following=True)
        cut = below is not None and not below.whole and not below.micros
        cut = cut and node.to.is_type(*exp.DataType.INTEGER_TYPES)
        return _with(node, this=exp.Floor(this=inner) if cut else inner)
    if not isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.IntDiv):
        return node
    left, right = rounded_down(node.this, level), rounded_down(node.expression, level)
    found = _with(node, this=left, expression=right)
    scaled = counted(found, level) if isinstance(found, exp.Div | exp.IntDiv) else None
    return scaled.exact if scaled is not None else found


def _with(node: exp.Expr, **parts: exp.Expr) -> exp.Expr:
    """The node with other parts; itself where they are the same."""
    others = {name: part for name, part in parts.items() if part is not node.args[name]}
    changed = node.copy() if others else node
    for name, part in others.items():
        changed.set(name, wrapped(part) if isinstance(node, exp.Binary) else part)
    return changed


def _is_fraction(node: exp.Expr) -> bool:
    """Whether this is a number with a fraction by its type, for which there is no division in whole numbers."""
    cast = node.unnest()
    return isinstance(cast, exp.Cast) and not cast.to.is_type(*exp.DataType.INTEGER_TYPES, *exp.DataType.TEMPORAL_TYPES)
