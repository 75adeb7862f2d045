"""Iceberg tables as streams: `snapshots` plans what a table brings, `local` reads it here, `spark` in Spark's tasks."""

# First of all: it says what to install where pyiceberg is missing.
import eventide.storage.iceberg  # noqa: F401
