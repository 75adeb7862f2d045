"""Skew between sources, declared or estimated (Srivastava and Widom), and heartbeats from it."""
