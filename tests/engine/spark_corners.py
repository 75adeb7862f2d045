"""Values at the edges of their types, and expressions over them in which DuckDB left to itself differs from Spark."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa

from eventide.plan.expressions.columns import columns
from eventide.sources.arrow_types import arrow_type

COLUMNS = columns(
    "__t BIGINT, i INT, j INT, b BIGINT, c BIGINT, n TINYINT, k TINYINT, f FLOAT, d DOUBLE, m DECIMAL(10, 2), "
    "t TIMESTAMP, z TIMESTAMP_NTZ, y DATE, o BOOLEAN, s STRING, h STRING, a ARRAY<STRING>, e ARRAY<DOUBLE>, "
    "r STRUCT<p: INT, q: STRING>"
)
NAN, INF = float("nan"), float("inf")


def _at(*parts: int) -> tuple[datetime, datetime, date]:
    wall = datetime(*parts)  # type: ignore[arg-type]
    return wall.replace(tzinfo=UTC), wall, wall.date()


ROWS: tuple[tuple[object, ...], ...] = (
    (
        0, -(2**31), -1, -(2**63), -1, -128, -1, 0.1, NAN, Decimal("1.50"), *_at(2024, 1, 2, 3, 4, 5), True, "hello",
        "12", ["a", None, "b"], [1.5, None, 1e10], {"p": 1, "q": "a"},
    ),
    (
        1, 2**31 - 1, 0, 2**63 - 1, 0, 127, 1, NAN, INF, Decimal("-1.50"), *_at(2024, 1, 7, 3, 4, 5, 120000), False,
        "ΣΊΣΥΦΟΣ", "1.5", [], [], {"p": None, "q": "a"},
    ),
    (
        2, 7, -1, 7, -1, 100, 100, 3.5, -INF, Decimal("0.10"), *_at(1969, 12, 31, 23, 59, 59, 999999), None,
        "straße ﬁ İ", "1_000", [None], [NAN], {"p": 1, "q": None},
    ),
    (
        3, 4, 2, 5, 6, 3, 4, -0.0, -0.0, Decimal("0.00"), *_at(1900, 1, 1), True, "e\u0301a\U0001f600b", "x", None,
        None, {"p": 2, "q": "a"},
    ),
    (
        4, 16777217, 3, 2**53 + 1, 3, 11, 12, 1.1, 1e19, Decimal("1.10"), *_at(2024, 6, 30, 23, 59, 59, 500000), True,
        "line\nnext\n", "2024-01-02", ["a,b", ""], [-0.0], {"p": None, "q": None},
    ),
    (
        5, 6, 1, 6, 1, 1, 1, 1e10, 1e-5, Decimal("99999999.99"), *_at(9999, 12, 31), False, "x\r\n", "16777217", ["x"],
        [1e-7], None,
    ),
    (6, *(None,) * 18),
)  # fmt: skip

IMPLICIT_CASTS = (
    "f = 0.1", "f > 0.1", "f <=> 0.1", "f IN (0.1, 1.1)", "f BETWEEN 0.1 AND 1.1", "f = m", "f + 0.1", "f * m", "f + 1",
    "f + i", "f / f", "f / 2", "f % 2", "greatest(f, i)", "coalesce(f, 0.1)", "coalesce(f, i)", "if(o, f, 0.1)",
    "CASE WHEN o THEN f ELSE n END", "CASE f WHEN 0.1 THEN 'a' ELSE 'b' END", "nullif(f, 0.1)", "array(f, i)",
    "nanvl(f, 1.5)", "n + 1", "n * 2", "1 + n", "n % 3", "coalesce(n, 1)", "least(n, 5)", "array(n, 1)",
    "try_add(n, 1)", "try_add(n, k)", "try_add(f, 1)", "try_subtract(m, f)", "try_multiply(m, m)", "try_divide(f, 2)",
    "h = 12", "h = b", "h <=> 12", "h <> 12", "h IN (12, 5)", "h BETWEEN 1 AND 20", "h + 1", "h * 1.5", "h / 2",
    "-h", "abs(h)", "sqrt(h)", "coalesce(h, i)", "if(o, i, h)", "CASE h WHEN 12 THEN 'a' ELSE 'b' END", "nullif(h, 5)",
    "h < y", "h < t", "i = '7'", "i + '5'", "hour(h)",
    "concat(s, d)", "d || ''", "f || 'x'", "t || 'x'", "concat(t, ' ', z, ' ', y)", "concat(i)", "concat(i, m)",
    "concat_ws('|', z, t, y, o, m, f, d)", "upper(d)", "length(t)", "length(m)", "substring(t, 1, 4)", "lpad(i, 12, 0)",
    "replace(d, '.', ',')", "trim(d)", "startswith(i, '1')", "left(i, 2)", "instr(i, '7')", "d LIKE '1%'",
    "regexp_replace(i, '1', 'x')", "concat('<', e[0], '>')",
)  # fmt: skip

REMAINDERS = (
    "i % j", "b % c", "i % -1", "b % -1L", "n % k", "pmod(i, j)", "pmod(b, c)", "try_mod(i, j)", "i div j",
)  # fmt: skip

ROUNDED = (
    "floor(d)", "ceil(d)", "floor(f)", "ceil(f)", "floor(d / 2)", "floor(9223372036854775808D)", "round(d)",
    "round(f, 2)", "CAST(floor(d) AS STRING)",
)  # fmt: skip

COMPARED = (
    "r = named_struct('p', 1, 'q', 'a')", "r < named_struct('p', 1, 'q', 'b')", "r >= named_struct('p', 1, 'q', 'b')",
    "r <= r", "a > a",
)  # fmt: skip

PATTERNS = (
    "s RLIKE 't$'", "s RLIKE 'x$'", "s RLIKE '^x.$'", "s RLIKE 'line.next'", "s RLIKE '(?s)line.next'",
    "s RLIKE '^[^a-h]'", "s RLIKE '\\\\s$'", "s RLIKE '(?i)HELLO'", "s RLIKE '\\\\p{L}+\\\\d?'", "s RLIKE '\\\\u0301'",
    "regexp_replace(s, '(l+)(o)', '$2$1')", "regexp_replace(s, '(l+)', '[$1]')", "regexp_replace(s, '(l+)', '\\\\1')",
    "regexp_replace(s, 'l', '\\\\$')", "regexp_replace(s, 't$', 'T')", "regexp_replace(s, 'l', '')",
    "regexp_extract(s, '(l+)(o)', 0)", "regexp_extract(s, '(l+)(o)')", "regexp_extract(s, 'l(.)$', 1)",
    "regexp_extract(s, '(z)?(l+)', 1)", "split(s, 'l')", "split(s, '')", "split(s, '[aeo]')",
)  # fmt: skip

LETTERS = ("upper(s)", "lower(s)", "reverse(s)", "reverse(a)", "reverse(i)", "trim(s)", "length(s)", "left(s, 2)")

TIMES = (
    *(f"date_part('{unit}', t)" for unit in ("dow", "dayofweek_iso", "second", "yearofweek", "mins", "w", "qtr")),
    "date_part('seconds', z)", "date_part('DOY', y)", "datepart('days', y)", "date_part('second', y)",
    "CAST(t AS DOUBLE)", "CAST(t AS FLOAT)", "from_utc_timestamp(t, 'Europe/Berlin')", "sign(d)", "sign(f)",
    *(f"extract({unit} FROM t)" for unit in ("DOW", "SECOND", "DAYOFWEEK", "YEAROFWEEK", "WEEK", "HOURS")),
)  # fmt: skip

JOINED = ("array_join(a, ',')", "array_join(a, ',', 'none')", "array_join(e, '-')", "array_join(array(i, j), '-')")

CORNERS: tuple[str, ...] = (
    *IMPLICIT_CASTS, *REMAINDERS, *ROUNDED, *COMPARED, *PATTERNS, *LETTERS, *TIMES, *JOINED,
)  # fmt: skip

TEXTS = (
    "12", " 12 ", "\t12\n", "+7", "1_000", "1e3", "1e-3", "1.5", ".5", "5.", "1.5d", "1.005", "0x10", "inf", "Infinity",
    "nan", "", "true", "t", "2024", "2024-02", "2024-1-2", "2024-01-02", "2024/01/02", "24-01-02", "10000-01-02",
    "2024-02-30", "2024-01-02 abc", "2024-01-02 (BC)", "2024-01-02T", "2024-01-02 03", "2024-01-02 03:04",
    "2024-01-02 03:04Z", "2024-01-02 3:4:5", "2024-01-02 03:04:05.678", "2024-01-02T03:04:05Z",
    "2024-01-02 03:04:05 +02:00", "2024-01-02 03:04:05Europe/Paris", "2024-01-02 24:00:00", "2024-01-02 03:04:60",
    "epoch", None,
)  # fmt: skip
TEXT_COLUMNS = columns("__t BIGINT, s STRING")
TEXT_CASTS = tuple(
    f"{cast}(s AS {kind})"
    for cast in ("CAST", "try_cast")
    for kind in ("INT", "DOUBLE", "FLOAT", "DECIMAL(10, 2)", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BOOLEAN")
)


def texts() -> pa.Table:
    """Texts that are a number, a date or a time for one engine or the other."""
    return pa.table({"__t": list(range(len(TEXTS))), "s": list(TEXTS)})


def corners() -> pa.Table:
    """The rows."""
    fields = [pa.field(column.name, arrow_type(column.type)) for column in COLUMNS]
    arrays = [pa.array([row[n] for row in ROWS], field.type) for n, field in enumerate(fields)]
    return pa.table(arrays, schema=pa.schema(fields))
