"""Approximate distinct counts and quantiles from sketches, the ones Spark itself writes (Apache DataSketches).

Law: as close as Spark's own functions promise for the accuracy that was asked for. A distinct count is the same however
rows were cut. Quantiles are exact up to the sketch's size; beyond it they are chosen at random within the error.
"""

from __future__ import annotations

from math import ceil, log2

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.plan.aggregates.exact import counted
from eventide.plan.expressions.aggregate_call import (
    FRACTIONS,
    SMALL,
    AggregateValue,
    Call,
    Form,
    PartialColumns,
    decimal_of,
)
from eventide.plan.expressions.parse import parsed

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
