"""What a call of an aggregate computes for each row: its FILTER, its arguments, what it orders by.

Law: FILTER comes first; for a row that it leaves out, nothing else is computed. Plain columns and constants are not
told: there is nothing to compute.

>>> from eventide.plan.expressions import parsed
>>> [a.lazy.sql("spark") for a in row_arguments(parsed("sum(a / b) FILTER (WHERE c > 0)", "q"))]
['c > 0', 'CASE WHEN c > 0 THEN a / b END']
>>> [a.lazy.sql("spark") for a in row_arguments(parsed("percentile_cont(0.5) WITHIN GROUP (ORDER BY a + 1)", "q"))]
['a + 1']
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sqlglot import exp

from eventide.plan.expressions import WRAPPERS

STRUCTURE = (exp.Distinct, exp.Order, exp.Ordered, exp.IgnoreNulls, exp.RespectNulls)
"""What only arranges arguments."""


@dataclass(frozen=True)
class RowArgument:
    """An expression that is computed where the condition holds, or for every row."""

    node: exp.Expression
    condition: exp.Expression | None = None

    @property
    def lazy(self) -> exp.Expression:
        """The expression, computed only where it is wanted."""
        return self.node if self.condition is None else exp.Case().when(self.condition, self.node)


def row_arguments(aggregate: exp.Expression) -> tuple[RowArgument, ...]:
    """All of them, in the order in which they are computed."""
    condition: exp.Expression | None = None
    beside: list[exp.Expression] = []
    while isinstance(aggregate, WRAPPERS):
        if isinstance(aggregate, exp.Filter):
            condition = aggregate.expression.this
        elif isinstance(aggregate, exp.WithinGroup):
            beside.append(aggregate.expression)
        aggregate = aggregate.this
    computed = [part for part in _leaves([*aggregate.iter_expressions(), *beside]) if _computes(part)]
    first = () if condition is None else (RowArgument(condition),)
    return (*first, *(RowArgument(part, condition) for part in computed))


def _leaves(parts: Iterable[exp.Expr]) -> Iterator[exp.Expression]:
    for part in parts:
        if isinstance(part, STRUCTURE):
            yield from _leaves(part.iter_expressions())
        elif isinstance(part, exp.Expression):
            yield part


def _computes(part: exp.Expression) -> bool:
    bare = part.unnest()
    return not isinstance(bare, exp.Column) and bare.find(exp.Column) is not None
