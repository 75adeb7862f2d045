"""Aggregates split into partials that slices keep, and their values over merged partials."""
