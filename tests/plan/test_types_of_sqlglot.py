"""Why `spark_types` is our own: where sqlglot's type annotation and Spark part.

The types in the middle are Spark's; `tests/engine/test_dialect_on_spark.py` compares ours with a running one. When a
newer sqlglot gives Spark's type, its line here fails, and our code for it can go.
"""

from __future__ import annotations

import pytest
import sqlglot
from sqlglot.optimizer.annotate_types import annotate_types
from sqlglot.optimizer.qualify import qualify

from eventide.plan.expressions.parse import parsed
from eventide.plan.expressions.spark_types import SparkTypes

COLUMNS = {"a": "DECIMAL(10, 2)", "b": "DECIMAL(5, 3)", "n": "INT", "s": "STRING"}


@pytest.mark.parametrize(
    ("sql", "ours", "theirs"),
    [
        ("a * b", "DECIMAL(16, 5)", "DECIMAL(10, 2)"),
        ("a + n", "DECIMAL(13, 2)", "DECIMAL(10, 2)"),
        ("a / b", "DECIMAL(19, 8)", "DECIMAL"),
        ("sum(a)", "DECIMAL(20, 2)", "DECIMAL(10, 2)"),
        ("avg(a)", "DECIMAL(14, 6)", "DOUBLE"),
        ("s + 1", "BIGINT", "INT"),
    ],
)
def test_sqlglot_has_another_type(sql: str, ours: str, theirs: str) -> None:
    assert SparkTypes(COLUMNS).of(parsed(sql, "q")) == ours
    schema: dict[str, object] = {"t": COLUMNS}
    query = qualify(sqlglot.parse_one(f"SELECT {sql} AS x FROM t", read="spark"), schema=schema, dialect="spark")
    (column,) = annotate_types(query, schema=schema, dialect="spark").find_all(sqlglot.exp.Alias)
    assert column.type is not None
    assert column.type.sql() == theirs
