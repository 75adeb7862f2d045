"""Temporal attributes: which expressions and columns still carry time, and what a heartbeat says of them.

Laws. An attribute f(time) that is *increasing* never falls when time grows (*decreasing*: never rises). After heartbeat
h no row has a time <= h, so every later row has f >= f(h + 1) (decreasing: f <= f(h + 1)). Carried through: adding and
subtracting a constant or an interval, multiplying and dividing by a constant other than 0, `div`, floor, ceil, unary
minus, casts, `date_trunc` and `unix_...` (Gigascope paper, section 2; time/60 is its own example). Expressions of type
TIMESTAMP and DATE are reckoned in microseconds, all others in their own numbers. *Columns*: a column is carried when a
row whose time is t has no smaller value in it than `least(t)`, and `least` never falls as t grows. `window_end` of a
result is one after its time, `window_start` the start of the first window that ends then.

>>> from eventide.plan.expressions.parse import parsed
>>> tb = temporal(parsed("time div 60", "q"), "time", TimeKind.SEQUENCE)
>>> tb.increasing, tb.value(179), tb.least_later(179), tb.bucket
(True, 2, 3, Bucket(width=60, offset=0))
>>> temporal(parsed("(time - pmod(time, 60)) div 60", "q"), "time", TimeKind.SEQUENCE).value(-1)
-1
>>> temporal(parsed("-time", "q"), "time", TimeKind.SEQUENCE).increasing
False
>>> temporal(parsed("time % 60", "q"), "time", TimeKind.SEQUENCE) is None
True

>>> from datetime import datetime, UTC
>>> cut = truncated("MONTH")
>>> datetime.fromtimestamp(cut(1_700_000_000_000_000) / 1e6, UTC).isoformat()
'2023-11-01T00:00:00+00:00'

>>> from eventide.plan.declared.stream import Stream, columns
>>> traffic = Stream("traffic", columns("ts BIGINT, speed INT"), time="ts")
>>> least_of("ts div 60", traffic)(179), least_of("speed", traffic), least_of("-ts", traffic)
(2, None, None)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import ceil, floor, trunc

from sqlglot import exp

from eventide.plan.declared.stream import Derived, Least, Stream, TimeKind, kind_of
from eventide.plan.expressions.parse import columns_in, parsed

SECOND = 1_000_000
DAY = 86_400 * SECOND
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

FIXED: dict[str, tuple[int, int]] = {
    "MICROSECOND": (1, 0),
    "MILLISECOND": (1000, 0),
    "SECOND": (SECOND, 0),
    "MINUTE": (60 * SECOND, 0),
    "HOUR": (3600 * SECOND, 0),
    "DAY": (DAY, 0),
    "DD": (DAY, 0),
    # 1970 began on a Thursday, and weeks begin on Mondays.
    "WEEK": (7 * DAY, 4 * DAY),
}
"""Units of one length: how many microseconds, and where one of them begins."""

MONTHS = {"MONTH": 1, "MON": 1, "MM": 1, "QUARTER": 3, "YEAR": 12, "YYYY": 12, "YY": 12}


def truncated(unit: str) -> Callable[[int], int] | None:
    """A function that cuts instants (microseconds) down to the unit; None for a unit that is not known."""
    if unit in FIXED:
        width, origin = FIXED[unit]
        return lambda instant: instant - (instant - origin) % width
    if unit in MONTHS:
        months = MONTHS[unit]
        return lambda instant: _first_of_months(instant, months)
    return None


def _first_of_months(instant: int, months: int) -> int:
    moment = EPOCH + timedelta(microseconds=instant)
    month = (moment.month - 1) // months * months + 1
    first = datetime(moment.year, month, 1, tzinfo=UTC)
    return (first - EPOCH) // timedelta(microseconds=1)


WHOLE = ("TINYINT", "SMALLINT", "INT", "BIGINT")

Number = int | Fraction


@dataclass(frozen=True)
class Bucket:
    """Stretches of time on which an attribute has one value: [offset + k * width, offset + (k + 1) * width)."""

    width: int
    offset: int


@dataclass(frozen=True)
class Steps:
    """Where a step function jumps, and between its jumps how it grows: it is scale * k + shift in the k-th stretch."""

    width: Fraction
    offset: Fraction
    scale: Fraction = Fraction(1)
    shift: Fraction = Fraction(0)

    def floored(self) -> Steps | None:
        """Rounded down; None where the stretches then are no longer equal."""
        if self.scale <= 0 or (1 / self.scale).denominator != 1:
            return None
        # Values jump only between stretches, so a part of one counts for nothing.
        return Steps(self.width / self.scale, self.offset - self.width * floor(self.shift / self.scale))


@dataclass(frozen=True)
class Temporal:
    """An attribute that carries time.

    `micros` tells that its values are instants (TIMESTAMP or DATE), not plain numbers; `whole` that they are whole.
    """

    value: Callable[[int], Number]
    increasing: bool = True
    micros: bool = False
    whole: bool = True
    steps: Steps | None = Steps(Fraction(1), Fraction(0))

    def least_later(self, heartbeat: int) -> Number:
        """What every later row has at least; of a decreasing attribute, at most."""
        return self.value(heartbeat + 1)

    def heartbeat(self, heartbeat: int) -> int:
        """The heartbeat of a whole attribute that the heartbeat of time brings: nothing at or below it any more.

        Of a decreasing attribute: nothing at or above it any more.
        """
        least = self.least_later(heartbeat)
        return ceil(least) - 1 if self.increasing else floor(least) + 1

    @property
    def bucket(self) -> Bucket | None:
        """The stretches of time on which the value stays the same; None where they are not all equally long."""
        steps = self.steps
        if steps is None or not self.increasing or steps.width.denominator != 1 or steps.offset.denominator != 1:
            return None
        return Bucket(int(steps.width), int(steps.offset % steps.width)) if steps.width > 0 else None

    @property
    def shifted(self) -> int | None:
        """By how much the attribute is ahead of time itself; None if it is more than time shifted."""
        steps = self.steps
        if steps is None or steps.width != 1 or steps.scale != 1 or steps.offset or steps.shift.denominator != 1:
            return None
        return int(steps.shift)


def temporal(expression: exp.Expr, time: str | None, kind: TimeKind) -> Temporal | None:
    """What an expression over the columns of a stream says about time, or None if it says nothing certain."""
    if time is None:
        return None
    return _of(expression, time.lower(), kind)


def carried(projection: Iterable[tuple[str, exp.Expr]], time: str | None, kind: TimeKind) -> dict[str, Temporal]:
    """The outputs of a projection that carry time.

    >>> from eventide.plan.expressions.parse import parsed
    >>> outputs = [("m", parsed("ts div 60", "q")), ("v", parsed("v + 1", "q"))]
    >>> list(carried(outputs, "ts", TimeKind.SEQUENCE))
    ['m']
    """
    found = ((name, temporal(expression, time, kind)) for name, expression in projection)
    return {name: one for name, one in found if one is not None}


def _of(node: exp.Expr, time: str, kind: TimeKind) -> Temporal | None:
    if isinstance(node, exp.Column):
        named = node.name.lower() == time and not node.args.get("table")
        return Temporal(lambda t: t, micros=kind is not TimeKind.SEQUENCE) if named else None
    inner = node.this if isinstance(node.this, exp.Expr) else None
    if isinstance(node, exp.Paren) and inner is not None:
        return _of(inner, time, kind)
    if (counted := _in_whole_numbers(node)) is not None:
        return _of(counted, time, kind)
    if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.IntDiv):
        return _arithmetic(node, time, kind)
    below = _of(inner, time, kind) if inner is not None else None
    if below is None:
        return None
    if isinstance(node, exp.Neg):
        return None if below.micros else _scaled(below, Fraction(-1))
    if isinstance(node, exp.Floor | exp.Ceil):
        if below.micros or node.args.get("decimals") is not None:
            return None
        return _rounded(below, floor if isinstance(node, exp.Floor) else ceil)
    if isinstance(node, exp.Cast):
        return _cast(below, node.to.sql("spark"))
    if isinstance(node, exp.TsOrDsToDate) and below.micros and node.args.get("format") is None:
        return _truncated(below, "DAY")
    if isinstance(node, exp.TimestampTrunc | exp.DateTrunc) and below.micros:
        unit = node.args.get("unit")
        return (
            _truncated(below, unit.name.upper()) if isinstance(unit, exp.Expr) and not node.args.get("zone") else None
        )
    for function, grain in (
        (exp.UnixMicros, 1),
        (exp.UnixMillis, 1000),
        (exp.UnixSeconds, SECOND),
        (exp.UnixDate, DAY),
    ):
        if isinstance(node, function) and below.micros:
            return _rounded(_scaled(replace(below, micros=False), Fraction(1, grain)), floor)
    return None


def with_floors(expression: exp.Expr) -> exp.Expr:
    """The expression with `floor(x / n)` for what computes that in whole numbers."""
    return expression.transform(lambda node: _in_whole_numbers(node) or node)


def _in_whole_numbers(node: exp.Expr) -> exp.Expr | None:
    """`(x - pmod(x, n)) div n` as `floor(x / n)`: so the language writes time/60, whole numbers all through."""
    if not isinstance(node, exp.IntDiv) or not isinstance(node.this, exp.Paren):
        return None
    less, divisor = node.this.this, node.expression
    rest = less.expression if isinstance(less, exp.Sub) else None
    if not isinstance(rest, exp.Anonymous) or rest.name.lower() != "pmod" or len(rest.expressions) != 2:
        return None
    whole = less.this.this if isinstance(less.this, exp.Paren) else less.this
    if rest.expressions[0] != whole or rest.expressions[1] != divisor:
        return None
    return exp.Floor(this=exp.Div(this=whole.copy(), expression=divisor.copy()))


def _arithmetic(node: exp.Expr, time: str, kind: TimeKind) -> Temporal | None:
    left, right = _of(node.this, time, kind), _of(node.expression, time, kind)
    if (left is None) == (right is None):
        return None
    below = left or right
    assert below is not None
    other = node.expression if left is not None else node.this
    if below.micros:
        length = interval_of(other)
        if (
            length is None
            or not isinstance(node, exp.Add | exp.Sub)
            or (right is not None and isinstance(node, exp.Sub))
        ):
            return None
        return _shifted(below, Fraction(length if isinstance(node, exp.Add) else -length))
    number = _constant(other)
    if number is None:
        return None
    if isinstance(node, exp.Add):
        return _shifted(below, number)
    if isinstance(node, exp.Sub):
        return _shifted(below, -number) if left is not None else _shifted(_scaled(below, Fraction(-1)), number)
    if isinstance(node, exp.Mul):
        return _scaled(below, number) if number else None
    if left is None or not number:
        return None
    divided = _scaled(below, 1 / number)
    return _rounded(divided, trunc) if isinstance(node, exp.IntDiv) else divided


def _shifted(below: Temporal, by: Fraction) -> Temporal:
    value, steps = below.value, below.steps
    moved = replace(steps, shift=steps.shift + by) if steps is not None else None
    return replace(below, value=lambda t: value(t) + by, whole=below.whole and by.denominator == 1, steps=moved)


def _scaled(below: Temporal, by: Fraction) -> Temporal:
    value, steps = below.value, below.steps
    grown = replace(steps, scale=steps.scale * by, shift=steps.shift * by) if steps is not None else None
    return replace(
        below,
        value=lambda t: value(t) * by,
        increasing=below.increasing == (by > 0),
        whole=below.whole and by.denominator == 1,
        steps=grown,
    )


def _rounded(below: Temporal, how: Callable[[Number], int]) -> Temporal:
    """Rounded to whole numbers. Stretches are given as if rounded down: around 0, `div` makes one twice as long."""
    value, steps = below.value, below.steps
    if below.whole:
        return below
    stretches = steps.floored() if steps is not None and how is not ceil else None
    return replace(below, value=lambda t: how(value(t)), whole=True, steps=stretches)


def _truncated(below: Temporal, unit: str) -> Temporal | None:
    cut = truncated(unit)
    if cut is None:
        return None
    value, steps = below.value, None
    if unit in FIXED and below.steps is not None and below.shifted is not None:
        width, origin = FIXED[unit]
        # Values no longer follow from the number of a stretch, so only its ends are kept.
        steps = Steps(Fraction(width), Fraction(origin - below.shifted), Fraction(width), Fraction(origin))
    return replace(below, value=lambda t: cut(int(value(t))), steps=steps)


def _cast(below: Temporal, kind: str) -> Temporal | None:
    if below.micros:
        if kind in ("TIMESTAMP", "TIMESTAMP_NTZ"):
            return below
        if kind == "DATE":
            return _truncated(below, "DAY")
        return _rounded(_scaled(replace(below, micros=False), Fraction(1, SECOND)), floor) if kind == "BIGINT" else None
    if kind in WHOLE:
        return _rounded(below, trunc)
    if kind in ("DOUBLE",) or kind.startswith("DECIMAL"):
        # Rounding in the last place keeps the order, though not the exact value.
        return below
    return None


def _constant(node: exp.Expr) -> Fraction | None:
    if isinstance(node, exp.Paren):
        return _constant(node.this)
    if isinstance(node, exp.Neg):
        below = _constant(node.this)
        return -below if below is not None else None
    if isinstance(node, exp.Literal) and not node.is_string:
        try:
            return Fraction(node.name)
        except ValueError:
            return None
    return None


def interval_of(node: exp.Expr) -> int | None:
    """The microseconds of an interval of fixed length."""
    if not isinstance(node, exp.Interval) or not isinstance(node.this, exp.Literal):
        return None
    unit = node.args.get("unit")
    grain = FIXED.get(unit.name.upper().removesuffix("S")) if isinstance(unit, exp.Var) else None
    try:
        length = Fraction(node.this.name) * grain[0] if grain else None
    except ValueError:
        return None
    return int(length) if length is not None and length.denominator == 1 else None


def time_columns(stream: Stream) -> dict[str, Least | None]:
    """The columns that carry time, each with its least value for a time, where that is known before it runs.

    >>> from eventide.plan.expressions.columns import columns
    >>> from eventide.plan.declared.window import Window
    >>> sums = Derived.of("sums", columns("total BIGINT"), TimeKind.SEQUENCE, Window(60, 20))
    >>> {name: least(79) for name, least in time_columns(sums).items()}
    {'window_end': 80}
    """
    if isinstance(stream, Derived):
        return {"window_end": lambda t: t + 1, **dict(stream.carries)}
    return {} if stream.time is None else {stream.time: lambda t: t}


def over_time_column(sql: str, stream: Stream) -> tuple[str, Temporal] | None:
    """The column with time that an expression is made of, and the expression as a function of it.

    None where it is made of no such column or of several, or does not carry time on. The function may be decreasing.

    >>> from eventide.plan.expressions.columns import columns
    >>> name, doubled = over_time_column("2 * TS", Stream("s", columns("ts BIGINT"), time="ts"))
    >>> name, doubled.value(7) == 14
    ('ts', True)
    """
    expression = parsed(sql, "an expression")
    known = {name.lower(): name for name in time_columns(stream)}
    spoken = columns_in(expression)
    if len(spoken) != 1 or spoken[0].lower() not in known:
        return None
    name = known[spoken[0].lower()]
    found = temporal(expression, name, kind_of(stream.column(name)) or TimeKind.SEQUENCE)
    return None if found is None else (name, found)


def least_of(sql: str, stream: Stream) -> Least | None:
    """The least value of an expression for a time; None where it does not carry time upwards."""
    found = over_time_column(sql, stream)
    if found is None:
        return None
    name, carried = found
    below = time_columns(stream)[name]
    if below is None or not carries_on(carried):
        return None
    return lambda t: carried.value(below(t))  # type: ignore[arg-type]


def carries_on(carried: Temporal) -> bool:
    """Whether a column that is computed so has a least value too.

    A fraction is rounded when it is computed, so that its least value is not exactly known.
    """
    return carried.increasing and carried.whole
