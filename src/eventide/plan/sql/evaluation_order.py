"""Find expressions that can fail, and keep Spark's order of evaluation on every engine.

Law: the same value, and an error for the same rows. Spark skips the right side of AND, OR and of operators where the
left side decides alone (FALSE, TRUE, NULL), the left side of a division by NULL, the place in an array that is NULL.
DuckDB computes both sides of all rows, and ahead of COALESCE what occurs in it twice. CASE is in order on both engines.

>>> from eventide.plan.expressions.parse import parsed
>>> in_evaluation_order(parsed("b <> 0 AND a / b > 1", "q"), SparkTypes({"a": "INT", "b": "INT"})).sql("spark")
'CASE WHEN NOT (b <> 0) THEN FALSE ELSE b <> 0 AND a / b > 1 END'
>>> in_evaluation_order(parsed("a + CAST(s AS INT)", "q"), SparkTypes({})).sql("spark")
'a + CASE WHEN a IS NULL THEN NULL ELSE CAST(s AS INT) END'

*Failing.* Which expressions can fail on some row is known as far as their words and the types of columns say. What is
said not to fail never does. What may fail need not.

>>> from eventide.plan.expressions.parse import parsed
>>> types = SparkTypes({"n": "INT", "x": "DOUBLE", "s": "STRING"})
>>> [may_fail(parsed(sql, "q"), types) for sql in ("n > 3 AND s = 'a'", "x * 2", "CAST(n AS BIGINT)", "upper(s)")]
[False, False, False, False]
>>> [may_fail(parsed(sql, "q"), types) for sql in ("s > 3", "n * 2", "CAST(s AS INT)", "x / n", "my_own(s)")]
[True, True, True, True, True]
"""

from __future__ import annotations

from functools import reduce

from sqlglot import exp

from eventide.plan.expressions.spark_types import RANKS, SparkTypes

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


def may_fail(node: exp.Expression, types: SparkTypes) -> bool:
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


def _total(node: exp.Expression, types: SparkTypes) -> bool:
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


LEFT_FIRST = (exp.Add, exp.Sub, exp.Mul, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
RIGHT_FIRST = (exp.Div, exp.IntDiv, exp.Mod)


def in_evaluation_order(node: exp.Expression, types: SparkTypes) -> exp.Expression:
    """A copy of the expression in which nothing is computed that Spark would skip."""
    if isinstance(node, exp.And | exp.Or):
        return _connected(node, types)
    if isinstance(node, exp.Between) and any(may_fail(node.args[key], types) for key in ("low", "high")):
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
        return exp.paren(in_evaluation_order(exp.And(this=low, expression=high), types))
    if isinstance(node, LEFT_FIRST):
        return _operated(node, types)[0]
    again = _with_parts(node, types)
    if isinstance(again, exp.Coalesce) and any(may_fail(part, types) for part in again.expressions):
        return _first_there([again.this, *again.expressions])
    if isinstance(again, RIGHT_FIRST) and may_fail(again.this, types):
        again.set("this", _unless_null([again.expression], again.this))
    if isinstance(again, exp.Bracket) and len(again.expressions) == 1 and may_fail(again.expressions[0], types):
        again.set("expressions", [_unless_null([again.this], again.expressions[0])])
    return again


def _with_parts(node: exp.Expression, types: SparkTypes) -> exp.Expression:
    again = node.copy()
    for part in list(again.iter_expressions()):
        if isinstance(part, exp.Expression):
            part.replace(in_evaluation_order(part, types))
    return again


def _connected(node: exp.Expression, types: SparkTypes) -> exp.Expression:
    """A chain of AND or OR as one CASE, where a part after the first may fail."""
    parts = [in_evaluation_order(part, types) for part in _chain(node, type(node))]
    whole = reduce(lambda left, right: type(node)(this=left, expression=right), (part.copy() for part in parts))
    if not any(may_fail(part, types) for part in parts[1:]):
        return whole
    case = exp.Case()
    for part in parts[:-1]:
        if isinstance(node, exp.And):
            case = case.when(exp.Not(this=_one(part)), exp.false())
        else:
            case = case.when(part, exp.true())
    return case.else_(whole)


def _chain(node: exp.Expression, kind: type[exp.Expression]) -> list[exp.Expression]:
    return [*_chain(node.this, kind), node.expression] if isinstance(node, kind) else [node]


def _operated(node: exp.Expression, types: SparkTypes) -> tuple[exp.Expression, list[exp.Expression]]:
    """The operation, and the parts that make it NULL, in order."""
    if not isinstance(node, LEFT_FIRST):
        again = in_evaluation_order(node, types)
        return again, [again]
    left, before = _operated(node.this, types)
    right = in_evaluation_order(node.expression, types)
    again = node.copy()
    again.set("this", left)
    again.set("expression", _unless_null(before, right) if may_fail(right, types) else right.copy())
    return again, [*before, right]


def _first_there(parts: list[exp.Expression]) -> exp.Expression:
    case = exp.Case()
    for part in parts[:-1]:
        case = case.when(exp.Not(this=exp.paren(exp.Is(this=_one(part), expression=exp.Null()))), part)
    return case.else_(parts[-1].copy())


def _unless_null(before: list[exp.Expression], then: exp.Expression) -> exp.Expression:
    case = exp.Case()
    for part in before:
        if not isinstance(part, exp.Literal):
            case = case.when(exp.Is(this=_one(part), expression=exp.Null()), exp.Null())
    return case.else_(then.copy()) if case.args.get("ifs") else then.copy()


def _one(part: exp.Expression) -> exp.Expression:
    """In brackets where an operator may follow."""
    return exp.paren(part) if isinstance(part, exp.Binary | exp.Between | exp.In) else part.copy()
