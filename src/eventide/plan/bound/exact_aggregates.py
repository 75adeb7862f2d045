"""Aggregates with exact partials: those that add up, and those that choose or fold values.

Laws. *Sums* (counts, sums, averages): whole numbers and decimals lose nothing on the way, so their answers do not
depend on how rows were cut; sums of fractions may differ in the last digits, as they do in Spark itself. *Variance*
(Chan, Golub, LeVeque): the squared distances of all rows from their mean are those inside each slice plus those of the
slices' means from the mean of all. Nothing large is subtracted from something as large, so no digits cancel. *Choices*
(extremes, first and last, the value at an extreme): ties are broken by the value, so the answer is the same however
rows were cut. Values that are chosen in the same way (`last(a), last(b)`; `max_by(a, k), max_by(b, k)`) are those of
one row: ties are broken by the first of them, then by the next. The order is Spark's: NaN is above all numbers, NULL
inside of a value below all. DuckDB has NULL inside of values on top, so where a value can hold one, `is it there` is
written before it.
"""

from __future__ import annotations

from eventide.errors import DeclarationError
from eventide.plan.expressions.aggregate_call import (
    FRACTIONS,
    PLAIN,
    SMALL,
    AggregateValue,
    Call,
    Form,
    PartialColumns,
    decimal_mean,
    decimal_of,
    nullable,
    order_key,
)

BIGINT_RANGE = "BETWEEN -9223372036854775808 AND 9223372036854775807"


def count(call: Call, columns: PartialColumns) -> AggregateValue | None:
    """Rows, or rows where no argument is NULL."""
    return AggregateValue(counted(call, columns), "BIGINT")


def counted(call: Call, columns: PartialColumns) -> str:
    """The name of the partial that counts the rows of a call."""
    arguments = [argument for argument in call.arguments if argument != "*"]
    if len(arguments) == 1:
        one = arguments[0]
    else:
        one = f"IF({' AND '.join(f'{a} IS NOT NULL' for a in arguments)}, 1, NULL)" if arguments else "1"
    counts_all = not arguments and call.where is None
    return columns.keep(
        "BIGINT", f"count({'*' if counts_all else call.over_rows(one)})", _summed("BIGINT", or_zero=True)
    )


def count_if(call: Call, columns: PartialColumns) -> AggregateValue | None:
    """Rows where the condition holds."""
    if len(call.arguments) != 1:
        return None
    if (kind := columns.type_of(call.arguments[0])) not in ("BOOLEAN", "VOID"):
        raise DeclarationError(f"count_if takes a condition, and {call.arguments[0]} is {kind}")
    reduce = f"count({call.over_rows(f'IF({call.arguments[0]}, 1, NULL)')})"
    return AggregateValue(columns.keep("BIGINT", reduce, _summed("BIGINT", or_zero=True)), "BIGINT")


def total(reports: bool) -> Form:
    """SUM: NULL without rows; whole numbers give BIGINT, decimals ten digits more, fractions DOUBLE.

    A sum that leaves BIGINT is NULL; SUM reports that, TRY_SUM means it.
    """

    def form(call: Call, columns: PartialColumns) -> AggregateValue | None:
        if len(call.arguments) != 1:
            return None
        kind = columns.type_of(call.arguments[0])
        if kind in FRACTIONS:
            return AggregateValue(_double_total(call, columns), "DOUBLE")
        exact = _exact_total(call, columns, kind)
        if exact is None:
            return None
        decimal = decimal_of(kind)
        if decimal is not None:
            return AggregateValue(exact, f"DECIMAL({decimal[0] + 10}, {decimal[1]})")
        if kind in SMALL:
            return AggregateValue(exact, "BIGINT")
        check = f"{exact} IS NULL OR {exact} {BIGINT_RANGE}"
        reason = f"the sum of {call.arguments[0]} overflows BIGINT"
        value = f"CASE WHEN {exact} {BIGINT_RANGE} THEN CAST({exact} AS BIGINT) END"
        return AggregateValue(value, "BIGINT", ((check, reason),) if reports else ())

    return form


def average(call: Call, columns: PartialColumns) -> AggregateValue | None:
    """AVG: NULL without rows; DOUBLE, or for decimals four more digits, rounded half up."""
    if len(call.arguments) != 1:
        return None
    kind = columns.type_of(call.arguments[0])
    decimal = decimal_of(kind)
    if decimal is not None:
        return _decimal_average(call, columns, *decimal)
    summed = _double_total(call, columns) if kind in FRACTIONS else _exact_total(call, columns, kind)
    if summed is None:
        return None
    return AggregateValue(f"CAST({summed} AS DOUBLE) / CAST(nullif({counted(call, columns)}, 0) AS DOUBLE)", "DOUBLE")


def _exact_total(call: Call, columns: PartialColumns, kind: str) -> str | None:
    """The sum of whole numbers or decimals over merged partials, without loss; None for other types."""
    argument = call.arguments[0]
    if kind in SMALL:
        return columns.keep("BIGINT", f"sum({call.over_rows(f'CAST({argument} AS BIGINT)')})", _summed("BIGINT"))
    if kind == "BIGINT":
        high = f"sum({call.over_rows(f'shiftright(CAST({argument} AS BIGINT), 32)')})"
        low = f"sum({call.over_rows(f'CAST({argument} AS BIGINT) & 4294967295')})"
        above, below = (columns.keep("BIGINT", half, _summed("BIGINT")) for half in (high, low))
        return (
            f"(CAST({above} AS DECIMAL(19, 0)) * CAST(4294967296 AS DECIMAL(10, 0)) + CAST({below} AS DECIMAL(19, 0)))"
        )
    decimal = decimal_of(kind)
    # Ten more digits hold the sum of ten thousand million rows; without room for them a sum may overflow.
    if decimal is None or decimal[0] > 28:
        return None
    wide = f"DECIMAL({decimal[0] + 10}, {decimal[1]})"
    exact = f"CAST({argument} AS DECIMAL({decimal[0]}, {decimal[1]}))"
    return columns.keep(wide, f"sum({call.over_rows(exact)})", _summed(wide))


def _double_total(call: Call, columns: PartialColumns) -> str:
    """The sum of fractions over merged partials."""
    return columns.keep("DOUBLE", f"sum({call.over_rows(f'CAST({call.arguments[0]} AS DOUBLE)')})", "sum({0})")


def _decimal_average(call: Call, columns: PartialColumns, precision: int, scale: int) -> AggregateValue | None:
    summed = _exact_total(call, columns, f"DECIMAL({precision}, {scale})")
    if summed is None:
        return None
    mean = decimal_mean(summed, counted(call, columns), precision, scale)
    return None if mean is None else AggregateValue(mean, f"DECIMAL({precision + 4}, {scale + 4})")


def _summed(kind: str, or_zero: bool = False) -> str:
    """The merge of what adds up; a count over no slice at all is 0."""
    return f"coalesce(CAST(sum({{0}}) AS {kind}), CAST(0 AS {kind}))" if or_zero else f"CAST(sum({{0}}) AS {kind})"


SUM_FORMS: dict[str, Form] = {
    "count": count,
    "count_if": count_if,
    "sum": total(reports=True),
    "try_sum": total(reports=False),
    "avg": average,
    "mean": average,
    "try_avg": average,
}


def spread(sample: bool, root: bool) -> Form:
    """VARIANCE or, with `root`, STDDEV; over a `sample` (NULL below two rows) or the whole population."""

    def form(call: Call, columns: PartialColumns) -> AggregateValue | None:
        if len(call.arguments) != 1:
            return None
        kind = columns.type_of(call.arguments[0])
        if kind not in (*SMALL, "BIGINT", *FRACTIONS) and decimal_of(kind) is None:
            return None
        x = call.over_rows(f"CAST({call.arguments[0]} AS DOUBLE)")
        rows = columns.keep("BIGINT", f"count({x})", "coalesce(CAST(sum({0}) AS BIGINT), CAST(0 AS BIGINT))")
        every = f"CAST(nullif(sum({rows}), 0) AS DOUBLE)"
        mean = columns.keep("DOUBLE", f"avg({x})", f"sum(CAST({rows} AS DOUBLE) * {{0}}) / {every}")
        variance = columns.keep(
            "DOUBLE",
            f"var_pop({x})",
            f"sum(CAST({rows} AS DOUBLE) * ({{0}} + ({mean} - {{1}}) * ({mean} - {{1}}))) / {every}",
            beside=(
                f"sum(CAST({rows} AS DOUBLE) * {mean}) OVER merged / CAST(nullif(sum({rows}) OVER merged, 0) AS DOUBLE)"
            ),
        )
        n = f"CAST({rows} AS DOUBLE)"
        value = f"CASE WHEN {rows} > 1 THEN {variance} * ({n} / ({n} - CAST(1 AS DOUBLE))) END" if sample else variance
        return AggregateValue(f"sqrt({value})" if root else value, "DOUBLE")

    return form


SPREAD_FORMS: dict[str, Form] = {
    **dict.fromkeys(("stddev", "std", "stddev_samp"), spread(sample=True, root=True)),
    **dict.fromkeys(("variance", "var_samp"), spread(sample=True, root=False)),
    "stddev_pop": spread(sample=False, root=True),
    "var_pop": spread(sample=False, root=False),
}


def extreme(function: str) -> Form:
    """MIN and MAX: the partial is the extreme of each slice."""

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
    """The value in the row that is least or largest by `before`, then by all values that are asked for of that row."""
    kind = columns.type_of(value)
    key = order_key(value, kind)
    if key is None:
        return None
    # An extreme is the value itself: rows that are chosen by nothing else have nothing in common.
    by = (function, *(sql for sql, _ in before), call.where or "", condition or "") if before else (function, value)
    fields = columns.chosen.setdefault(by, {})
    fields[value] = _comparable(value, kind, key)
    parts = [(f"b{i}", sql, type_) for i, (sql, type_) in enumerate(before)]
    for place, of_value in enumerate(fields.values()):
        parts += ((f"{name}{place or ''}", sql, type_) for name, sql, type_ in of_value)
    row = "named_struct(" + ", ".join(f"'{name}', {nullable(sql, type_)}" for name, sql, type_ in parts) + ")"
    whole = row if condition is None else f"IF({condition}, {row}, NULL)"
    struct = "STRUCT<" + ", ".join(f"{name}: {type_}" for name, _, type_ in parts) + ">"
    name = columns.keep(struct, f"{function}({call.over_rows(whole)})", f"{function}({{0}})")
    place = list(fields).index(value)
    return AggregateValue(f"{name}.v{place or ''}", kind)


def _comparable(value: str, kind: str, key: tuple[str, str]) -> tuple[tuple[str, str, str], ...]:
    """A value as fields of a struct: whether it is there, what orders it where it does not itself, and the value."""
    ordering = [("k", *key)] if key != (value, kind) else []
    return (("h", f"{value} IS NOT NULL", "BOOLEAN"), *ordering, ("v", value, kind))


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
