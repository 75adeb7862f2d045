"""Policies around a policy: timeouts, idleness, caps, expected sources, groups."""
