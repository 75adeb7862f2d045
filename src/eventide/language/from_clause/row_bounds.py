"""Comparisons by which a row says itself until when its partners come: `b.ts <= a.expires`.

Law: a comparison of the time of one side with what a row of the other side says, where that ends the row's partners, is
a band that is open at its other end. Such a row is kept until the time of the other side has passed what it says: as
long as it asks for itself. What only begins the partners of a row (`b.ts >= a.starts`) ends nothing, and is a condition
like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, floor

from sqlglot import exp

from eventide.language.from_clause.join_times import FLIPPED, JoinInput, Linear, bare, tables_of
from eventide.language.scope.expression_text import spark_text
from eventide.plan.bound.join_inputs import TIME_TYPES, WHOLE_TYPES
from eventide.plan.declared.join import Band
from eventide.plan.expressions.spark_types import SparkTypes


@dataclass(frozen=True)
class RowBound:
    """A comparison that ends the partners of the rows of one side, and the band that it is."""

    condition: exp.Expr
    ended: str
    band: Band
    is_certain: bool
    """Whether what the row says is known to be of a type that bounds times; else binding tells."""


def row_bound(
    condition: exp.Expr, left: JoinInput, right: JoinInput, linear: Callable[[exp.Expr], Linear | None]
) -> RowBound | None:
    """What a comparison says of the partners of the rows of one side; None where it ends none of them."""
    node = condition.unnest()
    if not isinstance(node, exp.LT | exp.LTE | exp.GT | exp.GTE):
        return None
    operator: type[exp.Binary] = type(node)
    timed, said = node.this, node.expression
    if (time := linear(timed)) is None or not time.terms:
        operator, timed, said = FLIPPED[operator], said, timed
        time = linear(timed)
    if operator not in (exp.LT, exp.LTE) or time is None or len(time.terms) != 1 or linear(said) is not None:
        return None
    [(attribute, factor)] = time.terms.values()
    mine, own = (right, left) if attribute.alias == right.alias else (left, right)
    if tables_of(said) != {own.alias} or factor != 1 or not attribute.times.increasing:
        return None
    kind = _type(bare(said), own)
    if kind is not None and kind not in (TIME_TYPES if time.micros else set(WHOLE_TYPES) - set(TIME_TYPES)):
        return None
    # time + c <= said: said - time >= c, and time - said <= -c.
    least = ceil(time.constant) if operator is exp.LTE else floor(time.constant) + 1
    end, clock = spark_text(bare(said)), spark_text(attribute.expression)
    band = Band(end, clock, None, -least) if mine is right else Band(clock, end, least, None)
    return RowBound(condition, own.alias, band, kind is not None)


def _type(said: exp.Expr, own: JoinInput) -> str | None:
    """The type of what a row says, where its text tells; a length of time more or less keeps it."""
    node = said.unnest()
    while isinstance(node, exp.Add | exp.Sub) and isinstance(node.expression.unnest(), exp.Interval):
        node = node.this.unnest()
    assert isinstance(node, exp.Expression)
    return SparkTypes({column.name: column.type for column in own.level.stream.columns if column.type}).of(node)
