"""The known name that was probably meant.

>>> nearest("trafic", ["traffic", "cars"]), nearest("x", ["traffic"])
('traffic', None)
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
