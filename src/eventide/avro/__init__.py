"""Avro as messages have it: its schemas and Arrow's, and the registry that keeps schemas by number."""
