"""Values that fail when a window closes: reported as lost, with the reason; all other values stand.

Law: where the value of a window fails (a division of sums by zero, a sum that leaves its type), that value is NULL and
the reason is told, as for `checks`; where the condition on groups fails, the window is shown and the reason told. The
fail-safe form of a query has, for all other windows, the values of the query itself.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from eventide.plan.aggregates.exact import BIGINT_RANGE
from eventide.plan.bound.query import HAVING, ORDER, ROWS, BoundQuery
from eventide.plan.bound.rows import slice_columns
from eventide.plan.declared.query import Named
from eventide.plan.expressions.aggregate_call import Partial, decimal_of
from eventide.plan.expressions.parse import SPARK, aggregates_in, call_of, parsed
from eventide.plan.expressions.spark_types import DIGITS, SparkTypes, decimal_type
from eventide.plan.sql.evaluation_order import in_evaluation_order
from eventide.plan.sql.failing_rows import fails

HAS_ROWS = f"{ROWS} >= 0"
"""True for every window; no optimizer sees that (see `broken.HAS_TIME`)."""


def fail_safe_values(query: BoundQuery) -> BoundQuery:
    """The query with values that do not fail."""
    apart = _with_aggregates_apart(query) if query.keeps_rows else query
    partials = {partial.name: partial.type for partial in apart.partials}
    types = SparkTypes({column.name: column.type for column in slice_columns(query)} | partials | {ROWS: "BIGINT"})
    asked = query.query
    spelled = {item.name: item.sql for item in asked.select} | {HAVING: asked.having or ""}
    spelled |= {f"{ORDER}{place}": one.sql for place, one in enumerate(asked.order)}
    values, checks = [], list(apart.checks)
    for value in apart.values:
        sql = in_evaluation_order(parsed(value.sql, "a value"), types).sql(SPARK)
        failing = fails(sql, HAS_ROWS)
        instead = "TRUE" if value.name == HAVING else "NULL"
        values.append(Named(value.name, f"CASE WHEN {failing} THEN {instead} ELSE {sql} END"))
        checks.append((f"NOT {failing}", f"{spelled[value.name]} fails"))
    return replace(apart, values=tuple(values), checks=tuple(checks), fail_safe=True)


def _with_aggregates_apart(query: BoundQuery) -> BoundQuery:
    """Aggregates over kept rows as columns of their own, and values over these columns."""
    types = SparkTypes({column.name: column.type for column in query.stream.columns})
    columns: dict[str, Partial] = {}
    values, checks = [], []
    for value in query.values:
        tree = exp.Paren(this=parsed(value.sql, "a value"))
        for aggregate in aggregates_in(tree):
            if (decimal := _decimal_sum(aggregate, types)) is not None:
                column_of, check = decimal.kept_in(columns, types)
                checks.append(check)
                aggregate.replace(exp.column(column_of))
                continue
            wide, kind, summed = _without_overflow(aggregate, types)
            sql = in_evaluation_order(wide, types).sql(SPARK)
            name = columns.setdefault(sql, Partial(f"__a{len(columns)}", kind or "", sql, sql)).name
            value_of: exp.Expression = exp.column(name)
            if summed is not None:
                value_of = parsed(f"CASE WHEN {name} {BIGINT_RANGE} THEN CAST({name} AS BIGINT) END", "a sum")
                checks.append((f"{name} IS NULL OR {name} {BIGINT_RANGE}", f"the sum of {summed} overflows BIGINT"))
            aggregate.replace(value_of)
        values.append(Named(value.name, tree.this.sql(SPARK)))
    return replace(query, partials=tuple(columns.values()), values=tuple(values), checks=tuple(dict.fromkeys(checks)))


@dataclass(frozen=True)
class DecimalSum:
    """A sum of decimals with so many digits that their sum may have more than a decimal can hold.

    `tried` is NULL where it does, and where `counted` finds nothing to sum.
    """

    tried: exp.Expression
    counted: exp.Expression
    kind: str
    summed: str

    def kept_in(self, columns: dict[str, Partial], types: SparkTypes) -> tuple[str, tuple[str, str]]:
        """The name of the column that holds the sum, and the check that it is there."""
        names = []
        for one, kind in ((self.tried, self.kind), (self.counted, "BIGINT")):
            sql = in_evaluation_order(one, types).sql(SPARK)
            names.append(columns.setdefault(sql, Partial(f"__a{len(columns)}", kind, sql, sql)).name)
        total, count = names
        return total, (f"{total} IS NOT NULL OR {count} = 0", f"the sum of {self.summed} overflows {self.kind}")


def _decimal_sum(aggregate: exp.Expression, types: SparkTypes) -> DecimalSum | None:
    call = call_of(aggregate)
    decimal = decimal_of(types.of(call.this) or "") if isinstance(call, exp.Sum) else None
    # Fewer digits leave room for the sum of ten thousand million rows.
    if decimal is None or decimal[0] <= 28 or isinstance(call.this, exp.Distinct):
        return None
    tried, counted = (
        _with_call(aggregate, other)
        for other in (
            exp.Anonymous(this="try_sum", expressions=[call.this.copy()]),
            exp.Count(this=call.this.copy()),
        )
    )
    return DecimalSum(tried, counted, decimal_type(38, decimal[1]), call.this.sql(SPARK))


def _with_call(aggregate: exp.Expression, call: exp.Expression) -> exp.Expression:
    """The same FILTER around another call."""
    around = exp.Paren(this=aggregate.copy())
    call_of(around.this).replace(call)
    inside = around.this
    assert isinstance(inside, exp.Expression)
    return inside


def _without_overflow(aggregate: exp.Expression, types: SparkTypes) -> tuple[exp.Expression, str | None, str | None]:
    """The aggregate, its type, and, for a sum of whole numbers, what is summed: that is summed as a decimal."""
    call = call_of(aggregate)
    if not isinstance(call, exp.Sum) or types.of(call.this) not in DIGITS:
        return aggregate.copy(), types.of(aggregate), None
    wide = aggregate.copy()
    summed = call_of(wide).this
    summed = summed.expressions[0] if isinstance(summed, exp.Distinct) else summed
    text = summed.sql(SPARK)
    summed.replace(exp.cast(summed.copy(), "DECIMAL(20, 0)", dialect=SPARK))
    return wide, types.of(wide), text
