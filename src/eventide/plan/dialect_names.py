"""Functions that the parser knows only by name, sketches among them, in DuckDB."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from eventide.plan.aggregate_call import decimal_of
from eventide.plan.dialect_saying import Rule, Saying, by_type, call
from eventide.plan.dialect_times import field_of

NAMED: dict[str, Callable[..., str]] = {
    "any": lambda x: f"BOOL_OR({x})",
    "btrim": lambda x: f"trim({x})",
    "cardinality": lambda x: f"CAST(len({x}) AS INTEGER)",
    "e": lambda: "exp(1)",
    "every": lambda x: f"BOOL_AND({x})",
    "some": lambda x: f"BOOL_OR({x})",
    "std": lambda x: f"STDDEV_SAMP({x})",
    "mean": lambda x: f"AVG({x})",
    "try_avg": lambda x: f"AVG({x})",
    "hypot": lambda x, y: f"sqrt({x} * {x} + {y} * {y})",
    "isnull": lambda x: f"({x} IS NULL)",
    "isnotnull": lambda x: f"({x} IS NOT NULL)",
    "positive": lambda x: f"(+{x})",
    "try_mod": lambda x, y: f"TRY(spark_mod({x}, {y}))",
    "weekday": lambda x: f"CAST(isodow(CAST({x} AS DATE)) - 1 AS INTEGER)",
    "zeroifnull": lambda x: f"COALESCE({x}, 0)",
    "nullifzero": lambda x: f"NULLIF({x}, 0)",
    "hll_sketch_agg": lambda x, k="12": f"spark_hll_sketch_agg({x}, {k})",
    "hll_union_agg": lambda x, _="": f"eventide_hll_union(list({x}))",
    "hll_union": lambda x, y, _="": f"eventide_hll_union([{x}, {y}])",
    "hll_sketch_estimate": lambda x: f"eventide_hll_estimate({x})",
    "kll_sketch_agg_double": lambda x, k="200": f"eventide_kll_of(list(CAST({x} AS DOUBLE)), {k})",
    "kll_merge_agg_double": lambda x, k="CAST(NULL AS INTEGER)": f"eventide_kll_union(list({x}), {k})",
    **{
        name: (lambda *given, name=name: call(f"spark_{name}", *given))
        for name in ("get", "pmod", "timestamp_micros", "timestamp_millis")
    },
}
"""Each as a text over the texts of its arguments."""


VARIED = ("bigint", "smallint", "tinyint", "octet_length", "timestamp_seconds")
"""Functions that are macros with a variant for each type."""


def _named(self: Saying, node: exp.Anonymous) -> str:
    name = node.name.lower()
    arguments = [self.sql(argument) for argument in node.expressions]
    if name == "kll_sketch_get_quantile_double":
        many = isinstance(node.expressions[1], exp.Array)
        return call(f"eventide_kll_quantile{'s' if many else ''}", *arguments)
    if name == "try_sum":
        decimal = decimal_of(self.kind(node.expressions[0]) or "")
        if decimal is None or decimal[0] <= 28 or isinstance(node.expressions[0], exp.Distinct):
            return self.refuse("TRY_SUM")
        return f"CAST(eventide_decimal_sum(list(CAST({arguments[0]} AS VARCHAR))) AS DECIMAL(38, {decimal[1]}))"
    if name in ("date_part", "datepart"):
        unit, value = node.expressions
        constant = isinstance(unit, exp.Literal) and unit.is_string
        return field_of(self, unit.name, value) if constant else self.refuse("DATE_PART of what is not a constant text")
    if name in VARIED:
        return by_type(name, self.kind(node.expressions[-1]), *arguments)
    return NAMED[name](*arguments) if name in NAMED else call(node.name, *arguments)


RULES: dict[type[exp.Expr], Rule] = {
    exp.Anonymous: _named,
}
