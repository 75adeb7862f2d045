"""The Spark engine: micro-batches as rounds, statements as jobs, and the session that runs them."""
