"""One SQL text, two engines: Spark's dialect said in DuckDB's, with the same answers.

>>> to_duckdb("SELECT sum(v) div 2, unix_micros(ts), IF(a <=> b, 1, 0) FROM s")
'SELECT SUM(v) // 2, EPOCH_US(ts), CASE WHEN a IS NOT DISTINCT FROM b THEN 1 ELSE 0 END FROM s'
"""

from __future__ import annotations

from functools import lru_cache

import sqlglot
from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.plan.expressions import SPARK


@lru_cache(maxsize=4096)
def to_duckdb(spark_sql: str) -> str:
    """A statement or an expression in Spark's dialect, in DuckDB's."""
    try:
        tree = sqlglot.parse_one(spark_sql, read=SPARK)
    except sqlglot.errors.SqlglotError as error:
        raise DeclarationError(f"cannot read this SQL: {error}\n    {spark_sql}") from error
    for node in list(tree.walk()):
        if isinstance(node, exp.TryCast) and not node.args.get("safe"):
            tree = _replaced(tree, node, exp.Cast(this=node.this, to=node.args["to"]))
        elif isinstance(node, exp.Div):
            node.set("safe", False)
    return tree.sql(dialect="duckdb")


def _replaced(tree: exp.Expression, node: exp.Expression, by: exp.Expression) -> exp.Expression:
    """The tree with one node in another's place."""
    if node is tree:
        return by
    node.replace(by)
    return tree
