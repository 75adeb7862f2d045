"""Split a selected expression over aggregates into partials, which slices keep, and its value over merged partials.

Laws. However rows are cut into slices, reducing each, merging all and computing the value gives what Spark's own
aggregate gives over all the rows. An expression with an aggregate that has no such form is not split: its slices keep
their rows. Sketches (Apache DataSketches, those that Spark itself writes) are as close as Spark's functions promise for
the accuracy that was asked for: a distinct count is the same however rows were cut; quantiles are exact up to the size
of the sketch, and beyond it chosen at random within the error.

>>> found = split("p", "max(price) - min(price)", lambda sql: "INT")
>>> found.value, [partial.reduce for partial in found.partials]
('CAST(CAST(p_0 AS INT) - CAST(p_1 AS INT) AS INT)', ['max(price)', 'min(price)'])
>>> split("p", "percentile(price, 0.5)", lambda sql: "DOUBLE") is None
True
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from math import ceil, log2
from typing import TypeVar

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.plan.bound.exact_aggregates import ORDERED_FORMS, SPREAD_FORMS, SUM_FORMS, counted
from eventide.plan.duckdb.transpile import same_answer
from eventide.plan.expressions.aggregate_call import (
    FRACTIONS,
    SMALL,
    AggregateValue,
    Call,
    ChosenRows,
    Form,
    PartialColumns,
    Split,
    call_from,
    decimal_of,
)
from eventide.plan.expressions.columns import Column
from eventide.plan.expressions.parse import SPARK, aggregates_in, parsed

T = TypeVar("T")

SUMMING = ("sum", "try_sum", "avg", "mean", "try_avg")
SPREADING = ("std", "stddev", "stddev_samp", "stddev_pop", "variance", "var_samp", "var_pop")
"""Aggregates of numbers: to all of them a text is a number, and to sums a time, too."""

DISTINCT_IS_NOTHING = ("min", "max", "bool_and", "bool_or", "every", "any", "some", "bit_and", "bit_or")
"""Aggregates to which a value that comes twice is as good as one that comes once."""


def split(
    name: str,
    expression: str,
    type_of: Callable[[str], str],
    time: str = "",
    kind: str | None = None,
    chosen: ChosenRows | None = None,
) -> Split | None:
    """The partials of an expression and its value over them, or None where rows must be kept.

    `name` is the prefix of the partial columns' names; `type_of` gives the Spark type of an expression over the
    stream's columns; `time` is the application time as a whole number, in SQL, for what is first and last. Columns
    outside of aggregates (groups) stay in the value as they are; where `type_of` does not know them, `kind` must
    give the type of the whole. `chosen` is shared by the expressions of one query (`split_together`).
    """
    tree = parsed(expression, f"the expression {expression!r}")
    columns = PartialColumns(name, cache(type_of), time, {} if chosen is None else chosen)
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


def split_together(
    prefix: str, expressions: Sequence[str], type_of: Callable[[str], str], time: str = ""
) -> list[Split | None]:
    """Split the expressions of one query: values that are chosen in the same way are those of one row.

    >>> both = split_together("p", ["last(a)", "last(b)"], lambda sql: "INT", "t")
    >>> [one.value for one in both if one], len({one.partials[0].reduce for one in both if one})
    (['CAST(p0_0.v AS INT)', 'CAST(p1_0.v1 AS INT)'], 1)
    """
    known = cache(type_of)
    return of_one_row(
        lambda chosen: [split(f"{prefix}{i}", sql, known, time, chosen=chosen) for i, sql in enumerate(expressions)]
    )


def of_one_row(read: Callable[[ChosenRows], T]) -> T:
    """Read expressions of one query: again, where several ask for values of a row that is chosen in the same way.

    What is asked for of a row is known when all expressions have been looked at.
    """
    chosen: ChosenRows = {}
    found = read(chosen)
    return read(chosen) if any(len(values) > 1 for values in chosen.values()) else found


def over_rows(
    expression: str,
    type_of: Callable[[str], str],
    time: str = "",
    columns: tuple[Column, ...] = (),
    chosen: ChosenRows | None = None,
) -> Split:
    """The value of an expression over rows that were kept, for queries where some aggregate has no partials.

    The other aggregates give what they give from partials, so that they mean the same in such a query: FIRST is by
    time, ties are broken by value, a sum that overflows is NULL and reported. `type_of` must know aggregates.

    >>> over_rows("max(x) || mode(y)", lambda sql: "STRING").value
    'CAST(CAST(MAX(x) AS STRING) || MODE(y) AS STRING)'
    """
    tree = parsed(expression, f"the expression {expression!r}")
    partials = PartialColumns("eventide_partial", cache(type_of), time, {} if chosen is None else chosen)
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


LARGEST_EXACT = "9223372036854774784.0D"
"""The largest DOUBLE that is a BIGINT."""


def distinct(call: Call, columns: PartialColumns) -> AggregateValue | None:
    """APPROX_COUNT_DISTINCT: NULL is no value; 0 without rows."""
    if not call.arguments:
        return None
    hashed = _hashed(call.arguments[0], columns.type_of(call.arguments[0]))
    error = _positive_number(call.arguments[1]) if len(call.arguments) > 1 else None
    if hashed is None or (len(call.arguments) > 1 and not error):
        return None
    lg_k = _lg_k(float(error)) if error is not None else 12
    name = columns.keep("BINARY", f"hll_sketch_agg({call.over_rows(hashed)}, {lg_k})", "hll_union_agg({0})")
    # A sketch that was never merged estimates in another way, which depends on the order of rows: so merge always.
    return AggregateValue(f"hll_sketch_estimate(hll_union({name}, {name}))", "BIGINT")


def quantile(call: Call, columns: PartialColumns) -> AggregateValue | None:
    """APPROX_PERCENTILE, of one share or an array of them; of the type of its values."""
    if len(call.arguments) not in (2, 3):
        return None
    x = call.arguments[0]
    kind = columns.type_of(x)
    number, back = _as_double(x, kind), _from_double(kind)
    shares = _shares(call.arguments[1])
    accuracy = _positive_number(call.arguments[2]) if len(call.arguments) == 3 else "10000"
    if number is None or back is None or shares is None or accuracy is None or not accuracy.isdigit():
        return None
    k = _k(min(int(accuracy), 2**31 - 1))
    # The sketch does not see NaN, which is a value in Spark, above all others: it stands in as infinity.
    seen = f"IF(isnan({number}), CAST('Infinity' AS DOUBLE), {number})" if kind in FRACTIONS else number
    name = columns.keep(
        "BINARY", f"kll_sketch_agg_double({call.over_rows(seen)}, {k})", f"kll_merge_agg_double({{0}}, {k})"
    )
    rows = counted(Call("count", (x,), call.where), columns)
    values = [f"kll_sketch_get_quantile_double({name}, {share}D)" for share in shares]
    if kind in FRACTIONS:
        inner = call.over_rows(f"IF(isnan({number}), 1, NULL)")
        nans = columns.keep("BIGINT", f"count({inner})", "coalesce(CAST(sum({0}) AS BIGINT), CAST(0 AS BIGINT))")
        values = [
            f"IF(greatest(ceil({share}D * CAST({rows} AS DOUBLE)), 1L) > {rows} - {nans}, CAST('NaN' AS DOUBLE), {v})"
            for share, v in zip(shares, values, strict=True)
        ]
    values_of = [back.format(value) for value in values]
    is_array = call.arguments[1].upper().startswith("ARRAY")
    answer = f"array({', '.join(values_of)})" if is_array else values_of[0]
    return AggregateValue(f"CASE WHEN {rows} > 0 THEN {answer} END", f"ARRAY<{kind}>" if is_array else kind)


def sketch(merge: str) -> Form:
    """A sketch as the user's own value, merged by the given function."""

    def form(call: Call, columns: PartialColumns) -> AggregateValue | None:
        kind = columns.type_of(call.arguments[0])
        if call.name == "kll_sketch_agg_double" and kind not in (*SMALL, "BIGINT", *FRACTIONS, "VOID"):
            raise DeclarationError(f"{call.name} takes numbers, and {call.arguments[0]} is {kind}: CAST it to DOUBLE")
        arguments = ", ".join([call.over_rows(call.arguments[0]), *call.arguments[1:]])
        return AggregateValue(columns.keep("BINARY", f"{call.name}({arguments})", merge), "BINARY")

    return form


def _hashed(x: str, kind: str) -> str | None:
    """A value as the sketch can see it: a whole number or a text that is not empty."""
    if kind in (*SMALL, "BIGINT", "BOOLEAN"):
        return f"CAST({x} AS BIGINT)" if kind != "BOOLEAN" else f"CAST(CAST({x} AS INT) AS BIGINT)"
    if kind == "STRING":
        return f"concat('_', {x})"
    if kind in FRACTIONS:
        return f"CAST(CAST({x} AS DOUBLE) + 0.0D AS STRING)"
    if kind == "BINARY":
        return f"concat('_', hex({x}))"
    if kind == "DATE":
        return f"CAST(unix_date({x}) AS BIGINT)"
    if kind in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        return f"unix_micros({x})" if kind == "TIMESTAMP" else f"unix_micros(CAST({x} AS TIMESTAMP))"
    return f"CAST({x} AS STRING)" if decimal_of(kind) is not None else None


def _as_double(x: str, kind: str) -> str | None:
    if kind in (*SMALL, "BIGINT", *FRACTIONS):
        return f"CAST({x} AS DOUBLE)"
    if kind == "DATE":
        return f"CAST(unix_date({x}) AS DOUBLE)"
    if kind in ("TIMESTAMP", "TIMESTAMP_NTZ"):
        instant = x if kind == "TIMESTAMP" else f"CAST({x} AS TIMESTAMP)"
        return f"CAST(unix_micros({instant}) AS DOUBLE)"
    decimal = decimal_of(kind)
    # More digits than a DOUBLE holds would come back changed.
    return f"CAST({x} AS DOUBLE)" if decimal is not None and decimal[0] <= 15 else None


def _from_double(kind: str) -> str | None:
    """How a DOUBLE becomes a value of the type again, with `{}` in its place."""
    if kind == "BIGINT":
        return f"CAST(least({{}}, {LARGEST_EXACT}) AS BIGINT)"
    if kind == "DATE":
        return "date_from_unix_date(CAST({} AS INT))"
    if kind == "TIMESTAMP":
        return "timestamp_micros(CAST({} AS BIGINT))"
    if kind == "TIMESTAMP_NTZ":
        return "CAST(timestamp_micros(CAST({} AS BIGINT)) AS TIMESTAMP_NTZ)"
    return f"CAST({{}} AS {kind})"


def _shares(sql: str) -> list[str] | None:
    """The shares that are asked for, where they are plain numbers.

    >>> _shares("array(0.5, 0.9)"), _shares("0.5"), _shares("x")
    (['0.5', '0.9'], ['0.5'], None)
    """
    read = parsed(sql, "a share")
    parts = read.expressions if sql.upper().startswith("ARRAY") else [read]
    texts = [part.name for part in parts]
    return texts if texts and all(_is_number(text) for text in texts) else None


def _positive_number(sql: str) -> str | None:
    """A number above 0 that is written out.

    >>> _positive_number("0.05"), _positive_number("x"), _positive_number("0")
    ('0.05', None, None)
    """
    read = parsed(sql, "a number")
    is_number = isinstance(read, exp.Literal) and not read.is_string and _is_number(read.name)
    return read.name if is_number and float(read.name) > 0 else None


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()


def _lg_k(error: float) -> int:
    """The size of a sketch whose standard error is no larger.

    >>> _lg_k(0.05), _lg_k(0.01)
    (9, 14)
    """
    return min(21, max(7, ceil(2 * log2(1.04 / error))))


def _k(accuracy: int) -> int:
    """The size of a sketch whose error of ranks is about 1 / accuracy, as Spark promises.

    >>> _k(100), _k(10_000)
    (269, 30565)
    """
    return min(65535, max(8, ceil(float((2.296 * accuracy) ** (1 / 0.9723)))))


SKETCH_FORMS: dict[str, Form] = {
    "approx_count_distinct": distinct,
    **dict.fromkeys(("approx_percentile", "percentile_approx"), quantile),
    "hll_sketch_agg": sketch("hll_union_agg({0})"),
    "hll_union_agg": sketch("hll_union_agg({0}, TRUE)"),
    "kll_sketch_agg_double": sketch("kll_merge_agg_double({0})"),
    "kll_merge_agg_double": sketch("kll_merge_agg_double({0})"),
}

FORMS: dict[str, Form] = {
    **SUM_FORMS,
    **SPREAD_FORMS,
    **ORDERED_FORMS,
    **SKETCH_FORMS,
}
"""The form of each aggregate that can be computed from partials, by its name in Spark."""
