"""The values that a band compares, as whole numbers: exact also where an attribute has fractions.

Law: `low <= g(r) - f(l) <= high` is asked of whole numbers: both sides are multiplied by the common denominator of
what f and g add and multiply by, and by -1 where both decrease. So `R.tr / 2 = S.ts + 1` is `tr = 2 * ts + 2`, and a
value never falls as time grows. A heartbeat of a side says what its later values are at least.

>>> from eventide.plan.stream import columns
>>> r = Stream("r", columns("tr BIGINT"), time="tr")
>>> half = attribute("j", r, "tr / 2", ("tr",))
>>> half.denominator
2
>>> value = half.value(2)
>>> value.sql, value.of(7), value.first(8, 20)
('CAST(`tr` AS BIGINT)', 7, 8)
>>> attribute("j", r, "tr div 60", ("tr",)).value(1).first(2, 179)
120
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, lcm

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.eventtime.instant import EDGE
from eventide.plan.bound import instant_sql
from eventide.plan.columns import Column
from eventide.plan.expressions import check_columns, columns_in, parsed
from eventide.plan.stream import Stream, TimeKind, kind_of
from eventide.plan.temporal import Temporal, temporal

STAMP = "_time"
"""How a band speaks of the time of a stream that has no time column: of the stamp that its rows get."""


@dataclass(frozen=True)
class BandValue:
    """The whole number that a band compares, of one side: `sql` over its columns; `factor` times the attribute."""

    column: str
    attribute: Temporal
    factor: int
    sql: str

    def of(self, instant: int | Fraction) -> int:
        """The value where the column that carries time has this value."""
        # A column that carries time is whole; its least value need not be.
        return ceil(self.factor * self.attribute.value(ceil(instant)))

    def first(self, value: int, near: int) -> int:
        """The first instant of the column from which on values are `value` or more, searched from some other one."""
        high, step = near, 1
        while step < EDGE and self._below(high, value):
            high, step = high + step, step * 2
        low, step = high, 1
        while step < EDGE and not self._below(low, value):
            high, low, step = low, low - step, step * 2
        while high - low > 1:
            middle = (high + low) // 2
            low, high = (middle, high) if self._below(middle, value) else (low, middle)
        return high

    def _below(self, instant: int, value: int) -> bool:
        try:
            return self.of(instant) < value
        except OverflowError:
            # The calendar has a beginning; nothing is before it.
            return True


@dataclass(frozen=True)
class Attribute:
    """A temporal attribute of one side: the column it is made of, what it is to it, and its words."""

    stream: Stream
    column: str
    temporal: Temporal
    sql: str
    type: str

    @property
    def denominator(self) -> int:
        """By what its values have to be multiplied to be whole."""
        steps = self.temporal.steps
        if self.temporal.whole or steps is None:
            return 1
        return lcm(steps.scale.denominator, steps.shift.denominator)

    def value(self, factor: int) -> BandValue:
        """The values of the attribute, multiplied."""
        return BandValue(self.column, self.temporal, factor, self._sql(factor))

    def _sql(self, factor: int) -> str:
        if self.column == STAMP:
            return "CAST(0 AS BIGINT)"
        steps = self.temporal.steps
        if steps is not None and steps.width == 1 and steps.offset == 0:
            scale, shift = steps.scale * factor, steps.shift * factor
            base = instant_sql(self.column, self.stream.column(self.column).type)
            scaled = base if scale == 1 else f"{base} * {int(scale)}"
            return scaled if shift == 0 else f"{scaled} + {int(shift)}"
        if self.temporal.whole:
            whole = _instant(self.sql, self.type)
            return whole if factor == 1 else f"{whole} * {factor}"
        # A fraction times its denominator is a whole number, but for the last digits.
        return f"CAST(round(({self.sql}) * {factor}) AS BIGINT)"


def attribute(join: str, stream: Stream, sql: str, carriers: tuple[str, ...], type: str = "BIGINT") -> Attribute:
    """Read one side of a band; `carriers` are the columns of the stream that carry time.

    >>> from eventide.plan.stream import columns
    >>> attribute("j", Stream("r", columns("tr BIGINT, v INT"), time="tr"), "v + 1", ("tr",))
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: join 'j': 'v + 1' is no temporal attribute of 'r', so rows could never be let \
go: relate 'tr', or what grows or falls with it
    """
    expression = parsed(sql, f"a band of join {join!r}")
    stamp = (Column(STAMP, "TIMESTAMP"),) if stream.time is None else ()
    check_columns(expression, (*stream.columns, *stamp), f"join {join!r}, input {stream.name!r}")
    carriers = carriers or (STAMP,)
    for name in columns_in(expression):
        carrier = next((one for one in carriers if one.lower() == name.lower()), None)
        if carrier is None:
            continue
        kind = TimeKind.TIMESTAMP if carrier == STAMP else kind_of(stream.column(carrier))
        if kind is None:
            raise DeclarationError(
                f"join {join!r}: {carrier!r} of {stream.name!r} carries time in fractions; round it, with floor, "
                "where it is made"
            )
        found = temporal(expression, carrier, kind)
        if found is not None:
            _check_exact(join, sql, expression, found)
            return Attribute(stream, carrier, found, sql, type)
    known = " or ".join(repr(name) for name in carriers)
    raise DeclarationError(
        f"join {join!r}: {sql!r} is no temporal attribute of {stream.name!r}, so rows could never be let go: "
        f"relate {known}, or what grows or falls with it"
    )


def _check_exact(join: str, sql: str, expression: exp.Expression, found: Temporal) -> None:
    rounds = any(cast.to.is_type("decimal") for cast in expression.find_all(exp.Cast))
    if rounds or (not found.whole and found.steps is None):
        raise DeclarationError(
            f"join {join!r}: {sql!r} is rounded in a way that cannot be told exactly: use floor, ceil or div"
        )


def _instant(sql: str, kind: str) -> str:
    """An expression that tells a time, or a whole number, as int64."""
    if kind == "TIMESTAMP":
        return f"unix_micros({sql})"
    if kind == "TIMESTAMP_NTZ":
        return f"unix_micros(CAST({sql} AS TIMESTAMP))"
    if kind == "DATE":
        return f"(CAST(unix_date({sql}) AS BIGINT) * 86400000000)"
    return f"CAST({sql} AS BIGINT)"
