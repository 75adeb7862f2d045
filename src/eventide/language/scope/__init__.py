"""What names and expressions mean in a statement, and how long it says that state lives."""
