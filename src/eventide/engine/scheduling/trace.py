"""The trace of a run: one line for every decision of the scheduler, in the order in which they were made.

Law: a trace changes nothing; it can be left out, and a line is complete when it is written. Decisions of a round that
failed are in it too.

>>> line = TraceLine(3, 17, "union", "backtrack", "B", "union has rows that B holds up")
>>> line.as_json()
'{"round": 3, "clock": 17, "at": "union", "move": "backtrack", "to": "B", "why": "union has rows that B holds up"}'
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class TraceLine:
    """In which round and at which clock, at which stream or query, what was decided, and why."""

    round: int
    clock: int
    at: str
    move: str
    to: str
    why: str

    def as_json(self) -> str:
        """The decision as one line of JSON."""
        return json.dumps(asdict(self))


Trace = Callable[[TraceLine], None]
