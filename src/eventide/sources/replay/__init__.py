"""Recordings delivered again by their times, on both engines."""
