"""How a table of a database is asked for changes: the options of such a stream.

>>> captured_by((("url", "postgresql://db/shop"), ("version", "changed"), ("poll", "500 ms")))
Captured(version='changed', deleted=None, every=0.5, settle=0.0)
>>> captured_by((("version", "changed"), ("poll", "soon")))
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: poll 'soon' is no length of time: write '5 seconds', '250 ms' or '2 minutes'
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eventide.errors import DeclarationError

OF_DATABASE = ("url", "user", "password")
OF_CHANGES = ("version", "deleted", "poll", "settle")
POLL = "5 seconds"
LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|seconds?|min|minutes?|h|hours?)", re.IGNORECASE)
SECONDS = {"ms": 0.001, "mil": 0.001, "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "hou": 3600.0}
LEAST = 0.01
"""Seconds between two questions."""


@dataclass(frozen=True)
class Captured:
    """The column that grows with every change, the one that flags deleted rows, and how often it is asked.

    `settle`: rows count when their version is so many seconds old.
    """

    version: str
    deleted: str | None = None
    every: float = 5.0
    settle: float = 0.0


def captured_by(options: Sequence[tuple[str, str]]) -> Captured:
    """What the options of a stream say."""
    given = {name.lower(): value for name, value in options}
    if unknown := given.keys() - {*OF_DATABASE, *OF_CHANGES}:
        known = ", ".join(sorted((*OF_DATABASE, *OF_CHANGES)))
        raise DeclarationError(f"a table that is asked for changes has no option {min(unknown)!r}: there are {known}")
    if "version" not in given:
        raise DeclarationError("which column grows with every change? Add OPTIONS (version 'updated_at')")
    every, settle = _seconds("poll", given.get("poll", POLL)), _seconds("settle", given.get("settle", "0 s"))
    return Captured(given["version"], given.get("deleted"), max(every, LEAST), settle)


def _seconds(name: str, text: str) -> float:
    found = LENGTH.fullmatch(text.strip())
    if found is None:
        raise DeclarationError(f"{name} {text!r} is no length of time: write '5 seconds', '250 ms' or '2 minutes'")
    return float(found[1]) * SECONDS[found[2].lower()[:3]]
