"""What differs between versions of Spark: statements are written so that each version gives the answer of the newest.

Law: `same_everywhere` changes no answer of Spark 4.3. On older versions it gives that answer, where a statement as it
stands would fail or give another one:

- a correlation or a line through values of which there are too few, or that are all the same, is NULL; up to Spark 4.2
  it is a division by zero, which ends the statement;
- FLOOR and CEIL of a number beyond BIGINT are errors; up to Spark 4.2 they are the largest BIGINT, without a word.

>>> same_everywhere("SELECT count(*) FROM t")
'SELECT count(*) FROM t'
>>> same_everywhere("SELECT regr_slope(a, b) FILTER (WHERE c) AS x")
'SELECT TRY_DIVIDE(REGR_SXY(a, b) FILTER(WHERE c), REGR_SXX(a, b) FILTER(WHERE c)) AS x'
"""

from __future__ import annotations

import re
from functools import lru_cache

import sqlglot
from sqlglot import exp

from eventide.plan.expressions.parse import SPARK, parsed

DIFFERS = re.compile(r"\b(?:corr|regr_slope|regr_intercept|floor|ceil|ceiling)\s*\(", re.IGNORECASE)
SLOPE = "try_divide(regr_sxy(y, x), regr_sxx(y, x))"
OF_PAIRS: dict[type[exp.Expr], str] = {
    exp.Corr: "try_divide(regr_sxy(y, x), sqrt(regr_sxx(y, x) * regr_syy(y, x)))",
    exp.RegrSlope: SLOPE,
    exp.RegrIntercept: f"regr_avgy(y, x) - {SLOPE} * regr_avgx(y, x)",
}
"""By sums that are there in every version; none of them divides by what may be zero."""

BOUNDED = """CASE WHEN typeof(v) IN ('double', 'float')
AND (v < -9223372036854775808D OR (v >= 9223372036854775808D AND NOT isnan(v)))
THEN raise_error('the value is beyond BIGINT') ELSE whole END"""
"""No number (NaN) is 0 in every version."""


@lru_cache(1024)
def same_everywhere(sql: str) -> str:
    """The statement, in words that mean the same to each version of Spark."""
    if DIFFERS.search(sql) is None:
        return sql
    # Below a wrapper, so that the whole can be replaced as well.
    tree = exp.Paren(this=sqlglot.parse_one(sql, read=SPARK))
    for call in list(tree.find_all(*OF_PAIRS)):
        if not isinstance(call.this, exp.Distinct):
            _of_pairs(call)
    for call in list(tree.find_all(exp.Floor, exp.Ceil)):
        if call.args.get("decimals") is None:
            call.replace(_put_in(BOUNDED, v=call.this, whole=call))
    return str(tree.this.sql(SPARK))


def _of_pairs(call: exp.Expr) -> None:
    """Write a call by other aggregates, each with the FILTER and the OVER of the call."""
    whole = call
    while isinstance(whole.parent, exp.Filter | exp.Window) and whole.parent.this is whole:
        whole = whole.parent
    made = _put_in(OF_PAIRS[type(call)], y=call.this, x=call.expression)
    for sum_ in list(made.find_all(exp.AggFunc)) if whole is not call else ():
        wrapped = whole.copy()
        place = wrapped
        while isinstance(place.this, exp.Filter | exp.Window):
            place = place.this
        inner = sum_.copy()
        sum_.replace(wrapped)
        place.set("this", inner)
    whole.replace(exp.paren(made) if isinstance(made, exp.Binary) else made)


def _put_in(text: str, **values: exp.Expr) -> exp.Expr:
    """An expression with trees in the places of names."""

    def put(node: exp.Expr) -> exp.Expr:
        is_name = isinstance(node, exp.Column) and node.name in values
        return values[node.name].copy() if is_name else node

    return parsed(text, "an expression").transform(put)
