"""What is decided and measured before an expensive function: which rows go next, and how selective operators are.

*Next rows.* New rows, or rows that were set aside in a burst? *Nothing idles*: as many go as there is room for, while
any wait. *New rows first*: set-aside rows go in lulls, when no new row wants the room, with two exceptions. *One in k*:
for every k new rows that went, one set-aside row may go, also when it is busy; what a round had no room for is
remembered. *Overdue*: set-aside rows whose deadline has passed go before all others. So with either of them every row
goes in the end, however busy it stays. (Prodding thesis, section 6.2 (a): deprioritized burst processing.)

>>> QueueShare.of(room=10, new=30, aside=5)
QueueShare(new=10, aside=0, credit=0)
>>> QueueShare.of(room=10, new=30, aside=5, one_in=4)
QueueShare(new=8, aside=2, credit=0)
>>> QueueShare.of(room=10, new=3, aside=5, one_in=4).aside
5
>>> QueueShare.of(room=10, new=30, aside=5, overdue=5)
QueueShare(new=5, aside=5, credit=0)

*Selectivity.* How many rows an operator makes of one, measured while it runs. The selectivity is rows out per row in,
over all rounds, where a round counts half as much once `forget` rows more have gone in; so a steady ratio is found
exactly, and a change is followed within a few times `forget` rows. Before any row has gone in it is 1. Memory-aware
heartbeats (`labels`) are labelled with it (STREAM paper, section 7.4: "gather such selectivity information at
runtime").

>>> measured = Selectivity()
>>> measured.count(rows_in=10, rows_out=30)
>>> measured.ratio
3.0
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class QueueShare:
    """How many rows of each kind go; `credit` is how many new ones have gone since a set-aside one did."""

    new: int
    aside: int
    credit: int = 0

    @classmethod
    def of(
        cls, room: int, new: int, aside: int, overdue: int = 0, one_in: int | None = None, credit: int = 0
    ) -> QueueShare:
        """Share out the `room` among `new` rows that wait and those set `aside`, of which some are `overdue`."""
        first = min(overdue, aside, room)
        room, rest = room - first, aside - first
        between = 0
        if one_in is not None:
            # Of the room that both share, one part in one_in + 1; and what was not given before.
            busy = min(room, new + rest)
            between = min(rest, (credit + busy) // (one_in + 1), busy)
        fresh = min(new, room - between)
        lull = min(rest - between, room - between - fresh)
        left = 0 if one_in is None or rest - between - lull == 0 else max(0, credit + fresh - between * one_in)
        return cls(fresh, first + between + lull, left)


FORGET = 10_000
"""Rows after which what was known counts half."""


@dataclass
class Selectivity:
    """Sums of rows that went in and came out, the older the lighter.

    >>> measured = Selectivity(forget=100)
    >>> measured.count(100, 200)
    >>> measured.count(100, 0)
    >>> round(measured.ratio, 3)
    0.667
    """

    forget: int = FORGET
    rows_in: float = 0.0
    rows_out: float = 0.0

    def count(self, rows_in: int, rows_out: int) -> None:
        """Take a round into account."""
        kept = 0.5 ** (rows_in / self.forget)
        self.rows_in = self.rows_in * kept + rows_in
        self.rows_out = self.rows_out * kept + rows_out

    @property
    def ratio(self) -> float:
        """How many rows come out for one that goes in."""
        return self.rows_out / self.rows_in if self.rows_in else 1.0


class SelectivityTracker:
    """The selectivity of every operator of a program; `saved` is what a round record says of them."""

    def __init__(self, saved: Mapping[str, Mapping[str, Any]]) -> None:
        self._of: dict[str, Selectivity] = {}
        self._waiting: dict[str, deque[tuple[int, int]]] = {}
        for name, known in saved.items():
            if "selectivity" in known:
                rows_in, rows_out = known["selectivity"]
                self._of[name] = Selectivity(rows_in=rows_in, rows_out=rows_out)

    def count(self, name: str, rows_in: int, rows_out: int, seen: int, reached: int) -> None:
        """Take a round of an operator into account: its inputs had come to `seen`, it went on to `reached`."""
        waiting = self._waiting.setdefault(name, deque())
        if rows_in:
            waiting.append((seen, rows_in))
        passed = 0
        while waiting and waiting[0][0] <= reached:
            passed += waiting.popleft()[1]
        self._of.setdefault(name, Selectivity()).count(passed, rows_out)

    def ratios(self) -> dict[str, float]:
        """Rows out per row in, by operator."""
        return {name: measured.ratio for name, measured in self._of.items()}

    def saved(self, name: str) -> dict[str, Any]:
        """Plain data for the round record."""
        measured = self._of.get(name)
        return {} if measured is None else {"selectivity": [measured.rows_in, measured.rows_out]}
