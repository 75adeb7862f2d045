"""SELECT: its groups, windows, values and clauses, as queries of the plan."""
