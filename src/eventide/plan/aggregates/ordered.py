"""Extremes, first and last, the value at an extreme, and the like: aggregates that choose or fold values.

Law: ties are broken by the value, so the answer is the same however rows were cut. The order is Spark's: NaN is
above all numbers, NULL inside of a value below all. DuckDB has NULL inside of values on top, so where a value can
hold one, `is it there` is written before it.
"""

from __future__ import annotations

from eventide.plan.expressions.aggregate_call import (
    PLAIN,
    SMALL,
    AggregateValue,
    Call,
    Form,
    PartialColumns,
    decimal_of,
    nullable,
    order_key,
)


def extreme(function: str) -> Form:
    """MIN or MAX."""

    def form(call: Call, columns: PartialColumns) -> AggregateValue | None:
        if len(call.arguments) != 1:
            return None
        x = call.arguments[0]
        kind = columns.type_of(x)
        if kind in PLAIN or decimal_of(kind) is not None:
            return AggregateValue(columns.keep(kind, f"{function}({call.over_rows(x)})", f"{function}({{0}})"), kind)
        return _chosen(function, call, columns, [], x, f"{x} IS NOT NULL")

    return form


def by_time(function: str) -> Form:
    """FIRST or LAST by application time; NULL counts as a value unless IGNORE NULLS."""

    def form(call: Call, columns: PartialColumns) -> AggregateValue | None:
        if len(call.arguments) not in (1, 2) or not columns.time:
            return None
        ignores = call.ignore_nulls or (len(call.arguments) == 2 and call.arguments[1].upper() == "TRUE")
        condition = f"{call.arguments[0]} IS NOT NULL" if ignores else None
        return _chosen(function, call, columns, [(columns.time, "BIGINT")], call.arguments[0], condition)

    return form


def at_extreme(function: str) -> Form:
    """MIN_BY or MAX_BY: the value where another is least or largest."""

    def form(call: Call, columns: PartialColumns) -> AggregateValue | None:
        if len(call.arguments) != 2:
            return None
        value, by = call.arguments
        kind = columns.type_of(by)
        key = order_key(by, kind)
        return None if key is None else _chosen(function, call, columns, [key], value, f"{by} IS NOT NULL")

    return form


def folded(function: str, kinds: tuple[str, ...]) -> Form:
    """What folds values of a type into one of the same type."""

    def form(call: Call, columns: PartialColumns) -> AggregateValue | None:
        if len(call.arguments) != 1:
            return None
        kind = columns.type_of(call.arguments[0])
        if kind not in kinds:
            return None
        name = columns.keep(kind, f"{function}({call.over_rows(call.arguments[0])})", f"{function}({{0}})")
        return AggregateValue(name, kind)

    return form


def _chosen(
    function: str, call: Call, columns: PartialColumns, before: list[tuple[str, str]], value: str, condition: str | None
) -> AggregateValue | None:
    """The value in the row that is least or largest by `before` and then by the value itself."""
    kind = columns.type_of(value)
    key = order_key(value, kind)
    if key is None:
        return None
    parts = [(f"b{i}", sql, type_) for i, (sql, type_) in enumerate(before)]
    parts.append(("h", f"{value} IS NOT NULL", "BOOLEAN"))
    if key != (value, kind):
        parts.append(("k", *key))
    parts.append(("v", value, kind))
    row = "named_struct(" + ", ".join(f"'{name}', {nullable(sql, type_)}" for name, sql, type_ in parts) + ")"
    whole = row if condition is None else f"IF({condition}, {row}, NULL)"
    struct = "STRUCT<" + ", ".join(f"{name}: {type_}" for name, _, type_ in parts) + ">"
    name = columns.keep(struct, f"{function}({call.over_rows(whole)})", f"{function}({{0}})")
    return AggregateValue(f"{name}.v", kind)


NUMBERS = (*SMALL, "BIGINT")

ORDERED_FORMS: dict[str, Form] = {
    "min": extreme("min"),
    "max": extreme("max"),
    **dict.fromkeys(("first", "first_value", "any_value"), by_time("min")),
    **dict.fromkeys(("last", "last_value"), by_time("max")),
    "min_by": at_extreme("min"),
    "max_by": at_extreme("max"),
    **dict.fromkeys(("bool_and", "every"), folded("bool_and", ("BOOLEAN",))),
    **dict.fromkeys(("bool_or", "any", "some"), folded("bool_or", ("BOOLEAN",))),
    "bit_and": folded("bit_and", NUMBERS),
    "bit_or": folded("bit_or", NUMBERS),
    "bit_xor": folded("bit_xor", NUMBERS),
}
