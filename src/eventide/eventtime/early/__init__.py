"""Prods: demands for early answers, when they are due, and how early they may be."""
