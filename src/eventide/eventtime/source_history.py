"""The history of every source: how far it has come, when it was heard, how late its latest rows were, what it lost.

Two residuals are kept per source, each as the worst one of its last `1 / ratio` to `2 / ratio` rows: how far a row lay
behind the source's own largest time, and how far behind its clock, which runs on from the largest time in silence.
Both are signed: a source that speaks every 500 ms has the own residual -500 ms, and promises its next half second.

Law: a leap needs a second witness. A time that runs ahead of the source's clock by more than sixteen times its longest
leap or silence so far is not believed before another row says the like; so a single row stamped years ahead moves
nothing, and a clock that is set forward costs one row of waiting.

*Rows at risk.* If a source that is silent is only held up, a heartbeat beyond its largest time loses the rows it
stamped meanwhile, at the rate it has shown, and at least those that share one time. `reach` is how far beyond its
largest time a heartbeat may go for a number of rows at risk. Silences that ended well, with a row stamped in the second
half of them, multiply what may be at risk by their number; one that ended badly halves it.

>>> history = SourceHistory(ratio=0.01, places=1)
>>> for clock in range(0, 100, 10):
...     history.note(Arrivals.of_row(clock, source=0, time=clock), stake=1.0, lost=np.zeros(1, dtype=np.int64))
>>> history.largest.tolist(), history.own_residual().tolist(), history.clock_residual().tolist()
([90], [-10], [0])
>>> history.note(Arrivals.of_row(100, 0, 10**12), stake=1.0, lost=np.zeros(1, dtype=np.int64))
>>> history.largest.tolist()
[90]
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Snapshot
from eventide.eventtime.instant import EDGE, Instants
from eventide.eventtime.loss_account import TUNING, Tuning
from eventide.eventtime.packing import packed, unpacked
from eventide.eventtime.per_source import grown

ABSENT = -2 * EDGE
"""No residual: below every real one."""

YOUNG_ROWS = 8
"""A source with fewer rows is believed whatever it says, and is never gone."""


class SourceHistory:
    """Arrays over sources; instants lie within the edges of plain arithmetic."""

    _FILL: ClassVar[dict[str, int]] = {
        "rows": 0,
        "lost": 0,
        "first": 0,
        "largest": -EDGE,
        "born": 0,
        "heard": 0,
        "longest": 0,
        "leap": 0,
        "doubted": 0,
        "times": 0,
        "same": 0,
        "good": 0,
        "in_block": 0,
        "own": ABSENT,
        "own_before": ABSENT,
        "clock": ABSENT,
        "clock_before": ABSENT,
    }
    rows: NDArray[np.int64]
    lost: NDArray[np.int64]
    first: Instants
    largest: Instants
    born: Instants
    heard: Instants
    longest: Instants
    leap: Instants
    doubted: NDArray[np.int64]
    times: NDArray[np.int64]
    same: NDArray[np.int64]
    good: NDArray[np.int64]
    in_block: NDArray[np.int64]
    own: Instants
    own_before: Instants
    clock: Instants
    clock_before: Instants

    def __init__(self, ratio: float, places: int = 0, tuning: Tuning = TUNING) -> None:
        self._block_rows = max(1, round(min(1 / ratio, 2.0**31)))
        self._tuning = tuning
        for name, fill in self._FILL.items():
            setattr(self, name, np.full(places, fill, dtype=np.int64))

    def grow(self, places: int) -> None:
        """Make room for more sources."""
        for name, fill in self._FILL.items():
            setattr(self, name, grown(getattr(self, name), places, fill))

    def own_residual(self) -> Instants:
        """The worst residual against the own largest time; `ABSENT` before the second row."""
        return np.maximum(self.own, self.own_before)

    def clock_residual(self) -> Instants:
        """The worst residual against the source's clock; `ABSENT` before the second row."""
        return np.maximum(self.clock, self.clock_before)

    def crowd(self) -> NDArray[np.float64]:
        """How many rows share one time, on average, or at the largest time where these are more."""
        crowd: NDArray[np.float64] = np.maximum(self.rows / np.maximum(self.times, 1), self.same)
        return crowd

    def rows_at_risk(self, stake: float, most: float) -> NDArray[np.float64]:
        """How many rows of each source may be at risk, given the stake of one and the most of any."""
        at_risk: NDArray[np.float64] = np.minimum(stake * (1 + self.good), most)
        return at_risk

    def reach_share(self, at_risk: NDArray[np.float64]) -> NDArray[np.float64]:
        """The share of a source's age that a heartbeat may go beyond its largest time for so many rows at risk."""
        share: NDArray[np.float64] = np.maximum(at_risk - self.crowd() + 1, 0.0) / (self.rows + 1)
        return share

    def age(self, clock: int) -> Instants:
        """Since when a source is known, by its rows or by the clock, whichever is longer."""
        age: Instants = np.maximum(self.largest - self.first, clock - self.born)
        return age

    def gone_after(self) -> Instants:
        """The silence after which a source is not waited for; a young one always is."""
        times = self._tuning.gone_times
        longest = np.minimum(np.maximum(self.longest, 1), EDGE // times) * times
        known = np.maximum(self.heard - self.born, self.largest - self.first)
        return np.where(self.rows >= YOUNG_ROWS, np.maximum(longest, known), 2 * EDGE)

    def note(self, arrivals: Arrivals, stake: float, lost: NDArray[np.int64]) -> None:
        """Learn from a round: `lost` rows of each of its sources were late."""
        if arrivals.total == 1:
            self._note_row(int(arrivals.source[0]), int(arrivals.earliest[0]), arrivals.clock, stake, int(lost[0]))
            return
        source, clock = arrivals.sources, arrivals.clock
        rows, largest, heard = self.rows[source], self.largest[source], self.heard[source]
        new = rows == 0
        silence = np.where(new, 0, clock - heard)
        earliest = arrivals.earliest_by_source
        self._end_silences(source, silence, np.where(new, 0, earliest - largest), stake, clock)
        longest = np.maximum(self.longest[source], silence)
        expected = np.minimum(largest + silence, EDGE)
        times = self._tuning.leap_times
        far = np.minimum(np.maximum(self.leap[source], longest), EDGE // times) * times
        latest = self._believed(arrivals, np.where(rows < YOUNG_ROWS, EDGE, np.minimum(expected + far, EDGE)))
        self.longest[source] = longest
        self._note_residuals(source[~new], (largest - earliest)[~new], (expected - earliest)[~new])
        raised = latest > largest
        self.leap[source] = np.maximum(self.leap[source], np.where(new | ~raised, 0, latest - expected))
        self._note_crowds(arrivals, raised, latest == largest)
        self.largest[source] = np.where(raised, latest, largest)
        self.first[source] = np.where(new, earliest, np.minimum(self.first[source], earliest))
        self.born[source] = np.where(new, clock, self.born[source])
        self.heard[source] = clock
        self.in_block[source] += np.where(new, 0, arrivals.rows_by_source)
        self.rows[source] = rows + arrivals.rows_by_source
        self.lost[source] += lost
        self._turn_blocks(source)

    def _note_row(self, source: int, time: int, clock: int, stake: float, lost: int) -> None:
        """The same for a single row, without arrays: a row at a time has to be fast."""
        rows, largest = int(self.rows[source]), int(self.largest[source])
        self.rows[source] = rows + 1
        self.lost[source] += lost
        if rows == 0:
            self.largest[source] = self.first[source] = time
            self.born[source] = self.heard[source] = clock
            self.times[source] = self.same[source] = 1
            return
        silence = clock - int(self.heard[source])
        self.heard[source] = clock
        if silence > 0:
            crowd = max((rows) / max(int(self.times[source]), 1), int(self.same[source]))
            age = max(largest - int(self.first[source]), clock - int(self.born[source]))
            if silence > max(stake - crowd + 1, 0.0) / (rows + 1) * age:
                good = int(self.good[source])
                self.good[source] = good + 1 if 2 * (time - largest) >= silence else good // 2
        longest = max(int(self.longest[source]), silence)
        self.longest[source] = longest
        expected, leap, times = min(largest + silence, EDGE), int(self.leap[source]), self._tuning.leap_times
        beyond = time > expected + min(max(leap, longest), EDGE // times) * times
        believed = not (rows >= YOUNG_ROWS and beyond and time <= EDGE) or int(self.doubted[source]) > 0
        if rows >= YOUNG_ROWS and beyond and not believed:
            self.doubted[source] = 1
        else:
            self.doubted[source] = 0
        if largest - time > self.own[source]:
            self.own[source] = largest - time
        residual = min(max(expected - time, -EDGE), 2 * EDGE)
        if residual > self.clock[source]:
            self.clock[source] = residual
        if believed and time > largest:
            self.leap[source] = max(leap, time - expected)
            self.largest[source] = time
            self.times[source] += 1
            self.same[source] = 1
        elif time == largest:
            self.same[source] += 1
        if time < self.first[source]:
            self.first[source] = time
        in_block = int(self.in_block[source]) + 1
        self.in_block[source] = in_block
        if in_block >= self._block_rows:
            self._turn_blocks(np.array([source]))

    def _end_silences(
        self, source: NDArray[np.intp], silence: Instants, ahead: Instants, stake: float, clock: int
    ) -> None:
        crowd = np.maximum(self.rows[source] / np.maximum(self.times[source], 1), self.same[source])
        age = np.maximum(self.largest[source] - self.first[source], clock - self.born[source])
        reach = np.maximum(stake - crowd + 1, 0.0) / (self.rows[source] + 1) * age
        long = (silence > 0) & (silence > reach)
        good = self.good[source]
        self.good[source] = np.where(long, np.where(2.0 * ahead >= silence, good + 1, good // 2), good)

    def _note_residuals(self, source: NDArray[np.intp], own: Instants, clock: Instants) -> None:
        self.own[source] = np.maximum(self.own[source], own)
        self.clock[source] = np.maximum(self.clock[source], np.clip(clock, -EDGE, 2 * EDGE))

    def _turn_blocks(self, source: NDArray[np.intp]) -> None:
        full = source[self.in_block[source] >= self._block_rows]
        if len(full):
            self.own_before[full], self.own[full] = self.own[full], ABSENT
            self.clock_before[full], self.clock[full] = self.clock[full], ABSENT
            self.in_block[full] = 0

    def _note_crowds(self, arrivals: Arrivals, raised: NDArray[np.bool_], same: NDArray[np.bool_]) -> None:
        """Count the times of the rows, and the rows at the largest; a cell of several times has one for each row."""
        source = arrivals.sources
        last = np.cumsum(arrivals.cells_by_source) - 1
        at_once = arrivals.earliest[last] == arrivals.latest[last]
        top = np.where(at_once, arrivals.rows[last], 1)
        kinds = np.where(arrivals.earliest == arrivals.latest, 1, arrivals.rows)
        times = arrivals.sum_by_source(kinds).astype(np.int64)
        self.times[source] += np.where(raised, times, 0)
        before = self.same[source]
        self.same[source] = np.where(raised, top, np.where(same, before + top, before))

    def _believed(self, arrivals: Arrivals, bound: Instants) -> Instants:
        """The latest time of each source, leaving out a single row beyond its bound."""
        source, latest = arrivals.sources, arrivals.latest_by_source
        leaping = latest > bound
        if not leaping.any():
            self.doubted[source] = 0
            return latest
        cell_bound = np.repeat(bound, arrivals.cells_by_source)
        beyond = arrivals.latest > cell_bound
        # Of a cell that only ends beyond the bound, one row is known to lie there; its first row is believed anyway.
        partly = beyond & (arrivals.earliest <= cell_bound)
        leapt = np.where(partly, 1, np.where(beyond, arrivals.rows, 0))
        witnesses = arrivals.sum_by_source(leapt) + self.doubted[source]
        alone = leaping & (witnesses < 2)
        self.doubted[source] = alone
        left_out = beyond & np.repeat(alone, arrivals.cells_by_source)
        return arrivals.max_by_source(np.where(left_out, np.where(partly, arrivals.earliest, -EDGE), arrivals.latest))

    def snapshot(self) -> Snapshot:
        """Everything as plain data."""
        return {name: packed(getattr(self, name)) for name in self._FILL}

    def restore(self, saved: Snapshot) -> None:
        """Continue from what `snapshot` described."""
        for name in self._FILL:
            setattr(self, name, unpacked(saved[name]))
