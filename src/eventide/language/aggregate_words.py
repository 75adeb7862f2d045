"""Aggregates in the words of the papers and of those who mistype them.

>>> from eventide.plan.expressions.parse import parsed
>>> has_aggregate(parsed("max(x) - 1", "q")), has_aggregate(parsed("upper(x)", "q")), meant_aggregate("avgg")
(True, False, 'avg')
"""

from __future__ import annotations

from sqlglot import exp

from eventide.language.nearest import nearest
from eventide.plan.expressions.parse import OTHER_AGGREGATES, aggregates_in

KNOWN = sorted(
    {name.lower() for call in exp.ALL_FUNCTIONS if issubclass(call, exp.AggFunc) for name in call.sql_names()}
    | OTHER_AGGREGATES
)

PAPER_NAMES = {"average": exp.Avg}
"""What the papers call an aggregate that Spark calls otherwise."""


def has_aggregate(expression: exp.Expr) -> bool:
    """Whether an expression has an aggregate in it."""
    return isinstance(expression, exp.Expression) and bool(aggregates_in(expression))


def inside_aggregates(expression: exp.Expr) -> set[int]:
    """The nodes inside aggregates, by identity."""
    assert isinstance(expression, exp.Expression)
    return {id(node) for call in aggregates_in(expression) for node in call.walk()}


def meant_aggregate(name: str) -> str | None:
    """The aggregate whose name is nearest."""
    return nearest(name, KNOWN)


def in_spark_words(node: exp.Expr) -> exp.Expr:
    """The node, with a paper's name for an aggregate replaced by Spark's."""
    if isinstance(node, exp.Anonymous) and node.name.lower() in PAPER_NAMES and len(node.expressions) == 1:
        found = PAPER_NAMES[node.name.lower()](this=node.expressions[0])
        found.meta.update(node.meta)
        return found
    return node
