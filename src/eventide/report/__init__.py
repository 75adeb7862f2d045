"""What is said to people, in Python and on the command line: why, status, losses, plans."""
