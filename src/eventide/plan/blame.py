"""Which piece of an expression failed, and why, told by its words.

Law: pieces are told from the inside out, each after those it always computes first; so the first that fails is the one
to blame. What is computed only for some rows (a branch of CASE) is blamed as a whole.

>>> from eventide.plan.expressions import parsed
>>> types = Types({"a": "INT", "s": "STRING"})
>>> [(p.node.sql("spark"), p.why) for p in blamed(parsed("a + CAST(s AS INT)", "q"), types)]
[('CAST(s AS INT)', 'the value is no INT'), ('a + CAST(s AS INT)', 'the result does not fit INT')]
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from eventide.plan.aggregate_call import decimal_of
from eventide.plan.expressions import SPARK, name_of
from eventide.plan.may_fail import may_fail
from eventide.plan.spark_types import DIGITS, RANKS, Types

DIVIDING = (exp.Div, exp.IntDiv, exp.Mod)
FITTING = (exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Abs)


@dataclass(frozen=True)
class Blamed:
    """A piece, and why it fails if nothing inside of it does; an empty text where the words do not tell."""

    node: exp.Expression
    why: str


def spelled(node: exp.Expression) -> str:
    """The piece as the user knows it: functions keep the letters they were written in.

    >>> from eventide.plan.expressions import parsed
    >>> spelled(parsed("my_own(a)", "q"))
    'my_own(a)'
    """
    return node.sql(SPARK, normalize_functions=False)


def blamed(node: exp.Expression, types: Types) -> list[Blamed]:
    """The pieces that may fail, the whole as the last of them."""
    if not may_fail(node, types) or isinstance(node, exp.Lambda):
        return []
    inside = [piece for part in _always_computed(node) for piece in blamed(part, types)]
    return inside if isinstance(node, exp.Paren) else [*inside, Blamed(node, _why(node, types))]


def _always_computed(node: exp.Expression) -> Iterable[exp.Expression]:
    if isinstance(node, exp.Case):
        first = node.args.get("this")
        return [node.args["ifs"][0].this] if first is None else [first]
    if isinstance(node, exp.If | exp.And | exp.Or | exp.Coalesce):
        return [node.this]
    return [part for part in node.iter_expressions() if isinstance(part, exp.Expression)]


def _why(node: exp.Expression, types: Types) -> str:
    if isinstance(node, exp.Cast):
        return f"the value is no {types.of(node)}"
    if isinstance(node, exp.Bracket):
        return "there is no such element"
    numbers = all(_is_number(types.of(part)) for part in node.iter_expressions())
    if isinstance(node, DIVIDING) or (isinstance(node, exp.Anonymous) and name_of(node) == "pmod"):
        return "division by zero" if numbers else ""
    if isinstance(node, FITTING) and numbers:
        kind = types.of(node)
        return f"the result does not fit {kind}" if kind in DIGITS or decimal_of(kind or "") else ""
    return ""


def _is_number(kind: str | None) -> bool:
    return kind is not None and (kind in RANKS or decimal_of(kind) is not None)
