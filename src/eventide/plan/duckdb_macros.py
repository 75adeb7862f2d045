"""Spark's functions as DuckDB macros: text only, run by `engine.duckdb_functions.register`.

Law: a macro has the name of Spark's function behind `spark_`, and its answer, errors included. DuckDB picks the
variant of a macro by the types of its arguments, so a text can be said without knowing them.
"""

from __future__ import annotations

MACROS: tuple[str, ...] = (
    "CREATE OR REPLACE MACRO spark_pmod(a, b) AS ((a % b) + b) % b",
    "CREATE OR REPLACE MACRO spark_div(a, b) AS CAST(a // b AS BIGINT)",
)
