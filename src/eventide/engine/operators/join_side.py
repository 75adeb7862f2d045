"""What the frontier of an input says of one side of a join: which rows can still come, and which are done with.

Laws. *Floor*: later rows of a side have no band value below its floor, by the frontier of its input. *Done*: a left
row is done with when by some band its partners would lie below the floor of the right side, a right row when those
left rows would that could have it for a partner. So a row whose band values are all at or above its own side's floor
still finds every partner it has, even if it is behind its side's heartbeat: it is not late.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil

from eventide.engine.operators.frontier import OperatorFrontier
from eventide.eventtime.instant import EDGE, FOREVER, NEVER, shift
from eventide.plan.bound.join import BoundJoin, SideTimeOutput
from eventide.plan.bound.join_inputs import LEFT, STAMP
from eventide.plan.declared.stream import Derived
from eventide.plan.declared.time_columns import time_columns

Floors = tuple[int, ...]
"""The least later value of each band."""


@dataclass(frozen=True)
class JoinSide:
    """One side of a join, as far as time is concerned."""

    bound: BoundJoin
    side: int

    def least(self, frontier: OperatorFrontier, column: str) -> int | Fraction | None:
        """The least later value of a column with time; None where nothing is known, FOREVER where none comes."""
        if frontier.time >= EDGE:
            return FOREVER
        stream = self.bound.ports[self.side].stream
        known = [frontier.least[column]] if column in frontier.least else []
        below = None if column == STAMP else time_columns(stream)[column]
        if frontier.time > -EDGE and (column == STAMP or below is not None):
            later = frontier.time + 1
            known.append(later if below is None else below(later))
        return max(known, default=None)

    def floors(self, frontier: OperatorFrontier) -> Floors:
        """The least later values of the bands."""
        found = []
        for band in self.bound.bands:
            value = band.values[self.side]
            least = self.least(frontier, value.column)
            known = least is not None and least != FOREVER
            found.append(value.of(least) if known and least is not None else NEVER if least is None else FOREVER)
        return tuple(max(NEVER, min(FOREVER, floor)) for floor in found)

    def done(self, others: Floors) -> Floors:
        """Rows with a value below these are done with, where the other side has these floors."""
        pairs = zip(self.bound.bands, others, strict=True)
        return tuple(shift(other, -band.high if self.side == LEFT else band.low) for band, other in pairs)

    def partners(self, low: int, high: int) -> tuple[int, int]:
        """Where the first band has the partners of rows from `low` to `high`."""
        band = self.bound.bands[0]
        if self.side == LEFT:
            return shift(low, band.low), shift(high, band.high)
        return shift(low, -band.high), shift(high, -band.low)

    def accepted_from(self, frontier: OperatorFrontier, promised: int, column: str) -> int | Fraction | None:
        """The least value of a column with time in rows that are not late; None and FOREVER as in `least`.

        Rows of a stream may be behind its heartbeat and yet not late.
        """
        least = self.least(frontier, column)
        stream = self.bound.ports[self.side].stream
        if least is None or least == FOREVER or isinstance(stream, Derived) or column != stream.time:
            return least
        values = [band.values[self.side] for band in self.bound.bands]
        firsts = [value.first(value.of(least), ceil(least)) for value in values]
        return max(*firsts, promised + 1) if promised > -EDGE else max(firsts)


def least_value(
    parts: Sequence[SideTimeOutput], coming: Sequence[int | Fraction | None], held: Sequence[int | None]
) -> int | Fraction | None:
    """The least later value of an output: of each part, by what comes and what is held; None where one is not known."""
    if any(one is None for one in coming):
        return None
    values = [
        part.attribute.value(ceil(one))
        for part, two in zip(parts, zip(coming, held, strict=True), strict=True)
        for one in two
        if one is not None and one != FOREVER
    ]
    return min(values, default=None)
