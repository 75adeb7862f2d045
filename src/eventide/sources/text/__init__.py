"""Lines of CSV, JSON and text as rows: many at once, and one by one with the same rules as Spark."""
