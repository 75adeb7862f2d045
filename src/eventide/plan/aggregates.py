"""A selected expression over aggregates, split into partials and its value over them.

Law: whatever way rows are cut into slices, reducing each, merging all and telling the value gives what Spark's own
aggregate gives over all the rows. An expression with an aggregate that has no such form is not split: its slices keep
their rows.

>>> found = split("p", "max(price) - min(price)", lambda sql: "INT")
>>> found.value, [partial.reduce for partial in found.partials]
('CAST(CAST(p_0 AS INT) - CAST(p_1 AS INT) AS INT)', ['max(price)', 'min(price)'])
>>> split("p", "percentile(price, 0.5)", lambda sql: "DOUBLE") is None
True
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.plan import aggregate_moments, aggregate_ordered, aggregate_sketches, aggregate_sums
from eventide.plan.aggregate_call import Call, Columns, Form, Told, call_from
from eventide.plan.dialect import to_duckdb
from eventide.plan.expressions import SPARK, aggregates_in, parsed
from eventide.plan.partials import Split

FORMS: dict[str, Form] = {
    **aggregate_sums.FORMS,
    **aggregate_moments.FORMS,
    **aggregate_ordered.FORMS,
    **aggregate_sketches.FORMS,
}
"""The form of each aggregate that can be told from partials, by its name in Spark."""

DISTINCT_IS_NOTHING = ("min", "max", "bool_and", "bool_or", "every", "any", "some", "bit_and", "bit_or")
"""Aggregates to which a value that comes twice is as good as one that comes once."""


def split(
    name: str, expression: str, type_of: Callable[[str], str], time: str = "", kind: str | None = None
) -> Split | None:
    """The partials of an expression and its value over them, or None where rows must be kept.

    `name` is the prefix of the partial columns' names; `type_of` gives the Spark type of an expression over the
    stream's columns; `time` is the application time as a whole number, in SQL, for what is first and last. Columns
    outside of aggregates (groups) stay in the value as they are; where `type_of` does not know them, `kind` must
    give the type of the whole.
    """
    tree = parsed(expression, f"the expression {expression!r}")
    columns = Columns(name, cache(type_of), time)
    typed, valued = exp.Paren(this=tree.copy()), exp.Paren(this=tree)
    checks: dict[tuple[str, str], None] = {}
    for in_value, in_typed in zip(aggregates_in(valued), aggregates_in(typed), strict=True):
        told = _told(call_from(in_value), columns)
        if told is None:
            return None
        checks.update(dict.fromkeys(told.checks))
        kind = told.type if in_value is tree else kind
        in_value.replace(parsed(f"CAST({told.value} AS {told.type})", "a value"))
        in_typed.replace(exp.cast(exp.Null(), told.type, dialect=SPARK))
    kind = kind or type_of(typed.this.sql(SPARK))
    value = valued.this.sql(SPARK)
    value = value if valued.this is not tree else f"CAST({value} AS {kind})"
    return Split(tuple(columns.kept.values()), value, kind, tuple(checks), _driver_can_say(value))


def _told(call: Call, columns: Columns) -> Told | None:
    if call.ordered or call.name not in FORMS or (call.distinct and call.name not in DISTINCT_IS_NOTHING):
        return None
    return FORMS[call.name](call, columns)


def _driver_can_say(value: str) -> bool:
    try:
        to_duckdb(value)
    except DeclarationError:
        return False
    return True
