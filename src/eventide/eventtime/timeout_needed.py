"""Whether rows can be stalled for ever when all sources pause, and by which bounds (theorem 3.3, Srivastava and Widom).

A row of source i is released when every source j has been promised up to its time. In silence only time bounds still
fall due, so the promise to j ends at T - (the least lag of any time bound of the pair). Without a timeout nothing
stalls exactly when that least lag is 0 for every pair. Row bounds do not help: the rows that they wait for do not
come.

>>> from eventide.eventtime.skew_bounds import TimeBound
>>> from eventide.eventtime.skew_matrix import SkewMatrix
>>> need = timeout_needed(SkewMatrix.of([[[TimeBound(0, 0)], [TimeBound(0, 5)]], [[], [TimeBound(0, 0)]]], [0, 0]))
>>> print(need)
a timeout is needed: when all sources pause, some rows would wait for ever
  rows of source 0: source 1 may trail by 5 for ever; add TimeBound(after, 0) if it catches up after a while
  rows of source 1: nothing bounds source 0 in clock time
"""

from __future__ import annotations

from dataclasses import dataclass

from eventide.eventtime.skew_bounds import TimeBound
from eventide.eventtime.skew_matrix import Skew

SHOWN = 20


@dataclass(frozen=True)
class Stall:
    """Rows of `sender` may wait for ever for `target`, which trails by `lag` at rest (None: by anything)."""

    sender: int
    target: int
    lag: int | None

    def __str__(self) -> str:
        """Say it, and what would help."""
        if self.lag is None:
            return f"rows of source {self.sender}: nothing bounds source {self.target} in clock time"
        return (
            f"rows of source {self.sender}: source {self.target} may trail by {self.lag} for ever; "
            "add TimeBound(after, 0) if it catches up after a while"
        )


@dataclass(frozen=True)
class TimeoutNeed:
    """The pairs whose bounds make a timeout necessary; true when there are any."""

    stalls: tuple[Stall, ...]

    def __bool__(self) -> bool:
        """Whether a timeout is needed."""
        return bool(self.stalls)

    def __str__(self) -> str:
        """Name the pairs, the first twenty of many."""
        if not self.stalls:
            return "no timeout is needed: when all sources pause, every row is released in the end"
        lines = ["a timeout is needed: when all sources pause, some rows would wait for ever"]
        lines += [f"  {stall}" for stall in self.stalls[:SHOWN]]
        if len(self.stalls) > SHOWN:
            lines.append(f"  and {len(self.stalls) - SHOWN} more pairs")
        return "\n".join(lines)


def timeout_needed(skew: Skew) -> TimeoutNeed:
    """Check every ordered pair, a source with itself included."""
    stalls = []
    sources = range(len(skew.latency))
    for i in sources:
        for j in sources:
            lag = min((b.lag for b in skew.bounds(i, j) if isinstance(b, TimeBound)), default=None)
            if lag != 0:
                stalls.append(Stall(i, j, lag))
    return TimeoutNeed(tuple(stalls))
