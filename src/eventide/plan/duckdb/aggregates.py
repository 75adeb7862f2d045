"""Aggregates, and the order of values, in DuckDB as in Spark.

Law: sums of whole numbers are BIGINT, sums and means of decimals have Spark's types, NULL is skipped. FILTER
goes inside where one aggregate of Spark is more than one call in DuckDB.

*Order.* NULL inside of a struct or an array is below all else. DuckDB has NULL inside of values on top, so structs and
arrays are compared by a key that says of each part whether it is there. Where the words do not tell what is inside,
comparing is refused.
"""

from __future__ import annotations

from sqlglot import exp

from eventide.plan.duckdb.generator import Rule, SparkToDuckDB, call
from eventide.plan.expressions.aggregate_call import decimal_mean, decimal_of, order_key
from eventide.plan.expressions.parse import name_of, restricted
from eventide.plan.expressions.spark_dialect import SPARK

MORE_THAN_A_CALL = (
    exp.Sum, exp.Avg, exp.ApproxDistinct, exp.ApproxQuantile, exp.ArrayAgg, exp.ArrayUniqueAgg, exp.Corr, exp.RegrSlope,
)  # fmt: skip
NOT_DISTINCT = ("hll_sketch_agg", "hll_union_agg", "kll_sketch_agg_double", "kll_merge_agg_double")
NAMED = ("hll_sketch_agg", "hll_union_agg", "kll_sketch_agg_double", "kll_merge_agg_double", "try_sum")


def _sum(self: SparkToDuckDB, node: exp.Sum) -> str:
    kind = self.kind(node)
    if kind is None or isinstance(node.parent, exp.Window):
        distinct = isinstance(node.this, exp.Distinct)
        is_native = distinct or isinstance(node.parent, exp.Window)
        return call("SUM" if is_native else "spark_sum", self.sql(node.this))
    text = call("SUM", self.sql(node.this))
    return text if kind == "DOUBLE" else f"CAST({text} AS {kind})"


def _average(self: SparkToDuckDB, node: exp.Avg) -> str:
    decimal = decimal_of(self.kind(node.this) or "")
    if decimal is None:
        return call("AVG", self.sql(node.this))
    argument = node.this.sql(SPARK)
    mean = decimal_mean(f"sum({argument})", f"count({argument})", *decimal)
    return (
        self.refuse(f"AVG of {self.kind(node.this)}")
        if mean is None
        else self.sql(exp.maybe_parse(mean, dialect=SPARK))
    )


def _filter(self: SparkToDuckDB, node: exp.Filter) -> str:
    """FILTER goes inside, where an aggregate is more than one call in DuckDB."""
    call, condition = node.this, node.expression.this
    named = isinstance(call, exp.Anonymous) and call.name.lower() in NAMED
    if isinstance(call, MORE_THAN_A_CALL) or named:
        return self.sql(restricted(call, condition))
    return f"{self.sql(call)} FILTER (WHERE {self.sql(condition)})"


def _count(self: SparkToDuckDB, node: exp.Count) -> str:
    if isinstance(node.this, exp.Distinct):
        distinct = node.this.expressions
        one = self.sql(distinct[0])
        if len(distinct) > 1:
            there = " AND ".join(f"{self.sql(part)} IS NOT NULL" for part in distinct)
            one = f"CASE WHEN {there} THEN ({', '.join(self.sql(part) for part in distinct)}) END"
        return f"COUNT(DISTINCT {one})"
    if node.expressions:
        there = " AND ".join(f"{self.sql(part)} IS NOT NULL" for part in (node.this, *node.expressions))
        return f"COUNT(CASE WHEN {there} THEN 1 END)"
    return call("COUNT", self.sql(node.this))


def _count_if(self: SparkToDuckDB, node: exp.CountIf) -> str:
    if isinstance(node.this, exp.Distinct):
        return f"COUNT(DISTINCT CASE WHEN {self.sql(node.this.expressions[0])} THEN 1 END)"
    return f"COUNT(CASE WHEN {self.sql(node.this)} THEN 1 END)"


def _quantile(self: SparkToDuckDB, node: exp.Quantile) -> str:
    return f"QUANTILE_CONT(CAST({self.sql(node.this)} AS DOUBLE), {self.sql(node, 'quantile')})"


def _listed(self: SparkToDuckDB, node: exp.GroupConcat) -> str:
    """LISTAGG: the texts one after the other, with nothing between them unless something is given."""
    given, order = node.this, ""
    if isinstance(given, exp.Order):
        order = " ORDER BY " + ", ".join(self.sql(one) for one in given.expressions)
        given = given.this
    once = isinstance(given, exp.Distinct)
    value = given.expressions[0] if once else given
    text = self.sql(value if self.kind(value) == "STRING" else exp.cast(value.copy(), "STRING", dialect=SPARK))
    between = node.args.get("separator")
    separator = "''" if between is None or isinstance(between, exp.Null) else self.sql(between)
    return f"STRING_AGG({'DISTINCT ' if once else ''}{text}, {separator}{order})"


def _collected(self: SparkToDuckDB, node: exp.ArrayAgg | exp.ArrayUniqueAgg) -> str:
    """The values that are there; of none at all, an empty list, where DuckDB has NULL."""
    once = isinstance(node, exp.ArrayUniqueAgg) or isinstance(node.this, exp.Distinct)
    value = self.sql(node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this)
    return f"COALESCE(LIST({'DISTINCT ' if once else ''}{value}) FILTER (WHERE {value} IS NOT NULL), [])"


def _of_pairs(name: str) -> Rule:
    """NULL where it is not known from so few values, or such equal ones; DuckDB has NaN there."""

    def rule(self: SparkToDuckDB, node: exp.Expression) -> str:
        x, y = (f"CAST({self.sql(part)} AS DOUBLE)" for part in (node.this, node.expression))
        spread = f"VAR_POP({y}) FILTER (WHERE {x} IS NOT NULL)"
        other = f" OR VAR_POP({x}) FILTER (WHERE {y} IS NOT NULL) = 0" if name == "CORR" else ""
        return f"CASE WHEN {spread} = 0{other} THEN NULL ELSE {call(name, x, y)} END"

    return rule


def _approximate_distinct(self: SparkToDuckDB, node: exp.ApproxDistinct) -> str:
    value = node.this.expressions[0] if isinstance(node.this, exp.Distinct) else node.this
    sketch = f"eventide_hll_of_texts(list(DISTINCT CAST({self.sql(value)} AS TEXT)), 12)"
    return f"eventide_hll_estimate(eventide_hll_union([{sketch}, {sketch}]))"


def _distinct(self: SparkToDuckDB, node: exp.Distinct) -> str:
    """DISTINCT, where it stands right behind the parenthesis of a call in DuckDB, too."""
    call = node.parent or node
    named = isinstance(call, exp.Anonymous) and call.name.lower() in NOT_DISTINCT
    if isinstance(call, exp.Quantile | exp.Corr | exp.RegrSlope | exp.Mode) or named:
        return self.refuse(f"DISTINCT in {name_of(call).upper()}")
    return f"DISTINCT {', '.join(self.sql(one) for one in node.expressions)}"


AGGREGATE_RULES: dict[type[exp.Expr], Rule] = {
    exp.ApproxDistinct: _approximate_distinct,
    exp.ApproxQuantile: lambda self, n: f"QUANTILE_DISC({self.sql(n.this)}, {self.sql(n, 'quantile')})",
    exp.ArgMax: lambda self, n: call("arg_max_null", self.sql(n.this), self.sql(n.expression)),
    exp.ArgMin: lambda self, n: call("arg_min_null", self.sql(n.this), self.sql(n.expression)),
    exp.ArrayAgg: _collected,
    exp.ArrayUniqueAgg: _collected,
    exp.Avg: _average,
    exp.Corr: _of_pairs("CORR"),
    exp.Count: _count,
    exp.CountIf: _count_if,
    exp.Distinct: _distinct,
    exp.Filter: _filter,
    exp.GroupConcat: _listed,
    exp.LogicalAnd: lambda self, n: call("BOOL_AND", self.sql(n.this)),
    exp.LogicalOr: lambda self, n: call("BOOL_OR", self.sql(n.this)),
    exp.Quantile: _quantile,
    exp.RegrSlope: _of_pairs("REGR_SLOPE"),
    exp.Sum: _sum,
}


NESTED = ("STRUCT", "ARRAY", "MAP")


def _nested(kind: str | None) -> bool:
    return kind is not None and kind.startswith(NESTED)


def _key(self: SparkToDuckDB, node: exp.Expression) -> str | None:
    """What a struct or an array is ordered by, in DuckDB's words."""
    found = order_key(node.sql(SPARK), self.kind(node) or "")
    return None if found is None else self.sql(exp.maybe_parse(found[0], dialect=SPARK))


def _compared(operator: str) -> Rule:
    def rule(self: SparkToDuckDB, node: exp.Expression) -> str:
        sides = (node.this, node.expression)
        kinds = [self.kind(side) for side in sides]
        if not any(map(_nested, kinds)):
            return f"{self.sql(node.this)} {operator} {self.sql(node.expression)}"
        keys = [_key(self, side) for side in sides] if kinds[0] == kinds[1] else []
        if not keys or None in keys:
            return self.refuse(f"the comparison {node.sql(SPARK)}")
        there = " AND ".join(f"{self.sql(side)} IS NOT NULL" for side in sides)
        return f"CASE WHEN {there} THEN {keys[0]} {operator} {keys[1]} END"

    return rule


def _between(self: SparkToDuckDB, node: exp.Between) -> str:
    if _nested(self.kind(node.this)):
        return self.refuse(f"BETWEEN of {self.kind(node.this)}")
    return f"{self.sql(node.this)} BETWEEN {self.sql(node, 'low')} AND {self.sql(node, 'high')}"


def _chosen(self: SparkToDuckDB, node: exp.Expression) -> str:
    parts = [node.this, *node.expressions]
    nested = next((kind for part in parts if _nested(kind := self.kind(part))), None)
    if nested is not None:
        return self.refuse(f"{node.key.upper()} of {nested}")
    return call(node.key.upper(), *(self.sql(part) for part in parts))


def _extreme(self: SparkToDuckDB, node: exp.Expression) -> str:
    """MIN or MAX. The structs of slices tell themselves, in `h`, whether their value is there."""
    kind, value = self.kind(node.this), self.sql(node.this)
    if not _nested(kind) or (kind is not None and kind.startswith("STRUCT<") and "h: BOOLEAN, " in kind):
        return call(node.key.upper(), value)
    key = _key(self, node.this)
    return self.refuse(f"{node.key.upper()} of {kind}") if key is None else call(f"ARG_{node.key.upper()}", value, key)


ORDER_RULES: dict[type[exp.Expr], Rule] = {
    exp.Between: _between,
    exp.Greatest: _chosen,
    exp.GT: _compared(">"),
    exp.GTE: _compared(">="),
    exp.Least: _chosen,
    exp.LT: _compared("<"),
    exp.LTE: _compared("<="),
    exp.Max: _extreme,
    exp.Min: _extreme,
}
