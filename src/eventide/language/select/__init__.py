"""What a SELECT makes of it: rows, aggregates, groups, windows."""
