"""What a SELECT reads: streams, windows, joins and sub-queries."""
