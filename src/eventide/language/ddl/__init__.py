"""CREATE STREAM and its like: what streams, tables, functions, bounds and alerts are."""
