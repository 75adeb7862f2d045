"""What a join compares: the names of both sides, and bands of times as whole numbers.

*Names.* A column is `alias.column`, and has another name where rows of both sides meet. Where rows meet, a column
of the left input has its own name behind `l_`, one of the right input behind `r_`: no two are alike, so types and
values are never mistaken. A name without an alias is known if one side alone has it.

>>> from eventide.plan.expressions.columns import columns
>>> both = (columns("t INT, v INT"), columns("t INT, pos STRUCT<x: INT>"))
>>> names = JoinNames("j", ("a", "b"), both, both)
>>> names.over_pairs("a.t + b.pos.x > v", "the condition").sql("spark")
'`l_t` + `r_pos`.x > `l_v`'
>>> names.over_pairs("t > 1", "the condition")
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: join 'j': both inputs have a column 't': write a.t or b.t

*Bands.* They are whole numbers, exact also where an attribute has fractions. `low <= g(r) - f(l) <= high` is asked of
whole numbers: both sides are multiplied by the common denominator of what f and g add and multiply by, and by -1 where
both decrease. So `R.tr / 2 = S.ts + 1` is `tr = 2 * ts + 2`, and a value never falls as time grows. A heartbeat of a
side says what its later values are at least.

>>> from eventide.plan.declared.stream import columns
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
from eventide.eventtime.instant import EDGE, FOREVER, NEVER
from eventide.plan.bound.query import instant_of, instant_sql
from eventide.plan.bound.rows import output_columns
from eventide.plan.declared.join import Join
from eventide.plan.declared.query import RESERVED, Named
from eventide.plan.declared.stream import Derived, Stream, TimeKind, Timestamps, kind_of
from eventide.plan.declared.temporal import Temporal, temporal
from eventide.plan.expressions.columns import Column, named, quoted
from eventide.plan.expressions.parse import aggregates_in, check_columns, columns_in, lambda_names, parsed
from eventide.plan.expressions.spark_dialect import SPARK

PREFIXES = ("l_", "r_")
"""What stands before the names of the left and of the right input's columns where rows meet."""

LEFT, RIGHT = 0, 1


@dataclass(frozen=True)
class JoinNames:
    """The columns of both sides of a join, and how they are called."""

    join: str
    aliases: tuple[str, str]
    columns: tuple[tuple[Column, ...], tuple[Column, ...]]
    outputs: tuple[tuple[Column, ...], tuple[Column, ...]]
    """Those that are emitted where nothing is selected: of results all but their span, which goes into the pair's."""

    def over_pairs(self, sql: str, what: str) -> exp.Expression:
        """An expression over both sides, with the names that columns have where rows meet."""
        whole = exp.Paren(this=parsed(sql, f"{what} of join {self.join!r}"))
        if aggregates_in(whole):
            raise DeclarationError(
                f"join {self.join!r}: {what} {sql!r} aggregates rows, a join relates them one by one: "
                "aggregate in a query over the join"
            )
        for column in list(whole.find_all(exp.Column)):
            if column.parts[0].name.lower() not in lambda_names(column):
                column.replace(self._renamed(column))
        found = whole.this
        assert isinstance(found, exp.Expression)
        return found

    def spoken(self, side: int, expressions: list[exp.Expression]) -> tuple[Column, ...]:
        """The columns of a side that these expressions, over names where rows meet, speak of."""
        wanted = {column.name for one in expressions for column in one.find_all(exp.Column)}
        return tuple(column for column in self.columns[side] if PREFIXES[side] + column.name in wanted)

    @property
    def every(self) -> tuple[Named, ...]:
        """All columns of both sides; a name that would be there twice gets the alias before it."""
        own = [{column.name.lower() for column in one} for one in self.outputs]
        found = []
        for alias, mine, others in zip(self.aliases, self.outputs, reversed(own), strict=True):
            for column in mine:
                is_used = column.name.lower() in others or column.name.lower() in RESERVED
                name = f"{alias}_{column.name}" if is_used else column.name
                found.append(Named(name, f"{quoted(alias)}.{quoted(column.name)}"))
        return tuple(found)

    def _renamed(self, column: exp.Column) -> exp.Expression:
        first, *rest = column.parts
        sides = [side for side, alias in enumerate(self.aliases) if rest and alias.lower() == first.name.lower()]
        if sides:
            [side] = sides
            first, *rest = rest
        else:
            side = self._side_of(first.name)
        known = named(first.name, self.columns[side], f"join {self.join!r}: input {self.aliases[side]!r}")
        outputs: exp.Expression = exp.column(exp.to_identifier(PREFIXES[side] + known.name, quoted=True))
        for field in rest:
            outputs = exp.Dot(this=outputs, expression=field.copy())
        return outputs

    def _side_of(self, name: str) -> int:
        has = [any(column.name.lower() == name.lower() for column in one) for one in self.columns]
        left, right = self.aliases
        if all(has):
            raise DeclarationError(
                f"join {self.join!r}: both inputs have a column {name!r}: write {left}.{name} or {right}.{name}"
            )
        if not any(has):
            named(name, (*self.columns[LEFT], *self.columns[RIGHT]), f"join {self.join!r} of {left!r} and {right!r}")
        return has.index(True)


def names_of(join: Join, left: Stream, right: Stream) -> JoinNames:
    """The names of a join of these two."""
    outputs = (output_columns(left), output_columns(right))
    return JoinNames(join.name, (join.left.alias, join.right.alias), (left.columns, right.columns), outputs)


def meeting(join: Join, left: Stream, right: Stream) -> Derived:
    """A stream, of which no rows come, of the columns of both sides where rows meet: over it types are asked.

    >>> from eventide.plan.declared.join import Band, Side
    >>> from eventide.plan.declared.stream import columns
    >>> a, b = (Stream(name, columns("t INT"), time="t") for name in "ab")
    >>> [column.name for column in meeting(Join("j", Side("a"), Side("b"), (Band("t", "t"),)), a, b).columns]
    ['l_t', 'r_t']
    """
    every = tuple(
        Column(prefix + column.name, column.type)
        for prefix, stream in zip(PREFIXES, (left, right), strict=True)
        for column in stream.columns
    )
    return Derived(f"{join.name}__meeting", every, timestamps=Timestamps.INTERNAL)


def text(expression: exp.Expression) -> str:
    """An expression in Spark SQL."""
    return str(expression.sql(SPARK))


STAMP = "_time"
"""How a band speaks of the time of a stream that has no time column: of the stamp that its rows get."""


@dataclass(frozen=True)
class BandValue:
    """The whole number that a band compares, of one side: `sql` over its columns; `factor` times the attribute."""

    column: str
    attribute: Temporal
    factor: int
    sql: str

    @property
    def timed(self) -> BandValue | None:
        """The value as one that time tells."""
        return self

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
class RowValue:
    """The whole number that a row says itself, of which time says nothing; a band compares it as a `BandValue`."""

    sql: str
    timed: None = None
    """Time does not tell it."""

    @classmethod
    def of(cls, join: str, stream: Stream, sql: str, type: str) -> RowValue:
        """The value of an expression of this type.

        >>> from eventide.plan.declared.stream import columns
        >>> stream = Stream("r", columns("ts TIMESTAMP, till DATE"), time="ts")
        >>> RowValue.of("j", stream, "till", "DATE").sql
        '(CAST(unix_date(till) AS BIGINT) * 86400000000)'
        """
        if type not in WHOLE_TYPES:
            raise DeclarationError(
                f"join {join!r}: {sql!r} of {stream.name!r} is {type}, which bounds no time: make it a TIMESTAMP, or a "
                "whole number where times are numbers"
            )
        return cls(instant_of(sql, type))


TIME_TYPES = ("TIMESTAMP", "TIMESTAMP_NTZ", "DATE")
WHOLE_TYPES = (*TIME_TYPES, "BIGINT", "INT", "SMALLINT", "TINYINT")
"""What a row may say that bounds times."""


@dataclass(frozen=True)
class WholeBand:
    """A band in whole numbers: the value of each side, and low <= right - left <= high.

    An end that is open is NEVER or FOREVER.
    """

    left: BandValue | RowValue
    right: BandValue | RowValue
    low: int
    high: int

    @property
    def values(self) -> tuple[BandValue | RowValue, BandValue | RowValue]:
        """The values of both sides."""
        return self.left, self.right

    @property
    def is_closed(self) -> bool:
        """Whether both ends are known."""
        return self.low != NEVER and self.high != FOREVER

    def end_of(self, side: int) -> int | None:
        """By how much the partners of a row of the side are ahead of it at most; None where that is open.

        >>> a = RowValue("a")
        >>> WholeBand(a, a, NEVER, 3).end_of(LEFT), WholeBand(a, a, NEVER, 3).end_of(RIGHT)
        (3, None)
        """
        if side == LEFT:
            return None if self.high == FOREVER else self.high
        return None if self.low == NEVER else -self.low

    def temporal(self, side: int) -> BandValue | None:
        """The value of a side; None where only the row knows it."""
        return self.values[side].timed


@dataclass(frozen=True)
class TemporalAttribute:
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
            whole = instant_of(self.sql, self.type)
            return whole if factor == 1 else f"{whole} * {factor}"
        # A fraction times its denominator is a whole number, but for the last digits.
        return f"CAST(round(({self.sql}) * {factor}) AS BIGINT)"


def attribute(
    join: str, stream: Stream, sql: str, time_columns: tuple[str, ...], type: str = "BIGINT"
) -> TemporalAttribute:
    """Read one side of a band; `time_columns` are the columns of the stream that carry time.

    >>> from eventide.plan.declared.stream import columns
    >>> attribute("j", Stream("r", columns("tr BIGINT, v INT"), time="tr"), "v + 1", ("tr",))
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: join 'j': 'v + 1' is no temporal attribute of 'r', so rows could never be let \
go: relate 'tr', or what grows or falls with it
    """
    expression = parsed(sql, f"a band of join {join!r}")
    stamp = (Column(STAMP, "TIMESTAMP"),) if stream.time is None else ()
    check_columns(expression, (*stream.columns, *stamp), f"join {join!r}, input {stream.name!r}")
    time_columns = time_columns or (STAMP,)
    for name in columns_in(expression):
        carrier = next((one for one in time_columns if one.lower() == name.lower()), None)
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
            return TemporalAttribute(stream, carrier, found, sql, type)
    known = " or ".join(repr(name) for name in time_columns)
    raise DeclarationError(
        f"join {join!r}: {sql!r} is no temporal attribute of {stream.name!r}, so rows could never be let go: "
        f"relate {known}, or what grows or falls with it"
    )


def _check_exact(join: str, sql: str, expression: exp.Expression, found: Temporal) -> None:
    rounds = any(cast.to.is_type("decimal") for cast in expression.find_all(exp.Cast))
    if rounds or (not found.whole and found.steps is None):
        raise DeclarationError(
            f"join {join!r}: {sql!r} is rounded in a way that cannot be computed exactly: use floor, ceil or div"
        )
