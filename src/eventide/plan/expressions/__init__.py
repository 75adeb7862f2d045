"""Expressions in Spark SQL: columns and types, parsing, calls of aggregates."""
