"""Declared queries and operators bound to their inputs: every name checked, every type known."""
