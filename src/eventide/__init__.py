"""Eventide: a data stream management system whose subject is time."""
