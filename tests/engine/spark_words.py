"""Rows with edges, and expressions over them that Spark and DuckDB must answer alike."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from eventide.plan.expressions.columns import columns
from eventide.sources.arrow_types import arrow_type

COLUMNS = columns(
    "i INT, j INT, b BIGINT, d DOUBLE, e DOUBLE, f FLOAT, m DECIMAL(10, 2), w DECIMAL(24, 6), s STRING, u STRING, "
    "t TIMESTAMP, v TIMESTAMP, z TIMESTAMP_NTZ, y DATE, o BOOLEAN, a ARRAY<INT>, x BINARY, g MAP<STRING, INT>, "
    "r STRUCT<p: INT, q: STRING>, l BIGINT, h STRING, k SMALLINT"
)

NAN, INF = float("nan"), float("inf")


def _at(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc, arg-type]


ROWS: tuple[tuple[object, ...], ...] = (
    (
        7, 2, 10**12, 1.005, 2.0, 0.1, Decimal("1.05"), Decimal("12345.678901"), "hello", "l",
        _at(2024, 2, 29, 13, 45, 59, 123456), _at(2023, 12, 31, 23, 59, 59), datetime(2024, 2, 29, 1, 2, 3),
        date(2024, 2, 29), True, [3, 1, 2], b"\x00\xff", {"a": 1}, {"p": 1, "q": "z"}, 5, "12", 3,
    ),
    (
        -7, 2, -(10**12), -2.5, 0.5, -1.5, Decimal("-1.05"), Decimal("-0.000001"), "", "x",
        _at(1969, 12, 31, 23, 59, 59, 999999), _at(1970, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 500000),
        date(1969, 12, 31), False, [5], b"", {}, {"p": None, "q": None}, 7, "-7", -3,
    ),
    (
        2147483647, 3, 2**53 + 1, NAN, 3.0, 3.4e38, Decimal("99999999.99"), Decimal("999999999999999999.999999"),
        "Ünï_c%de", "", _at(2000, 1, 1), _at(1999, 12, 31), datetime(2000, 1, 1), date(2000, 1, 1), None, [None, 1],
        b"abc", {"b": None}, {"p": 3, "q": ""}, 2**51 + 1, " 42 ", 300,
    ),
    (
        -2147483648, -3, -(2**62), INF, -1.0, 0.0, Decimal("0.00"), Decimal("0.5"), " pad ded ", " ",
        _at(2024, 12, 30, 0, 0, 0, 1), _at(2024, 1, 1), datetime(2024, 12, 30), date(2024, 12, 30), True, [9, 9, 9],
        b"x", {"a": 7, "b": 8}, {"p": 4, "q": "w"}, 1, "0", 1,
    ),
    (
        0, 5, 0, 123456789.987654321, 1e-7, 1.1, Decimal("12.345").quantize(Decimal("0.01")), Decimal("2.5"), "a,b,,c",
        ",", _at(2021, 7, 4, 12), _at(2021, 7, 4, 11, 59, 59, 999999), datetime(2021, 7, 4), date(2021, 7, 4), False,
        [0], b"\x01\x02", {"c": 3}, {"p": 5, "q": "v"}, 12, "+5", 2,
    ),
    (None,) * 22,
)  # fmt: skip

EXPRESSIONS: tuple[str, ...] = (
    # numbers
    "b div i0", "b div j", "i div j", "i % j", "i % 3", "pmod(i, j)", "pmod(i, 3)", "pmod(b, 60)", "mod(b, 7)",
    "i / j", "b / j", "d / e", "m / j", "m / 3", "m / m1", "w / m1", "m * m", "m + w", "m - 1", "m % 1", "m * 1.5",
    "i * 1.5", "m div 1", "w div 2", "abs(b)", "abs(m)", "sign(d)", "sign(i)", "sign(m)", "signum(e)", "floor(e)",
    "ceil(e)", "floor(m)", "ceil(m)", "floor(i)", "ceiling(w)", "round(d0, 2)", "round(e, 0)", "round(e)",
    "round(m, 1)", "round(m)", "round(i)", "round(w, 3)", "round(d0 * 100, 3)", "sqrt(e)", "cbrt(d)", "exp(e)",
    "ln(e)", "ln(i)", "log(e)", "log10(b)", "log2(j)", "log(2, j)", "power(e, 2)", "pow(j, 3)", "sin(e)", "cos(e)",
    "tan(e)", "asin(e)", "acos(e)", "atan(e)", "atan2(e, d0)", "sinh(e)", "cosh(e)", "tanh(e)", "degrees(e)",
    "radians(e)", "pi()", "e()", "hypot(e, 3.0D)", "greatest(i, j)", "least(i, j)", "greatest(d, e)", "least(d, e)",
    "isnan(d)", "nanvl(d, 1.0D)", "positive(i)", "negative(j)", "-m", "try_add(i, j)", "try_subtract(i, j)",
    "try_multiply(b, b)", "try_divide(i, 0)", "try_divide(i, j)", "try_mod(i, 0)", "shiftright(b, 32)", "b >> 32",
    "b & 4294967295", "i | j", "i ^ j", "~i", "bit_count(j)", "zeroifnull(i)", "nullifzero(i)",
    # conditions
    "i = j", "i <> j", "i <=> j", "NULL <=> i", "d = d", "d > 1e300D", "d < 0", "o AND i > 0", "o OR i > 0", "NOT o",
    "i BETWEEN 0 AND 10", "i IN (7, 0)", "s IN ('hello', '')", "i IS NULL", "isnull(s)", "isnotnull(s)",
    "if(i > 0, 'p', 'n')", "nvl(i, 1)", "nvl2(i, 1, 2)", "ifnull(s, 'none')", "nullif(i, 7)", "coalesce(NULL, i, j)",
    "CASE WHEN i > 0 THEN 1 WHEN i < 0 THEN -1 END", "CASE i WHEN 7 THEN 'seven' ELSE 'other' END", "equal_null(i, j)",
    # casts
    "CAST(d0 AS INT)", "CAST(e AS BIGINT)", "CAST(m AS INT)", "CAST(w AS BIGINT)", "CAST(h AS INT)",
    "CAST(h AS BIGINT)", "CAST(o AS INT)", "CAST(i AS STRING)", "CAST(m AS STRING)", "CAST(w AS STRING)",
    "CAST(d AS STRING)", "CAST(f AS STRING)", "CAST(e AS STRING)", "CAST(e * 1e-5D AS STRING)",
    "CAST(e * 12345678912D AS STRING)", "CAST(o AS STRING)", "CAST(t AS STRING)", "CAST(z AS STRING)",
    "CAST(y AS STRING)", "CAST(d0 AS DECIMAL(20, 2))", "CAST(e AS DECIMAL(10, 3))", "CAST(m AS DECIMAL(12, 1))",
    "CAST(i AS DOUBLE)", "CAST(h AS DOUBLE)", "CAST(h AS DECIMAL(10, 2))", "CAST(t AS DATE)", "CAST(y AS TIMESTAMP)",
    "CAST(t AS BIGINT)", "CAST(j AS TIMESTAMP)", "CAST(z AS TIMESTAMP)", "CAST(t AS TIMESTAMP_NTZ)",
    "CAST(i AS BOOLEAN)", "CAST(f AS DOUBLE)", "CAST(e AS FLOAT)", "try_cast(s AS INT)", "try_cast(b AS INT)",
    "int(e)", "bigint(e)", "string(j)", "double(i)", "CAST('2024-01-05' AS DATE)", "DATE '2020-01-01'",
    "TIMESTAMP '2020-01-01 10:00:00'", "CAST('2020-01-01 10:00:00' AS TIMESTAMP)", "5L", "1.5D", "2S", "1e2", "1.25BD",
    # times
    "year(t)", "quarter(t)", "month(t)", "day(t)", "dayofmonth(y)", "hour(t)", "minute(t)", "second(t)",
    "dayofweek(y)", "weekday(y)", "dayofyear(t)", "weekofyear(y)", "extract(YEAR FROM t)", "extract(HOUR FROM t)",
    "date_part('month', t)",
    *(f"date_trunc('{unit}', t)" for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")),
    "date_trunc('hour', y)", "trunc(y, 'month')", "trunc(t, 'year')", "date_add(y, 3)", "date_sub(y, j)",
    "datediff(y, v)", "date_diff(t, v)", "add_months(y, 1)", "last_day(y)", "unix_timestamp(t)", "unix_seconds(t)",
    "unix_millis(t)", "unix_micros(t)", "unix_date(y)", "timestamp_micros(l)", "timestamp_millis(k)",
    "timestamp_seconds(j)", "date_from_unix_date(j)", "make_date(2024, 2, 3)", "to_date('2024-01-05')",
    "to_timestamp('2024-01-05 01:02:03')", "to_timestamp(concat('0', 1 + pmod(j, 9), '/12/2024'), 'dd/MM/yyyy')",
    "to_timestamp('2024-01-05T01:02:03.456', \"yyyy-MM-dd'T'HH:mm:ss.SSS\")", "to_date(t)",
    "t + INTERVAL 1 HOUR", "t - INTERVAL '2' DAY", "t > v", "t = z", "y < DATE '2020-01-01'", "least(t, v)",
    # texts
    "length(s)", "char_length(s)", "octet_length(s)", "upper(u)", "lower(s)", "trim(s)", "ltrim(s)", "rtrim(s)",
    "btrim(s)", *(f"substring(s, {p}, 3)" for p in (-9, -3, -1, 0, 1, 2, 7)), "substr(s, 2)", "substring(s, 2, 0)",
    "left(s, 2)", "right(s, 2)", "right(s, 0)", "concat(s, u)", "s || u", "concat(s, i)", "concat_ws('-', s, NULL, u)",
    "instr(s, 'l')", "locate('l', s)", "position('l', s)", "replace(s, 'l', 'LL')", "lpad(s, 7, '*')",
    "lpad(s, 3, '*')", "rpad(s, 7, 'ab')", "lpad(s, 6)", "repeat(u, 3)", "reverse(s)", "s LIKE 'h%'",
    "s LIKE '%\\\\_c%'", "s LIKE '%_%'", "s NOT LIKE 'h_llo'", "s RLIKE '^h.*o$'", "regexp_like(s, 'l+')",
    "regexp_replace(s, 'l+', 'L')", "regexp_extract(s, '(l+)(o)', 2)", "split(s, ',')", "startswith(s, 'he')",
    "endswith(s, 'lo')", "contains(s, 'ell')", "md5(s)", "sha2(s, 256)", "hex(s)", "hex(i)", "hex(x)",
    "translate(s, 'lo', '01')", "s < u", "s >= 'a'", "s || 'it''s'", "'a\\nb'", '"double"',
    # arrays, structs, maps
    "array(i, j)", "array(1, NULL)", "a[0]", "get(a, 2)", "get(a, -1)", "element_at(a, 1)", "element_at(a, -1)",
    "try_element_at(a, 3)", "size(a)", "cardinality(a)", "array_contains(a, 1)", "array_contains(a, 9)",
    "sort_array(a)", "sort_array(a, false)", "array_min(a)", "array_max(a)", "transform(a, q -> q + 1)",
    "filter(a, q -> q > 1)", "array_join(split(s, ','), '|')", "r.p", "r.q", "named_struct('n', i, 'c', s)",
    "struct(i, s)", "struct(i0 + 1, s).col1", "g['a']", "map_keys(g)", "map_values(g)", "size(g)",
    "a = array(3, 1, 2)", "element_at(g, 'a')",

)  # fmt: skip


def table() -> pa.Table:
    """The rows, with `i0`, `d0` and `m1`: numbers that can be divided by, cast and the like without an error."""
    fields = [pa.field(column.name, arrow_type(column.type)) for column in COLUMNS]
    arrays = [pa.array([row[n] for row in ROWS], field.type) for n, field in enumerate(fields)]
    more = {
        "i0": pa.array([7, -2, 3, 5, 1, None], pa.int32()),
        "d0": pa.array([1.005, -2.5, 2.675, 0.125, 1e9 + 0.5, None], pa.float64()),
        "m1": pa.array(
            [Decimal("0.03"), Decimal("-7.00"), Decimal("9999.99"), Decimal("1.00"), Decimal("3.00"), None],
            pa.decimal128(6, 2),
        ),
    }
    for name, array in more.items():
        fields.append(pa.field(name, array.type))
        arrays.append(array)
    return pa.table(arrays, schema=pa.schema(fields))


ALL_COLUMNS = (*COLUMNS, *columns("i0 INT, d0 DOUBLE, m1 DECIMAL(6, 2)"))
