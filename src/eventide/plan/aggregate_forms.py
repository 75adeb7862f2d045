"""The forms of aggregates: which partials each keeps and how its value is told from them.

Law: whole numbers and decimals lose nothing on the way, so their answers do not depend on how rows were cut; sums of
fractions may differ in the last digits, as they do in Spark itself.
"""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from eventide.plan.aggregate_call import Call, Columns, Told
from eventide.plan.expressions import SPARK

Form = Callable[[Call, Columns], Told | None]

SMALL = ("TINYINT", "SMALLINT", "INT")
FRACTIONS = ("FLOAT", "DOUBLE")
PLAIN = (*SMALL, "BIGINT", *FRACTIONS, "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BINARY")
"""Types whose order is the same in Spark and DuckDB."""

BIGINT_RANGE = "BETWEEN -9223372036854775808 AND 9223372036854775807"


def decimal_of(kind: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type.

    >>> decimal_of("DECIMAL(10, 2)"), decimal_of("INT")
    ((10, 2), None)
    """
    if not kind.startswith("DECIMAL"):
        return None
    parts = kind.removeprefix("DECIMAL").strip("()").split(",")
    return (int(parts[0] or 10), int(parts[1]) if len(parts) > 1 else 0)


def count(call: Call, columns: Columns) -> Told | None:
    """Rows, or rows where no argument is NULL."""
    return Told(counted(call, columns), "BIGINT")


def counted(call: Call, columns: Columns) -> str:
    """The name of the partial that counts the rows of a call."""
    arguments = [a.sql(SPARK) for a in call.arguments if not isinstance(a, exp.Star)]
    if not arguments and call.where is None:
        reduce = "count(*)"
    elif len(arguments) == 1:
        reduce = f"count({call.over_rows(arguments[0])})"
    else:
        all_there = " AND ".join(f"{a} IS NOT NULL" for a in arguments)
        one = f"IF({all_there}, 1, NULL)" if arguments else "1"
        reduce = f"count({call.over_rows(one)})"
    return columns.keep("BIGINT", reduce, "CAST(sum({}) AS BIGINT)")


def sum_(call: Call, columns: Columns) -> Told | None:
    """NULL without rows; whole numbers give BIGINT, decimals ten digits more, fractions DOUBLE."""
    if len(call.arguments) != 1:
        return None
    argument = call.arguments[0].sql(SPARK)
    kind = columns.type_of(argument)
    total = exact_total(call, columns, kind)
    if kind in SMALL and total is not None:
        return Told(total, "BIGINT")
    if kind == "BIGINT" and total is not None:
        check = f"{total} IS NULL OR {total} {BIGINT_RANGE}"
        value = f"CASE WHEN {total} {BIGINT_RANGE} THEN CAST({total} AS BIGINT) END"
        return Told(value, "BIGINT", ((check, f"the sum of {argument} overflows BIGINT"),))
    decimal = decimal_of(kind)
    if decimal is not None and total is not None:
        return Told(total, f"DECIMAL({min(38, decimal[0] + 10)}, {decimal[1]})")
    if kind in FRACTIONS:
        return Told(double_total(call, columns), "DOUBLE")
    return None


def exact_total(call: Call, columns: Columns, kind: str) -> str | None:
    """The sum of whole numbers or decimals over merged partials, without loss; None for other types."""
    argument = call.arguments[0].sql(SPARK)
    if kind in SMALL:
        reduce = f"sum({call.over_rows(f'CAST({argument} AS BIGINT)')})"
        return columns.keep("BIGINT", reduce, "CAST(sum({}) AS BIGINT)")
    if kind == "BIGINT":
        high = f"sum({call.over_rows(f'shiftright(CAST({argument} AS BIGINT), 32)')})"
        low = f"sum({call.over_rows(f'CAST({argument} AS BIGINT) & 4294967295')})"
        above = columns.keep("BIGINT", high, "CAST(sum({}) AS BIGINT)")
        below = columns.keep("BIGINT", low, "CAST(sum({}) AS BIGINT)")
        return (
            f"(CAST({above} AS DECIMAL(19, 0)) * CAST(4294967296 AS DECIMAL(10, 0)) + CAST({below} AS DECIMAL(19, 0)))"
        )
    decimal = decimal_of(kind)
    if decimal is None or decimal[0] > 28:
        return None
    wide = f"DECIMAL({decimal[0] + 10}, {decimal[1]})"
    exact = f"CAST({argument} AS DECIMAL({decimal[0]}, {decimal[1]}))"
    return columns.keep(wide, f"sum({call.over_rows(exact)})", f"CAST(sum({{}}) AS {wide})")


def double_total(call: Call, columns: Columns) -> str:
    """The sum of fractions over merged partials."""
    argument = call.over_rows(f"CAST({call.arguments[0].sql(SPARK)} AS DOUBLE)")
    return columns.keep("DOUBLE", f"sum({argument})", "sum({})")


def avg(call: Call, columns: Columns) -> Told | None:
    """NULL without rows; DOUBLE, or for decimals four more digits."""
    if len(call.arguments) != 1:
        return None
    kind = columns.type_of(call.arguments[0].sql(SPARK))
    if kind not in (*SMALL, "BIGINT", *FRACTIONS):
        return None
    total = double_total(call, columns) if kind in FRACTIONS else exact_total(call, columns, kind)
    rows = counted(call, columns)
    return Told(f"CAST({total} AS DOUBLE) / CAST(nullif({rows}, 0) AS DOUBLE)", "DOUBLE")


def extreme(function: str) -> Form:
    """MIN or MAX of values whose order both engines agree on."""

    def form(call: Call, columns: Columns) -> Told | None:
        if len(call.arguments) != 1:
            return None
        kind = columns.type_of(call.arguments[0].sql(SPARK))
        if kind not in PLAIN and decimal_of(kind) is None:
            return None
        return Told(columns.keep(kind, f"{function}({call.over_rows(call.arguments[0])})", f"{function}({{}})"), kind)

    return form


FORMS: dict[str, Form] = {
    "count": count,
    "sum": sum_,
    "avg": avg,
    "mean": avg,
    "min": extreme("min"),
    "max": extreme("max"),
}
"""The form of each aggregate that can be told from partials, by its name in Spark."""
