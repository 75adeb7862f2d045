"""Streams and queries in Python, in PySpark's own style. The public names are in `eventide` itself.

A builder never changes: every method gives a new one. What is built is plan nodes, the same that SQL becomes; nothing
runs before `start`.
"""
