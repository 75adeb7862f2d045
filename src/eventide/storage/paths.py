"""Paths as they are told to people."""

from __future__ import annotations

import os


def with_place(path: str) -> str:
    """A path as it was written, and where that is: relative ones are so to where the command was started.

    >>> with_place("/data/in")
    '/data/in'
    >>> with_place("in") == f"in ({os.getcwd()}/in)"
    True
    """
    return path if os.path.isabs(path) or "://" in path else f"{path} ({os.path.abspath(path)})"
