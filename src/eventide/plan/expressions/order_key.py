"""Order of values, the same in Spark and DuckDB: NaN is above all numbers, NULL inside of a value below all."""

from __future__ import annotations

from sqlglot import exp

from eventide.plan.expressions.aggregate_call import FRACTIONS, SMALL, decimal_of
from eventide.plan.expressions.parse import SPARK

PLAIN = (*SMALL, "BIGINT", *FRACTIONS, "STRING", "BOOLEAN", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BINARY")
"""Types whose order is the same in Spark and DuckDB."""


def order_key(sql: str, kind: str, depth: int = 0) -> tuple[str, str] | None:
    """What orders values of a type alike in both engines, and its type; None where Spark has no order.

    >>> order_key("x", "ARRAY<INT>")
    ("transform(x, e0 -> named_struct('h', nullif(e0 IS NOT NULL, CAST(NULL AS BOOLEAN)), \
'k', nullif(e0, CAST(NULL AS INT))))", 'ARRAY<STRUCT<h: BOOLEAN, k: INT>>')
    """
    if kind in PLAIN or decimal_of(kind) is not None:
        return sql, kind
    if kind == "VOID":
        return None
    read = exp.DataType.build(kind, dialect=SPARK)
    if read.is_type("array"):
        name = f"e{depth}"
        inner = order_key(name, read.expressions[0].sql(SPARK), depth + 1)
        if inner is None:
            return None
        there = f"named_struct('h', {nullable(f'{name} IS NOT NULL', 'BOOLEAN')}, 'k', {nullable(*inner)})"
        return f"transform({sql}, {name} -> {there})", f"ARRAY<STRUCT<h: BOOLEAN, k: {inner[1]}>>"
    if read.is_type("struct"):
        fields = [(f"{sql}.{f.this.sql(SPARK)}", f.args["kind"].sql(SPARK)) for f in read.expressions]
        keys = [(field, order_key(field, kind_, depth)) for field, kind_ in fields]
        if any(key is None for _, key in keys):
            return None
        parts, types = [], []
        for i, (field, key) in enumerate(keys):
            assert key is not None
            parts.append(f"'h{i}', {nullable(f'{field} IS NOT NULL', 'BOOLEAN')}, 'k{i}', {nullable(*key)}")
            types.append(f"h{i}: BOOLEAN, k{i}: {key[1]}")
        return f"named_struct({', '.join(parts)})", f"STRUCT<{', '.join(types)}>"
    return None


def nullable(sql: str, kind: str) -> str:
    """The same value, of a type that may be NULL: a struct that is NULL cannot go to Arrow if its fields may not be."""
    return f"nullif({sql}, CAST(NULL AS {kind}))"
