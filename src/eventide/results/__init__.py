"""What a query answers: early, final and revised results."""
