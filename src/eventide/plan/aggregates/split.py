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
from dataclasses import replace
from functools import cache

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.plan.aggregates.exact import ORDERED_FORMS, SPREAD_FORMS, SUM_FORMS
from eventide.plan.aggregates.sketches import SKETCH_FORMS
from eventide.plan.duckdb.transpile import same_answer
from eventide.plan.expressions.aggregate_call import AggregateValue, Call, Form, PartialColumns, Split, call_from
from eventide.plan.expressions.columns import Column
from eventide.plan.expressions.parse import SPARK, aggregates_in, parsed

FORMS: dict[str, Form] = {
    **SUM_FORMS,
    **SPREAD_FORMS,
    **ORDERED_FORMS,
    **SKETCH_FORMS,
}
"""The form of each aggregate that can be told from partials, by its name in Spark."""

SUMMING = ("sum", "try_sum", "avg", "mean", "try_avg")
SPREADING = ("std", "stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop")
"""Aggregates of numbers: to all of them a text is a number, and to sums a time, too."""

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
    columns = PartialColumns(name, cache(type_of), time)
    typed, valued = exp.Paren(this=tree.copy()), exp.Paren(this=tree)
    checks: dict[tuple[str, str], None] = {}
    for in_value, in_typed in zip(aggregates_in(valued), aggregates_in(typed), strict=True):
        value_of = _aggregate_value(call_from(in_value), columns)
        if value_of is None:
            return None
        checks.update(dict.fromkeys(value_of.checks))
        kind = value_of.type if in_value is tree else kind
        in_value.replace(parsed(f"CAST({value_of.value} AS {value_of.type})", "a value"))
        in_typed.replace(exp.cast(exp.Null(), value_of.type, dialect=SPARK))
    kind = kind or type_of(typed.this.sql(SPARK))
    value = valued.this.sql(SPARK)
    value = value if valued.this is not tree else f"CAST({value} AS {kind})"
    return Split(tuple(columns.kept.values()), value, kind, tuple(checks), same_answer(value))


def over_rows(
    expression: str, type_of: Callable[[str], str], time: str = "", columns: tuple[Column, ...] = ()
) -> Split:
    """The value of an expression over rows that were kept, for queries where some aggregate has no partials.

    The other aggregates are told as they are from partials, so that they mean the same in such a query: FIRST is by
    time, ties are broken by value, a sum that overflows is NULL and reported. `type_of` must know aggregates.

    >>> over_rows("max(x) || mode(y)", lambda sql: "STRING").value
    'CAST(CAST(MAX(x) AS STRING) || MODE(y) AS STRING)'
    """
    tree = parsed(expression, f"the expression {expression!r}")
    partials = PartialColumns("eventide_partial", cache(type_of), time)
    typed, valued = exp.Paren(this=tree.copy()), exp.Paren(this=tree)
    checks: dict[tuple[str, str], None] = {}
    for in_value, in_typed in zip(aggregates_in(valued), aggregates_in(typed), strict=True):
        value_of = _aggregate_value(call_from(in_value), partials)
        kind = type_of(in_value.sql(SPARK)) if value_of is None else value_of.type
        in_typed.replace(exp.cast(exp.Null(), kind, dialect=SPARK))
        if value_of is not None:
            checks.update((_spelled_out(check, partials), None) for check in value_of.checks)
            in_value.replace(_inlined(f"CAST({value_of.value} AS {value_of.type})", partials))
    kind = type_of(typed.this.sql(SPARK))
    value = f"CAST({valued.this.sql(SPARK)} AS {kind})"
    return Split((), value, kind, tuple(checks), same_answer(value, columns))


def _spelled_out(check: tuple[str, str], partials: PartialColumns) -> tuple[str, str]:
    return _inlined(check[0], partials).sql(SPARK), check[1]


def _inlined(sql: str, partials: PartialColumns) -> exp.Expression:
    """A value over partials, with the aggregate over rows in the place of each partial."""
    reduces = {partial.name: partial.reduce for partial in partials.kept.values()}
    whole = exp.Paren(this=parsed(sql, "a value"))
    for column in list(whole.find_all(exp.Column)):
        name = column.parts[0].name
        if name in reduces:
            aggregate = parsed(reduces[name], "a partial")
            fields = column.parts[1:]
            column.replace(exp.Dot.build([aggregate, *(field.copy() for field in fields)]) if fields else aggregate)
    inner = whole.this
    assert isinstance(inner, exp.Expression)
    return inner


def _aggregate_value(call: Call, columns: PartialColumns) -> AggregateValue | None:
    if call.name in ("greatest", "least"):
        # So the parser calls MAX and MIN of several values.
        one, written = "max" if call.name == "greatest" else "min", ", ".join(call.arguments)
        raise DeclarationError(f"{one}({written}) has more than one value: write {one}({call.name}({written}))")
    if call.where is not None and (kind := columns.type_of(call.where)) not in ("BOOLEAN", "VOID"):
        raise DeclarationError(f"FILTER takes a condition, and {call.where} is {kind}")
    if call.ordered or call.name not in FORMS or (call.distinct and call.name not in DISTINCT_IS_NOTHING):
        return None
    return FORMS[call.name](_of_numbers(call, columns), columns)


def _of_numbers(call: Call, columns: PartialColumns) -> Call:
    """The call over numbers, where Spark makes a text or a time one without being asked."""
    if call.name not in (*SUMMING, *SPREADING) or len(call.arguments) != 1:
        return call
    kind = columns.type_of(call.arguments[0])
    if kind != "STRING" and (kind != "TIMESTAMP" or call.name in SPREADING):
        return call
    return replace(call, arguments=(f"CAST({call.arguments[0]} AS DOUBLE)",))
