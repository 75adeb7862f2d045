"""Heartbeat policies: what is tolerated of late rows, one policy a file or folder."""
