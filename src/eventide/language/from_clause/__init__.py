"""FROM: streams, results of queries, sub-queries and joins of them."""
