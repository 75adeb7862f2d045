"""Joins told by brute force: every row of one side against every row of the other, and time looked at rule by rule."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from eventide.eventtime.instant import FOREVER, NEVER
from eventide.plan.declared.join import Band, JoinKind

Function = Callable[[int], float]
AggregateValue = tuple[int, int, int, int | None, int | None, int | None, int | None]
"""window_start, window_end, rows, then `a.t`, `a.v`, `b.t`, `b.v`."""


@dataclass(frozen=True)
class Row:
    """A row: its side, time, key and value."""

    side: int
    t: int
    k: int | None
    v: int | None


@dataclass(frozen=True)
class OracleBand:
    """A band, and its two expressions as functions of time; or one as what a row `says` whose side has that number."""

    band: Band
    left: Function
    right: Function
    of_rows: int | None = None
    says: Callable[[Row], int | None] = lambda row: None

    def value(self, row: Row) -> float | None:
        return self.says(row) if row.side == self.of_rows else self.time(row.side)(row.t)

    def time(self, side: int) -> Function:
        return self.right if side else self.left

    def holds(self, left: Row, right: Row) -> bool:
        one, other = self.value(left), self.value(right)
        return one is not None and other is not None and self.within(other - one)

    def within(self, difference: float) -> bool:
        return not self.above(difference) and not self.below(difference)

    def above(self, difference: float) -> bool:
        return self.band.high is not None and difference > self.band.high

    def below(self, difference: float) -> bool:
        return self.band.low is not None and difference < self.band.low


@dataclass
class Oracle:
    """What a join has to do, round by round."""

    kind: JoinKind
    bands: tuple[OracleBand, ...]
    keyed: bool
    condition: Callable[[Row, Row], bool]
    where: Callable[[Row | None, Row | None], bool]
    accepted: list[Row] = field(default_factory=list)
    had_partner: set[int] = field(default_factory=set)
    gone: set[int] = field(default_factory=set)
    heartbeats: tuple[int, int] = (NEVER, NEVER)
    promised: int = NEVER

    def is_late(self, row: Row) -> bool:
        heartbeat = self.heartbeats[row.side]
        if heartbeat == FOREVER or (self.promised != NEVER and row.t <= self.promised):
            return True
        own = [band.time(row.side) for band in self.bands if band.of_rows != row.side]
        # A function that falls with time is late where it is above what is still to come.
        return heartbeat != NEVER and any(_passed(f, row.t, heartbeat + 1) for f in own)

    def round(self, rows: list[Row], heartbeats: tuple[int, int]) -> tuple[list[Row], Counter[AggregateValue]]:
        """The late rows, and what is told."""
        late = [row for row in rows if self.is_late(row)]
        start = len(self.accepted)
        self.accepted += [row for row in rows if not self.is_late(row)]
        told: Counter[AggregateValue] = Counter()
        for i, left in enumerate(self.accepted):
            for j, right in enumerate(self.accepted):
                if left.side == 0 and right.side == 1 and max(i, j) >= start and self._pair(left, right):
                    assert i not in self.gone
                    assert j not in self.gone
                    if self.kind is JoinKind.SEMI and i not in self.had_partner:
                        self._tell(told, left, None)
                    self.had_partner |= {i, j}
                    if not self.kind.chooses:
                        self._tell(told, left, right)
        self.heartbeats = heartbeats
        for i, row in enumerate(self.accepted):
            if i not in self.gone and self._done(row):
                self.gone.add(i)
                if self._kept(row) and i not in self.had_partner and self.kind is not JoinKind.SEMI:
                    self._tell(told, *((row, None) if row.side == 0 else (None, row)))
        waiting = [row.t - 1 for i, row in enumerate(self.accepted) if self._waits(i, row)]
        self.promised = max(self.promised, min(*heartbeats, *waiting))
        return late, told

    @property
    def holds(self) -> Counter[int]:
        return Counter(row.t for i, row in enumerate(self.accepted) if i not in self.gone)

    def _pair(self, left: Row, right: Row) -> bool:
        same = not self.keyed or (left.k is not None and left.k == right.k)
        return same and all(band.holds(left, right) for band in self.bands) and self.condition(left, right)

    def _tell(self, told: Counter[AggregateValue], left: Row | None, right: Row | None) -> None:
        if self.where(left, right):
            times = [row.t for row in (left, right) if row is not None]
            values = [(row.t, row.v) if row is not None else (None, None) for row in (left, right)]
            told[(min(times), max(times) + 1, len(times), *values[0], *values[1])] += 1

    def _kept(self, row: Row) -> bool:
        return self.kind.keeps_right if row.side else self.kind.keeps_left

    def _waits(self, i: int, row: Row) -> bool:
        return self._kept(row) and i not in self.had_partner and i not in self.gone

    def _done(self, row: Row) -> bool:
        heartbeat = self.heartbeats[1 - row.side]
        if (
            heartbeat == FOREVER
            or (self.keyed and row.k is None)
            or any(band.value(row) is None for band in self.bands)
        ):
            return True
        return heartbeat != NEVER and any(self._passed_by(band, row, heartbeat + 1) for band in self.bands)

    def _passed_by(self, band: OracleBand, row: Row, first: int) -> bool:
        """Whether the values from that time on lie beyond the band, or all before it if they fall with time."""
        if band.of_rows == 1 - row.side:
            return False
        own, other = band.value(row), band.time(1 - row.side)
        assert own is not None
        difference = own - other(first) if row.side else other(first) - own
        grows = other(first) <= other(first + 1000)
        return band.above(difference) if grows == (row.side == 0) else band.below(difference)


def _passed(f: Function, t: int, first: int) -> bool:
    return f(t) < f(first) if f(first) <= f(first + 1000) else f(t) > f(first)
