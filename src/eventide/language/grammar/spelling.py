"""Names, numbers and lengths as people spell them.

The known name that was probably meant.

>>> nearest("trafic", ["traffic", "cars"]), nearest("x", ["traffic"])
('traffic', None)

Numbers and lengths as people write them: `60s`, `10 min`, `5 minutes`, `100 ROWS`, `5%`.

Law: a length of time is a whole number of microseconds; a plain number is in the stream's own units, the numbers of a
sequence or seconds.

>>> micros(1.5, "min"), UNITS["hours"]
(90000000, 3600000000)
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def nearest(given: str, known: Iterable[str]) -> str | None:
    """The nearest of the known names, whatever its capital letters; None when none is near."""
    spelled = {name.lower(): name for name in known}
    close = get_close_matches(given.lower(), spelled, n=1)
    return spelled[close[0]] if close else None


def meant(given: str, known: Iterable[str]) -> str | None:
    """A suggestion for a name that nobody knows: the nearest one, or those there are.

    >>> meant("trafic", ["traffic", "cars"]), meant("x", ["traffic", "cars"]), meant("x", [])
    ("did you mean 'traffic'?", 'there are: traffic, cars', None)
    """
    names = list(known)
    close = nearest(given, names)
    if close is not None:
        return f"did you mean {close!r}?"
    return f"there are: {', '.join(names[:20])}" if names else None


_BASE = {
    "microsecond": (1, "us", "micros", "usec"),
    "millisecond": (1_000, "ms", "millis", "msec"),
    "second": (1_000_000, "s", "sec", "secs"),
    "minute": (60_000_000, "m", "min", "mins"),
    "hour": (3_600_000_000, "h", "hr", "hrs"),
    "day": (86_400_000_000, "d"),
    "week": (7 * 86_400_000_000, "w"),
}
LENGTHS: dict[str, int] = {
    word: int(length) for name, (length, *short) in _BASE.items() for word in (name, f"{name}s", *map(str, short))
}
"""How many microseconds each unit of time has."""

COUNTS = ("row", "rows", "tuple", "tuples")
QUOTAS = (*COUNTS, "file", "files", "offset", "offsets")
"""What a round may be limited by. OFFSET is a clause of a window, so it is no unit elsewhere."""

UNITS: dict[str, int] = {**LENGTHS, **dict.fromkeys(COUNTS, 0)}
"""Every word that may stand behind a number in any clause."""


def micros(number: float, unit: str) -> int:
    """A length of time in microseconds."""
    return round(number * LENGTHS[unit])
