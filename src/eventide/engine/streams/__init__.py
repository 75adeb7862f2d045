"""Streams while they run: their sources, their heartbeats, what they lost."""
