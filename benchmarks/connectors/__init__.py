"""Kafka, PostgreSQL and Delta from end to end: what is left after kill -9, and how fast it is beside plain Spark."""
