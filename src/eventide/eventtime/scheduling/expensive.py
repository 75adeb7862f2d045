"""What is decided and measured before an expensive function: which rows go next, what is a burst, and selectivity.

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

*Bursts.* Which rows that wait are a burst, and which are merely behind one? A pane is a burst if more rows have come
for it than the function can take in the length of the pane: it delays what comes after, whenever it was begun. Panes
with fewer rows are "processed in a timely manner" (section 4.3.2; figure 4.4 counts the rows of each slide). If rows of
theirs wait, they are behind others, and are never set aside. Of what waits only the earliest panes may go aside, up to
the first that is no burst.

Law: *never later*. Let no row come behind the queue's frontier. A window without a pane that was set aside gets its
last row in the same round as if nothing were set aside, or in an earlier one. For as many rows go in each round either
way, and what was set aside is earlier than all that waits: if it goes first, it would have gone first anyway.

The rate is that of the last rounds that left rows waiting, over the clock until the next one: the median of five, so
that a pause does not count for much. Before there is one, nothing is a burst.

>>> known = Bursts().after_busy_round(rows=40, elapsed=200_000).having({0: 90, 1_000_000: 700, 2_000_000: 90})
>>> known.last_instant(first=500_000, up_to=2_999_999, length=1_000_000)
>>> known.last_instant(first=1_500_000, up_to=2_999_999, length=1_000_000)
1999999

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

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from statistics import median_high
from typing import Any, Self


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


BUSY_ROUNDS = 5
"""Of how many busy rounds the rate of the function is the median."""


@dataclass(frozen=True)
class Bursts:
    """How many rows have come by the start of their pane, and how many went in the clock of the last busy rounds."""

    rows: Mapping[int, int] = field(default_factory=dict)
    busy: tuple[tuple[int, int], ...] = ()

    def having(self, counts: Mapping[int, int]) -> Self:
        """With rows that have come, by the start of their pane."""
        return replace(self, rows=dict(Counter(self.rows) + Counter(counts)))

    def after_busy_round(self, rows: int, elapsed: int) -> Self:
        """With a round that left rows waiting: so many had gone when the next began, so long after it."""
        return replace(self, busy=(*self.busy, (rows, elapsed))[-BUSY_ROUNDS:]) if elapsed > 0 else self

    def since(self, time: int, length: int) -> Self:
        """Without the panes that end at or before an instant."""
        return replace(self, rows={start: n for start, n in self.rows.items() if start + length > time})

    def last_instant(self, first: int, up_to: int, length: int) -> int | None:
        """The last instant of the bursts, one after the other, that the queue has come to with the row at `first`.

        None where the first pane that waits is none, or ends after `up_to`.
        """
        if not self.busy:
            return None
        rate = median_high(rows / elapsed for rows, elapsed in self.busy)
        last = None
        for start in sorted(start for start in self.rows if start + length > first):
            end = start + length
            if end - 1 > up_to or self.rows[start] <= rate * length:
                break
            last = end - 1
        return last

    def saved(self) -> dict[str, Any]:
        """Plain data for the round record."""
        return {"rows": [[start, n] for start, n in self.rows.items()], "busy": [list(one) for one in self.busy]}

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> Bursts:
        """What was known, from plain data."""
        return cls(dict(saved["rows"]), tuple((rows, elapsed) for rows, elapsed in saved["busy"]))


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
