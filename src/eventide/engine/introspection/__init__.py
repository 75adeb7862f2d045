"""What an engine says of itself: status, and why windows are open."""
