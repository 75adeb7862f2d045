"""The latest rows (VSeq) with their mean and spread, from which the policies of Kim et al. learn.

*VSeq* (section 5.1). The list has a size, never below 30, and is ready when it is full. A new row replaces the oldest
in a full list; a smaller size drops the oldest rows, a larger one waits until the list is full again.

It is kept in chunks, one per round: when only a part of a chunk has to go, its statistics are split in proportion. A
round of one row is a chunk of one row, and then nothing is approximate.

>>> vseq = VSeq()
>>> for tick in range(30):
...     vseq.add(100 + tick, Arrivals.of_row(clock=100 + tick, source=0, time=90 + tick))
>>> vseq.ready, vseq.delays.mean, vseq.interval
(True, 10.0, 0.9666666666666667)

*Mean and spread.* They are kept of a sliding set of numbers, without losing digits to a large common offset. Delays may
be years (a replayed recording) with a spread of milliseconds; sums of squares would drown the spread. Kept instead: the
mean, and the sum of squared distances from it, updated when numbers come and when they go.

>>> m = Moments()
>>> m.add(2, mean=5.0, scatter=2.0)    # two numbers: 4 and 6
>>> m.add(1, mean=8.0, scatter=0.0)
>>> m.remove(1, mean=8.0, scatter=0.0)
>>> m.mean, m.deviation
(5.0, 1.0)
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Snapshot


class Moments:
    """How many numbers there are, their mean, and their scatter: the sum of squared distances from the mean."""

    def __init__(self, rows: int = 0, mean: float = 0.0, scatter: float = 0.0) -> None:
        self.rows = rows
        self.mean = mean
        self.scatter = scatter

    def add(self, rows: int, mean: float, scatter: float) -> None:
        """Let `rows` numbers of this mean and scatter come."""
        self.rows += rows
        step = mean - self.mean
        self.mean += step * rows / self.rows
        self.scatter += scatter + rows * step * (mean - self.mean)

    def remove(self, rows: int, mean: float, scatter: float) -> None:
        """Let `rows` numbers of this mean and scatter, which came before, go."""
        self.rows -= rows
        if self.rows == 0:
            self.mean = self.scatter = 0.0
            return
        step = mean - self.mean
        self.mean -= step * rows / self.rows
        # Rounding may leave a tiny negative rest where the true scatter is zero.
        self.scatter = max(0.0, self.scatter - scatter - rows * step * (mean - self.mean))

    @property
    def deviation(self) -> float:
        """The standard deviation; 0 without numbers."""
        return math.sqrt(self.scatter / self.rows) if self.rows else 0.0


LEAST_SIZE = 30


@dataclass
class _Chunk:
    """Rows of one round that are still in the list: how many, the mean and scatter of their delays, their clock.

    `interval` is the clock since the round before, divided by the rows of the whole round.
    """

    rows: int
    delay: float
    scatter: float
    clock: int
    interval: float

    @property
    def time(self) -> float:
        """The mean time of the rows; their times scatter as their delays do."""
        return self.clock - self.delay


class VSeq:
    """The latest rows as chunks, with running moments of their delays and of their times."""

    def __init__(self) -> None:
        self._chunks: deque[_Chunk] = deque()
        self.size = LEAST_SIZE
        self.delays = Moments()
        self.times = Moments()

    @property
    def ready(self) -> bool:
        """Whether the list is full."""
        return self.delays.rows >= self.size

    @property
    def interval(self) -> float:
        """Equation 4: the clock from the oldest to the newest row, divided by the number of rows.

        A list that lies within one large round has rows of one clock only; it takes the interval of that round.
        """
        if not self._chunks:
            return 0.0
        newest, oldest = self._chunks[-1], self._chunks[0]
        return newest.interval if newest is oldest else (newest.clock - oldest.clock) / self.delays.rows

    def add(self, clock: int, arrivals: Arrivals) -> None:
        """Take in the rows of a round; `clock` is that of the round, or a later one if the round's has stepped back."""
        rows = arrivals.total
        mean_by_cell = arrivals.delay_sum / arrivals.rows
        mean = float(arrivals.delay_sum.sum()) / rows
        # The difference of two large squares: meaningless for one row, where it is zero by definition.
        within = np.where(arrivals.rows > 1, arrivals.delay_square_sum - arrivals.delay_sum * mean_by_cell, 0.0)
        between = arrivals.rows * (mean_by_cell - mean) ** 2
        scatter = float(np.maximum(within, 0.0).sum() + between.sum())
        before = self._chunks[-1].clock if self._chunks else clock
        chunk = _Chunk(rows, mean, scatter, clock, (clock - before) / rows)
        self._chunks.append(chunk)
        self.delays.add(rows, chunk.delay, scatter)
        self.times.add(rows, chunk.time, scatter)
        self._drop_oldest()

    def resize(self, size: int) -> None:
        """Hold `size` rows from now on, at least 30."""
        self.size = max(LEAST_SIZE, size)
        self._drop_oldest()

    def _drop_oldest(self) -> None:
        surplus = self.delays.rows - self.size
        while surplus > 0:
            oldest = self._chunks[0]
            rows = min(surplus, oldest.rows)
            scatter = oldest.scatter * rows / oldest.rows
            self.delays.remove(rows, oldest.delay, scatter)
            self.times.remove(rows, oldest.time, scatter)
            if rows == oldest.rows:
                self._chunks.popleft()
            else:
                oldest.rows -= rows
                oldest.scatter -= scatter
            surplus -= rows

    def snapshot(self) -> Snapshot:
        """Size, chunks and moments as plain data."""
        return {
            "size": self.size,
            "chunks": [[c.rows, c.delay, c.scatter, c.clock, c.interval] for c in self._chunks],
            # Saved, not summed up again: restored, every later digit must come out the same.
            "delays": [self.delays.rows, self.delays.mean, self.delays.scatter],
            "times": [self.times.rows, self.times.mean, self.times.scatter],
        }

    @classmethod
    def restored(cls, saved: dict[str, Any]) -> VSeq:
        """The list that `snapshot` described.

        >>> VSeq.restored(VSeq().snapshot()).size
        30
        """
        vseq = cls()
        vseq.size = saved["size"]
        vseq._chunks = deque(_Chunk(*chunk) for chunk in saved["chunks"])
        vseq.delays = Moments(*saved["delays"])
        vseq.times = Moments(*saved["times"])
        return vseq
