"""What users declare: streams, windows, queries, joins, queues, and the program of them all."""
