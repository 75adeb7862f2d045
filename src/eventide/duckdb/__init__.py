"""Spark's SQL in DuckDB: the executor of statements over Arrow tables, and the functions it lacks."""
