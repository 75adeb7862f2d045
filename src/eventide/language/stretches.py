"""Stretches of time: Gigascope's `time/60` counts them in whole numbers, rounded down.

>>> from eventide.language.known import over_stream
>>> from eventide.plan.expressions import parsed
>>> from eventide.plan.stream import Stream, columns
>>> packets = over_stream(Stream("packets", columns("time BIGINT"), time="time"), set())
>>> found = counted(parsed("time / 60", "q"), packets)
>>> found.exact.sql("spark"), found.as_floor.sql("spark")
('(time - PMOD(time, 60)) DIV 60', 'FLOOR(time / 60)')
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from eventide.language.known import Level
from eventide.language.words import wrapped
from eventide.plan.spark_grammar import SPARK


@dataclass(frozen=True)
class Counted:
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
        """In words whose way with time is known."""
        return exp.Floor(this=exp.Div(this=self.time.copy(), expression=self.divisor.copy()))


def counted(node: exp.Div, level: Level) -> Counted | None:
    """The division of a time by a whole number; of a timestamp, its seconds."""
    divisor = node.expression
    below = level.clock.of(node.this, following=True)
    if below is None or not below.increasing or not below.whole:
        return None
    if not isinstance(divisor, exp.Literal) or not divisor.name.isdigit() or int(divisor.name) == 0:
        return None
    if not below.micros:
        return Counted(node.this, divisor)
    if below.shifted != 0:
        return None
    stamped = level.type_of(node.this) in ("TIMESTAMP", "")
    instant = node.this.copy() if stamped else exp.cast(node.this.copy(), "TIMESTAMP", dialect=SPARK)
    return Counted(exp.UnixSeconds(this=instant), divisor)
