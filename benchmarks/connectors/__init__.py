"""Kafka, PostgreSQL, Delta and Iceberg from end to end: what is left after kill -9, and how fast beside plain Spark."""
