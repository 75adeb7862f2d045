"""One call of an aggregate, taken apart, and the partial columns that its form asks for.

>>> from eventide.plan.expressions import parsed
>>> call = call_from(parsed("sum(x + 1) FILTER (WHERE y > 0)", "q"))
>>> call.name, call.over_rows("x + 1")
('sum', 'IF(y > 0, x + 1, NULL)')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.plan.expressions import SPARK, WRAPPERS, name_of
from eventide.plan.partials import Partial

SMALL = ("TINYINT", "SMALLINT", "INT")
FRACTIONS = ("FLOAT", "DOUBLE")


@dataclass(frozen=True)
class Call:
    """A call: the function's name, its arguments as SQL, and what stands around it."""

    name: str
    arguments: tuple[str, ...]
    where: str | None = None
    distinct: bool = False
    ignore_nulls: bool = False
    ordered: bool = False

    def over_rows(self, argument: str) -> str:
        """The argument, NULL for rows that FILTER leaves out."""
        return argument if self.where is None else f"IF({self.where}, {argument}, NULL)"


def call_from(aggregate: exp.Expression) -> Call:
    """Take a call apart, as `expressions.aggregates_in` found it."""
    where: str | None = None
    ignore_nulls = ordered = False
    while isinstance(aggregate, WRAPPERS):
        if isinstance(aggregate, exp.Filter):
            where = aggregate.expression.this.sql(SPARK)
        ignore_nulls |= isinstance(aggregate, exp.IgnoreNulls)
        ordered |= isinstance(aggregate, exp.WithinGroup)
        aggregate = aggregate.this
    arguments = _arguments(aggregate)
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = tuple(arguments[0].expressions)
    return Call(name_of(aggregate), tuple(a.sql(SPARK) for a in arguments), where, distinct, ignore_nulls, ordered)


def _arguments(call: exp.Expression) -> tuple[exp.Expression, ...]:
    if isinstance(call, exp.Anonymous):
        return tuple(call.expressions)
    known = [call.args.get(key) for key in call.arg_types]
    flat = [item for value in known for item in (value if isinstance(value, list) else [value])]
    return tuple(item for item in flat if isinstance(item, exp.Expression))


@dataclass
class Columns:
    """The partial columns of one split, named by a prefix and a number; the same column is kept once."""

    prefix: str
    type_of: Callable[[str], str]
    time: str
    kept: dict[tuple[str, str], Partial] = field(default_factory=dict)

    def keep(self, kind: str, reduce: str, merge: str, beside: str = "") -> str:
        """The name of a partial of that type.

        `merge` speaks of the column itself as `{0}` and of the value of `beside`, which is a window aggregate over
        all that is merged, as `{1}`.
        """
        key = (reduce, merge)
        if key not in self.kept:
            name = f"{self.prefix}_{len(self.kept)}"
            over = ((f"{name}_over", beside),) if beside else ()
            self.kept[key] = Partial(name, kind, reduce, merge.format(name, f"{name}_over"), over)
        return self.kept[key].name


@dataclass(frozen=True)
class Told:
    """The value of one aggregate over merged partials, its type, and what must hold for it."""

    value: str
    type: str
    checks: tuple[tuple[str, str], ...] = ()


Form = Callable[[Call, Columns], Told | None]
"""How an aggregate is told from partials; None where it cannot be, for these arguments."""


def decimal_of(kind: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type.

    >>> decimal_of("DECIMAL(10, 2)"), decimal_of("INT")
    ((10, 2), None)
    """
    if not kind.startswith("DECIMAL"):
        return None
    parts = kind.removeprefix("DECIMAL").strip("()").split(",")
    return (int(parts[0] or 10), int(parts[1]) if len(parts) > 1 else 0)
