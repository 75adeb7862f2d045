"""The local engine: the same rounds on one machine, with DuckDB in the process."""
