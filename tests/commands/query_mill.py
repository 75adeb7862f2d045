"""Queries that are made up: functions, types and operators mixed, most of them wrong, each with a seed.

Law: the same seed gives the same script. About half of the calls have the arguments that their functions take.
"""

from __future__ import annotations

import random
from typing import Any, TypeVar

from sqlglot.parsers.spark import SparkParser

from eventide.plan.duckdb.functions import NAMED
from eventide.plan.expressions.parse import OTHER_AGGREGATES

One = TypeVar("One")

COLUMNS = {
    "ts": "TIMESTAMP", "k": "STRING", "v": "INT", "b": "BIGINT", "d": "DOUBLE", "f": "FLOAT", "n": "DECIMAL(10, 2)",
    "w": "DECIMAL(38, 0)", "o": "BOOLEAN", "day": "DATE", "raw": "BINARY", "xs": "ARRAY<INT>", "ys": "ARRAY<STRING>",
    "s": "STRUCT<a: INT, b: STRING>", "m": "MAP<STRING, INT>", "tn": "TIMESTAMP_NTZ", "ti": "TINYINT",
}  # fmt: skip
STREAM = (
    f"CREATE STREAM S ({', '.join(f'{name} {kind}' for name, kind in COLUMNS.items())})\n"
    "FROM json 'in' TIMESTAMP BY ts SOURCE BY k DELAY 1 s TIMEOUT 1 min;\n"
)
ROWS: list[dict[str, Any]] = [
    {
        "ts": f"2024-01-01T00:00:{i:02d}Z", "k": "ab"[i % 2] if i % 7 else None, "v": i - 5, "b": i * 10**12,
        "d": i / 3, "f": i / 2, "n": i / 4, "w": i, "o": i % 2 == 0, "day": "2024-01-01", "raw": "YQ==", "xs": [i, 2],
        "ys": ["a", None], "s": {"a": i, "b": "q"}, "m": {"a": i}, "tn": "2024-01-01T00:00:00", "ti": i % 100,
    }
    for i in range(30)
]  # fmt: skip
AGGREGATES = sorted(
    {*OTHER_AGGREGATES, "sum", "avg", "min", "max", "count", "stddev", "variance", "approx_count_distinct", "var_pop"}
)
ONE_VALUE = [
    "sum", "avg", "min", "max", "count", "stddev", "variance", "approx_count_distinct", "first", "last",
    "median", "mode", "collect_list", "bool_or", "any_value", "count_if", "std", "var_pop", "try_sum",
]  # fmt: skip
"""Aggregates that take one value."""

FUNCTIONS = sorted({name.lower() for name in SparkParser.FUNCTIONS} | set(NAMED))
USUAL = {
    1: [
        "abs", "sign", "floor", "ceil", "sqrt", "exp", "ln", "upper", "lower", "trim", "length", "year", "hour",
        "dayofweek", "unix_micros", "to_date", "size", "map_keys", "negative", "positive", "isnan", "isnull",
        "md5", "hex", "reverse", "bit_count", "array", "struct",
    ],
    2: [
        "round", "log", "pow", "concat", "left", "right", "nullif", "coalesce", "greatest", "least",
        "date_trunc", "date_add", "datediff", "date_format", "array_contains", "sort_array", "transform",
        "filter", "element_at", "get", "mod", "pmod", "sha2", "repeat", "shiftleft", "map", "try_add",
        "try_divide", "regexp_like", "split", "named_struct",
    ],
    3: [
        "substring", "replace", "regexp_replace", "regexp_extract", "if", "nvl2", "translate", "lpad", "rpad",
    ],
}  # fmt: skip
TYPES = [
    *COLUMNS.values(), "DECIMAL(38, 10)", "DECIMAL(38, 38)", "VARCHAR(3)", "CHAR(2)", "INTERVAL DAY", "VOID", "VARIANT",
    "STRUCT<>", "ARRAY<ARRAY<INT>>", "DECIMAL(50, 2)", "DECIMAL(38, x 10)", "DECIMAL(3,5)", "TIME",
]  # fmt: skip
ATOMS = [
    *COLUMNS, *COLUMNS, "s.a", "s.b", "m['a']", "xs[0]", "1", "0", "-1", "2.5", "1e400", "1e-400", "'a'", "''", "'1'",
    "'2024-01-01'", "NULL", "TRUE", "FALSE", "INTERVAL 1 DAY", "INTERVAL '1' MONTH", "DATE '2024-01-01'",
    "TIMESTAMP '2024-01-01'", "X'1F'", "9223372036854775807", "9" * 20, "9" * 40, "9" * 5000, "0.1e5", "1L", "1S",
    "1.5BD", "3D", r"'\\'", "'('", "'%'", "x -> x + 1", "(a, b) -> a", "*", "S.v", "S.*", "array()", "map()",
    "named_struct('a', 1)", "current_timestamp()", "(SELECT 1)", "ts", "k", "v", "v", "d", "o",
]  # fmt: skip
OPERATORS = [
    "+", "-", "*", "/", "%", "||", "=", "<", "<=>", "<>", "AND", "OR", "&", "|", "^", "div", "LIKE", "RLIKE",
    ">>", "<<", "IS DISTINCT FROM", "IN ({0}, {1})", "BETWEEN {0} AND {1}", ":: {2}",
]  # fmt: skip
WINDOWS = [
    *["[RANGE 10 s]"] * 6, "[RANGE 10 s SLIDE 5 s]", "[RANGE 10 ROWS]", "[RANGE 10 ROWS SLIDE 3 ROWS]",
    "[RANGE 1 min OFFSET 1 s]", "[RANGE 10 s EMPTY WINDOWS]",
]  # fmt: skip


class QueryMill:
    """Makes up one script after the other."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)

    def script(self) -> str:
        """The stream, and a query over it."""
        pick = self._chance.random()
        if pick < 0.75:
            return STREAM + self._aggregate_query()
        if pick < 0.88:
            return STREAM + f"SELECT ts, {self._value(3)} AS x0, {self._value(2)} AS x1 FROM S{self._where()}"
        kind = self._one(["", "LEFT ", "FULL "])
        condition = self._one(["a.k = z.k", "a.v > z.v", self._value(2)])
        value = self._value(2).replace("S.", "a.")
        return STREAM + f"SELECT {value} AS x0, a.ts FROM S a {kind}JOIN S z ON a.ts = z.ts AND {condition}"

    def _aggregate_query(self) -> str:
        values = [self._value(3, True) if self._maybe(0.3) else self._aggregate(3) for _ in range(self._one([1, 1, 2]))]
        select = ", ".join(f"{value} AS x{place}" for place, value in enumerate(values))
        key = f"{self._value(2)} AS g, " if self._maybe(0.35) else ""
        having = f" HAVING {self._value(2, True)}" if self._maybe(0.1) else ""
        order = self._one([*[""] * 8, " ORDER BY x0", " ORDER BY x0 DESC LIMIT 2"])
        group = " GROUP BY g" if key else ""
        behind = self._one([*[""] * 18, " CLOSE BY SOURCE", " PROD AT 50 %"])
        return f"SELECT {key}{select} FROM S {self._one(WINDOWS)}{self._where()}{group}{having}{order}{behind}"

    def _aggregate(self, depth: int) -> str:
        name, count = self._one(AGGREGATES), self._one([0, 1, 1, 1, 1, 1, 2, 2, 3])
        given = ", ".join(self._value(depth - 2) for _ in range(count))
        if self._maybe(0.5):
            name, given = (
                self._one(ONE_VALUE),
                self._one([*COLUMNS, "v + 1", "abs(d)", "n / 2", "xs[0]", self._value(1)]),
            )
        once = "DISTINCT " if self._maybe(0.25) else ""
        call = f"{name}({'*' if name == 'count' and self._maybe(0.4) else once + given})"
        if name in ("percentile_cont", "percentile_disc", "listagg", "mode") and self._maybe(0.6):
            call += f" WITHIN GROUP (ORDER BY {self._value(1)}{self._one([' DESC', ''])})"
        call += f" FILTER (WHERE {self._value(depth - 2)})" if self._maybe(0.25) else ""
        return call + self._one([*[""] * 18, " IGNORE NULLS", " OVER (PARTITION BY k)"])

    def _value(self, depth: int, aggregated: bool = False) -> str:
        pick = self._chance.random()
        if depth <= 0 or pick < 0.2:
            return self._one(ATOMS)

        def inner() -> str:
            return self._value(depth - 1, aggregated and self._maybe(0.3))

        if pick < 0.35:
            count = self._one([1, 2, 3])
            return f"{self._one(USUAL[count])}({', '.join(inner() for _ in range(count))})"
        if pick < 0.45:
            return f"{self._one(FUNCTIONS)}({', '.join(inner() for _ in range(self._one([0, 1, 2, 3])))})"
        if pick < 0.62:
            operator = self._one(OPERATORS)
            if "{" in operator:
                return f"{inner()} {operator.format(inner(), inner(), self._one(TYPES))}"
            return f"{inner()} {operator} {inner()}"
        if pick < 0.67:
            return f"CASE WHEN {inner()} THEN {inner()}{f' ELSE {inner()}' if self._maybe(0.5) else ''} END"
        if pick < 0.74:
            return f"{self._one(['CAST', 'TRY_CAST'])}({inner()} AS {self._one(TYPES)})"
        if pick < 0.8:
            return self._one(["-", "+", "NOT ", "~", "--", "!", "("]) + inner() + self._one(["", "", " IS NULL", ")"])
        return self._aggregate(depth) if aggregated else self._one(ATOMS)

    def _where(self) -> str:
        return f" WHERE {self._value(2)}" if self._maybe(0.2) else ""

    def _maybe(self, share: float) -> bool:
        return self._chance.random() < share

    def _one(self, among: list[One]) -> One:
        return self._chance.choice(among)
