"""Which expressions can fail on some row, as far as their words and the types of columns tell.

Law: what is said not to fail never does. What may fail need not.

>>> from eventide.plan.expressions import parsed
>>> types = Types({"n": "INT", "x": "DOUBLE", "s": "STRING"})
>>> [may_fail(parsed(sql, "q"), types) for sql in ("n > 3 AND s = 'a'", "x * 2", "CAST(n AS BIGINT)", "upper(s)")]
[False, False, False, False]
>>> [may_fail(parsed(sql, "q"), types) for sql in ("s > 3", "n * 2", "CAST(s AS INT)", "x / n", "my_own(s)")]
[True, True, True, True, True]
"""

from __future__ import annotations

from sqlglot import exp

from eventide.plan.spark_types import RANKS, Types

PASSING = (
    exp.Paren, exp.Not, exp.And, exp.Or, exp.Is, exp.Case, exp.If, exp.Coalesce, exp.Null, exp.Boolean, exp.Tuple,
    exp.Identifier, exp.Star, exp.Var,
)  # fmt: skip
"""What fails only if a part of it does."""

COMPARING = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.In, exp.Between, exp.Nullif)
"""What fails only if a part does, or where texts meet numbers: these are cast."""

OF_TEXT = (exp.Upper, exp.Lower, exp.Length, exp.Trim)
"""Functions of one text that take any text."""

FRACTIONS = ("FLOAT", "DOUBLE")


def may_fail(node: exp.Expression, types: Types) -> bool:
    """Whether there may be a row for which the expression raises an error."""
    if isinstance(node, exp.Column | exp.Dot):
        return False
    if isinstance(node, exp.Literal | exp.Interval | exp.DataType):
        return False
    if isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal):
        # A typed constant such as DATE '2000-01-01' is the same for every row: it was tried when it was declared.
        return False
    if not _total(node, types):
        return True
    return any(may_fail(part, types) for part in node.iter_expressions() if isinstance(part, exp.Expression))


def _total(node: exp.Expression, types: Types) -> bool:
    """Whether the node itself takes whatever its parts give."""
    if isinstance(node, PASSING):
        return True
    if isinstance(node, exp.TryCast) and node.args.get("safe"):
        return True
    if isinstance(node, exp.Cast):
        return _total_cast(types.of(node.this), types.of(node))
    kinds = [types.of(part) for part in node.iter_expressions() if not isinstance(part, exp.DataType)]
    if isinstance(node, COMPARING):
        return len({_family(kind) for kind in kinds if kind != "VOID"}) <= 1 and None not in kinds
    if isinstance(node, OF_TEXT):
        return kinds == ["STRING"]
    if isinstance(node, exp.Add | exp.Sub | exp.Mul):
        return types.of(node) in FRACTIONS
    return False


def _family(kind: str | None) -> str | None:
    return "number" if kind is not None and (kind in RANKS or kind.startswith("DECIMAL")) else kind


def _total_cast(source: str | None, to: str | None) -> bool:
    if source is None or to is None:
        return False
    if source in RANKS and to in RANKS:
        return RANKS.index(source) <= RANKS.index(to)
    atomic = _family(source) == "number" or source in ("BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ")
    return source == to or source == "VOID" or (to == "STRING" and atomic)
