"""How a script says how it is scheduled: `SET timestamps = 'every 1 second'`, `SET heartbeats = 'memory'`.

>>> scheduling_of({"timestamps": "every 1.5 s", "heartbeats": "query"}).words
{'timestamps': 'every 1500000', 'heartbeats': 'query'}
>>> scheduling_of({"timestamps": "sometimes"})
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: SET timestamps = 'sometimes': write 'on demand', 'every 1 second' (or another \
interval), or 'none'
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from eventide.errors import DeclarationError
from eventide.eventtime.scheduling.labels import Level
from eventide.eventtime.scheduling.options import Asking, Scheduling
from eventide.language.lengths import LENGTHS, micros

KEYS = ("heartbeats", "timestamps")

_EVERY = re.compile(r"every\s+(\d+(?:\.\d+)?)?\s*([a-z]+)")


def scheduling_of(said: Mapping[str, str]) -> Scheduling:
    """What these settings say; what is not said has its default."""
    timestamps, heartbeats = said.get("timestamps"), said.get("heartbeats")
    return Scheduling(
        Asking.on_demand() if timestamps is None else _asking(timestamps),
        Level.OPERATOR if heartbeats is None else _level(heartbeats),
    )


def _asking(said: str) -> Asking:
    words = " ".join(said.lower().replace("-", " ").split())
    if words == "on demand":
        return Asking.on_demand()
    if words == "none":
        return Asking.never()
    found = _EVERY.fullmatch(words)
    if found is None or found[2] not in LENGTHS or micros(float(found[1] or 1), found[2]) <= 0:
        raise DeclarationError(
            f"SET timestamps = {said!r}: write 'on demand', 'every 1 second' (or another interval), or 'none'"
        )
    return Asking.every(micros(float(found[1] or 1), found[2]))


def _level(said: str) -> Level:
    try:
        return Level(said.lower().removesuffix("-level").removesuffix("-aware"))
    except ValueError:
        raise DeclarationError(f"SET heartbeats = {said!r}: write 'operator', 'query' or 'memory'") from None
