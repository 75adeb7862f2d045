"""Aggregates with partials, each with what Spark must say over all rows, and random rows with edges to try them on."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random

import pyarrow as pa

from eventide.sources.arrow_types import arrow_type
from tests.engine.partial_runs import COLUMNS

EPOCH = datetime(1970, 1, 1)


def _at_time(function: str, value: str, keeps: str | None = None) -> str:
    """The value at the first or last time, ties by value, NULL below all values."""
    row = f"named_struct('t', t, 'h', {value} IS NOT NULL, 'v', {value})"
    return f"{function}({row if keeps is None else f'IF({keeps}, {row}, NULL)'}).v"


def _at_extreme(function: str, value: str, by: str) -> str:
    return f"{function}(IF({by} IS NULL, NULL, named_struct('b', {by}, 'h', {value} IS NOT NULL, 'v', {value}))).v"


def _discrete(value: str, share: float) -> str:
    # Spark's own approximation loses its order when it meets NaN.
    return f"percentile_disc({share}) WITHIN GROUP (ORDER BY {value})"


def _distinct(value: str, keeps: str = "TRUE") -> str:
    return f"CAST(size(collect_set({value}) FILTER (WHERE {keeps})) AS BIGINT)"


# Spark's SUM ends with an error where ours is NULL and told.
EXACT_SUM = "try_cast(sum(CAST(b AS DECIMAL(38, 0))) AS BIGINT)"

ORDERED = ("ti", "i", "b", "d", "f", "m", "w", "s", "o", "ts", "z", "y", "a", "r", "x")

CASES: dict[str, str] = {
    **{
        sql: sql
        for sql in (
            "count(*)", "count(i)", "count(i, s)", "count(*) FILTER (WHERE c)", "count(i) FILTER (WHERE c)",
            "count(1)", "sum(ti)", "sum(i)", "sum(d)", "sum(f)", "sum(m)", "sum(w)", "sum(i) FILTER (WHERE c)",
            "sum(i + ti)", "sum(m) FILTER (WHERE c AND i > 0)", "sum(m * 1.5)", "sum(m + w)",
            "sum(CASE WHEN o THEN 1 ELSE 0 END)", "avg(ti)", "avg(i)", "avg(d)", "avg(e)", "avg(f)", "avg(m)",
            "avg(w)", "mean(i)", "avg(m) FILTER (WHERE c)", "avg(m * 2)", "try_avg(e)",
            *(f"{function}({column})" for function in ("min", "max") for column in ORDERED), "max(DISTINCT i)",
            *(f"{spread}({column})" for spread in ("stddev", "stddev_pop", "var_samp", "var_pop") for column in "iem"),
            "stddev_samp(e)", "variance(e)", "std(e)", "var_pop(d)", "var_samp(d)", "stddev(e) FILTER (WHERE c)",
            "bool_and(o)", "bool_or(o)", "every(o)", "any(o)", "some(o) FILTER (WHERE c)", "count_if(o)",
            "count_if(i > 0)",
            *(f"bit_{function}({column})" for function in ("and", "or", "xor") for column in ("ti", "i", "b")),
            *(f"approx_percentile({column}, 0.5)" for column in ("ti", "i", "e", "m", "ts", "y")),
            "percentile_approx(i, array(0.1, 0.9), 1000) FILTER (WHERE c)", "approx_percentile(e, array(0.0, 1.0))",
            "max(m) - min(m)", "round(avg(i), 2)", "round(avg(m), 1)", "sum(i) / nullif(count(*), 0)",
            "sum(m) / nullif(count(m), 0)", "coalesce(sum(ti), 0) + 1", "if(count(*) > 3, 'many', 'few')",
            "concat(min(s), '-', max(s))", "count(*) > 2 AND max(o)", "named_struct('lo', min(i), 'hi', max(i)).hi",
            "CASE WHEN max(i) > 0 THEN max(i) ELSE min(i) END", "sqrt(var_pop(e))", "try_divide(sum(ti), count(o))",
            "sum(i) % 7", "sum(i) div 3", "pmod(sum(i), 5)", "max(ts) > min(ts)", "unix_micros(max(ts))",

        )
    },
    "sum(b)": EXACT_SUM,
    "try_sum(b)": EXACT_SUM,
    "sum(b) FILTER (WHERE c)": EXACT_SUM.replace("0)))", "0))) FILTER (WHERE c)"),
    **{f"first({column})": _at_time("min", column) for column in ("i", "d", "s", "ts", "m", "a")},
    **{f"last({column})": _at_time("max", column) for column in ("i", "s", "y")},
    "last_value(r)": _at_time("max", "r"),
    "any_value(i)": _at_time("min", "i"),
    "first(i) IGNORE NULLS": _at_time("min", "i", "i IS NOT NULL"),
    "last(s, true)": _at_time("max", "s", "s IS NOT NULL"),
    "last(i) FILTER (WHERE c)": _at_time("max", "i", "c"),
    "min_by(s, i)": _at_extreme("min", "s", "i"),
    "max_by(s, i)": _at_extreme("max", "s", "i"),
    "max_by(a, d)": _at_extreme("max", "a", "d"),
    "min_by(i, a)": _at_extreme("min", "i", "a"),
    **{
        f"approx_count_distinct({column})": _distinct(column)
        for column in ("ti", "i", "b", "s", "d", "f", "ts", "z", "y", "o", "m", "x")
    },
    "approx_count_distinct(s, 0.01) FILTER (WHERE c)": _distinct("s", "c"),
    "approx_percentile(z, 0.5)": "CAST(approx_percentile(CAST(z AS TIMESTAMP), 0.5) AS TIMESTAMP_NTZ)",
    "approx_percentile(d, 0.5)": _discrete("d", 0.5),
    "approx_percentile(f, 0.75)": f"CAST({_discrete('f', 0.75)} AS FLOAT)",
    "approx_percentile(d, array(0.0, 0.4, 1.0))": (
        f"IF(count(d) > 0, array({', '.join(_discrete('d', p) for p in (0.0, 0.4, 1.0))}), NULL)"
    ),
}  # fmt: skip


def random_rows(random: Random, groups: int) -> pa.Table:
    """Rows of every type with NULL, the ends of ranges, NaN, infinity; a few panes and times in each group."""
    makers: dict[str, Callable[[], object]] = {
        "TINYINT": lambda: random.choice([-128, 127, 0, 1, 5, -7]),
        "INT": lambda: random.choice([2**31 - 200, -(2**31) + 200, 0, 1, 2, 3, -5, 1000]),
        "BIGINT": lambda: random.choice([2**63 - 1, -(2**63), 0, 1, 2**40, -3, 2**53 + 1, random.randrange(2**63)]),
        "DOUBLE": lambda: random.choice([0.0, 1.5, -2.25, math.nan, math.inf, -math.inf, 1e-300, 1e10, 0.1]),
        "FLOAT": lambda: random.choice([0.5, math.nan, math.inf, 1.25, -3.5, 0.0]),
        "DECIMAL(10, 2)": lambda: _decimal(random, 10, 2),
        "DECIMAL(24, 6)": lambda: _decimal(random, 24, 6),
        "STRING": lambda: random.choice(["", "a", "B", "ab", "é", "zz", "a\x00", "日本"]),
        "BOOLEAN": lambda: random.random() < 0.5,
        "TIMESTAMP": lambda: (EPOCH + _micros(random)).replace(tzinfo=UTC),
        "TIMESTAMP_NTZ": lambda: EPOCH + _micros(random),
        "DATE": lambda: date(1970, 1, 1) + timedelta(days=random.choice([0, -1, 365, 19000])),
        "ARRAY<INT>": lambda: random.choice([[], [1], [None], [1, None], [1, 2], [None, 2]]),
        "STRUCT<p: INT, q: STRING>": lambda: {"p": random.choice([1, None, 2]), "q": random.choice(["a", None, ""])},
        "BINARY": lambda: random.choice([b"", b"\x00", b"\xff\x01", b"a"]),
    }
    special: dict[str, Callable[[], object]] = {
        "pane": lambda: random.randrange(4),
        "t": lambda: random.randrange(5),
        "e": lambda: random.choice([0.1, 0.2, 1.005, -2.5, 1000003.25, 1e6, random.uniform(-10, 10)]),
    }
    rows: dict[str, list[object]] = {column.name: [] for column in COLUMNS}
    for group in range(groups):
        for _ in range(random.choice([1, 1, 2, 3, 5, 8, 13])):
            for column in COLUMNS:
                maker = special.get(column.name)
                value = maker() if maker is not None else _or_null(random, makers[column.type])
                rows[column.name].append(group if column.name == "g" else value)
    fields = [pa.field(column.name, arrow_type(column.type)) for column in COLUMNS]
    return pa.table([pa.array(rows[f.name], f.type) for f in fields], schema=pa.schema(fields))


def _or_null(random: Random, maker: Callable[[], object]) -> object:
    return None if random.random() < 0.2 else maker()


def _decimal(random: Random, precision: int, scale: int) -> Decimal:
    largest = 10**precision - 1
    return Decimal(random.choice([0, 5, -5, largest, -largest, random.randrange(-(10**6), 10**6)])).scaleb(-scale)


def _micros(random: Random) -> timedelta:
    return timedelta(microseconds=random.choice([0, -1, 1, 10**15, random.randrange(10**15)]))
