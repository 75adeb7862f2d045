"""Spark's SQL transpiled to DuckDB's, with the same answers."""
