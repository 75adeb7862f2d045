"""One call of an aggregate, taken apart, and the partial columns that its form asks for.

>>> from eventide.plan.expressions import parsed
>>> call = call_from(parsed("sum(x + 1) FILTER (WHERE y > 0)", "q"))
>>> call.name, call.over_rows(call.arguments[0])
('sum', 'IF(y > 0, x + 1, NULL)')
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.plan.expressions import SPARK, WRAPPERS, name_of
from eventide.plan.partials import Partial


@dataclass(frozen=True)
class Call:
    """A call: the function's name, its arguments, and what stands around it."""

    name: str
    arguments: tuple[exp.Expression, ...]
    where: exp.Expression | None = None
    distinct: bool = False
    ignore_nulls: bool = False
    ordered: bool = False

    def over_rows(self, argument: exp.Expression | str) -> str:
        """The argument, NULL for rows that FILTER leaves out."""
        text = argument if isinstance(argument, str) else argument.sql(SPARK)
        return text if self.where is None else f"IF({self.where.sql(SPARK)}, {text}, NULL)"


def call_from(aggregate: exp.Expression) -> Call:
    """Take a call apart, as `expressions.aggregates_in` found it."""
    where: exp.Expression | None = None
    ignore_nulls = ordered = False
    while isinstance(aggregate, WRAPPERS):
        if isinstance(aggregate, exp.Filter):
            where = aggregate.expression.this
        ignore_nulls |= isinstance(aggregate, exp.IgnoreNulls)
        ordered |= isinstance(aggregate, exp.WithinGroup)
        aggregate = aggregate.this
    arguments = _arguments(aggregate)
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = tuple(arguments[0].expressions)
    return Call(name_of(aggregate), arguments, where, distinct, ignore_nulls, ordered)


def _arguments(call: exp.Expression) -> tuple[exp.Expression, ...]:
    if isinstance(call, exp.Anonymous):
        return tuple(call.expressions)
    if isinstance(call, exp.Any):
        return (call.this.unnest(),)
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

    def keep(self, kind: str, reduce: str, merge: str) -> str:
        """The name of a partial of that type; `merge` speaks of the column itself as `{}`."""
        key = (reduce, merge)
        if key not in self.kept:
            name = f"{self.prefix}_{len(self.kept)}"
            self.kept[key] = Partial(name, kind, reduce, merge.format(name))
        return self.kept[key].name


@dataclass(frozen=True)
class Told:
    """The value of one aggregate over merged partials, its type, and what must hold for it."""

    value: str
    type: str
    checks: tuple[tuple[str, str], ...] = ()
