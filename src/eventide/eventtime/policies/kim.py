"""Adaptive disorder control (Kim, Kim, Kim): two policies that size a buffer by the latest rows, and their controller.

*Kim.* A buffer sized by the drop ratio (section 5, figure 3). Assumed: intervals between rows are exponential with mean
theta, delays are normal with mean mu and deviation sigma, both learnt from the latest rows (`VSeq`). Law: the buffer
holds n rows, the most for which (equation 7)

    n^2 - c n - 2 c (sigma / theta)^2 < 0,    c = square of the normal quantile of the drop ratio,

and the heartbeat, given when a row arrives at clock t, is (equation 8) t - mu - n theta.

The three configurations of section 4: `Kim(p)` is the dynamic buffer; `Kim(p, slack=n)` the same, fixed to n rows while
the estimate exceeds n; `Kim(p, slack=0)` is the punctuation mode: heartbeats, and no buffer to bound.

Limits: where delays grow (a backlog) mu trails them, and far more rows are lost than permitted; where intervals are
tiny beside the deviation, n is huge and the estimate stands still until as many rows have come: a slack bounds what is
held meanwhile. The clock and the times must be of one unit, and the clock must move.

>>> from eventide.eventtime.arrivals import Arrivals
>>> generator = Kim(drop_ratio=0.01).start()
>>> for tick in range(0, 300, 10):
...     generator.observe(Arrivals.of_row(clock=tick + 5, source=0, time=tick))
>>> generator.heartbeats(300).combined
241

*KimAdhoc.* The ad hoc measure that the paper compares its own with (figure 4), a baseline and not a recommendation.
With the mean m and deviation s of the *times* of the latest rows (`VSeq`), and a drop ratio p,

    heartbeat = m - s + 2 p s,        size of VSeq = 30 + s z(p) / theta.

The figure prints a product with theta, which would count rows in squared time units; the quotient is the number of rows
that arrive in z(p) deviations, so that is what is computed.

Limits: no theory behind it. It holds back far more than needed of a calm stream, and neither p = 1 % nor p = 10 % is
what it loses.

>>> from eventide.eventtime.arrivals import Arrivals
>>> generator = KimAdhoc(drop_ratio=0.1).start()
>>> for tick in range(0, 300, 10):
...     generator.observe(Arrivals.of_row(clock=tick + 5, source=0, time=tick))
>>> generator.heartbeats(300).combined
75

*The controller.* The steps that figures 3 and 4 share. Every round goes into `VSeq`. When that is full, a measure
estimates how many rows the buffer must hold and the heartbeat that follows from it, and `VSeq` takes the estimated
size; otherwise, and while the clock has not moved at all from the oldest row to the newest (there is no interval to
reckon with), the last heartbeat stands. With a slack, a buffer whose estimated size exceeds the slack is fixed to it:
then the heartbeat is that of `Slack`, and the drop ratio has no effect until the estimate is small enough again
(section 4).

A round is digested whole and estimated once; with rounds of one row this is figure 3 to the letter.

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
from abc import ABC, abstractmethod
from collections import deque
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist

import numpy as np

from eventide.errors import DeclarationError
from eventide.eventtime.arrivals import Arrivals
from eventide.eventtime.heartbeat import Heartbeats, Ratchet, SavedGenerator, SavedPolicy, Snapshot
from eventide.eventtime.instant import NEVER, shift
from eventide.eventtime.policies.slack import Slack
from eventide.eventtime.reason import LeftOut, Reason


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
        self._delay_sum = Fraction(0)

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

    def behind(self, rows: int) -> Fraction:
        """By how much equation 8 trails the clock, exactly: the mean delay and `rows` mean intervals.

        In binary fractions the sum may come out just above a whole number, and the heartbeat one too low.
        """
        newest, oldest, held = self._chunks[-1], self._chunks[0], self.delays.rows
        alone = newest is oldest
        interval = Fraction(newest.interval) if alone else Fraction(newest.clock - oldest.clock, held)
        return self._delay_sum / held + rows * interval

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
        self._delay_sum += rows * Fraction(chunk.delay)
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
            self._delay_sum -= rows * Fraction(oldest.delay)
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

    def restore(self, saved: Snapshot) -> None:
        """Go on from what `snapshot` described."""
        self.size = saved["size"]
        self._chunks = deque(_Chunk(*chunk) for chunk in saved["chunks"])
        self._delay_sum = sum((c.rows * Fraction(c.delay) for c in self._chunks), Fraction(0))
        self.delays = Moments(*saved["delays"])
        self.times = Moments(*saved["times"])


class DisorderController(SavedGenerator, ABC):
    """Feeds a measure from `VSeq`; one heartbeat for all sources."""

    SAVED = ("_vseq", "_fixed", "_size", "_heartbeat", "_clock", "_sources", "_ratchet")

    def __init__(self, slack: int | None) -> None:
        self._vseq = VSeq()
        self._fixed = Slack(slack).start() if slack else None
        self._size = LEAST_SIZE
        self._heartbeat = NEVER
        self._slack = slack
        self._clock = NEVER
        self._sources = 0
        self._ratchet = Ratchet()

    @abstractmethod
    def measure(self) -> tuple[int, int]:
        """The rows that the buffer must hold, and the heartbeat, of a full `VSeq` at the clock of its newest row."""

    def observe(self, arrivals: Arrivals) -> None:
        """Take in a round; estimate anew if enough rows are known."""
        self._clock = max(self._clock, arrivals.clock)
        if arrivals.total == 0:
            return
        self._sources = max(self._sources, arrivals.places)
        if self._fixed is not None:
            self._fixed.observe(arrivals)
        self._vseq.add(self._clock, arrivals)
        if self._vseq.ready and self._vseq.interval > 0:
            self._size, self._heartbeat = self.measure()
            self._vseq.resize(self._size)
        self._ratchet.lift_all(self._promise(), self._sources)

    def _promise(self) -> int:
        if self._fixed is not None and self._size > self.buffer_size:
            return self._fixed.heartbeats(self._clock).combined
        return self._heartbeat

    def heartbeats(self, clock: int) -> Heartbeats:
        """The heartbeat of the last estimate, for every source; it stands still between rows."""
        return self._ratchet.shown

    @property
    def buffer_size(self) -> int:
        """The rows that the buffer is meant to hold at present: the estimate, or the slack where that is less."""
        return min(self._size, self._slack) if self._slack else self._size

    def why(self, source: int) -> Reason:
        """The rows held back, as estimated."""
        text = "about {rows:count} rows are held back, as the disorder of the latest rows demands"
        return Reason("estimated slack", text, {"rows": self.buffer_size}, common=True)

    def left_out(self) -> tuple[LeftOut, ...]:
        """None: all sources have one heartbeat, and none is waited for."""
        return ()


def check_drop_ratio(drop_ratio: float) -> None:
    """Refuse a share of rows outside (0, 1).

    >>> check_drop_ratio(3)
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: drop ratio 3 is not between 0 and 1: write 0.03 for 3 %
    """
    if not 0 < drop_ratio < 1:
        raise DeclarationError(f"drop ratio {drop_ratio} is not between 0 and 1: write 0.03 for 3 %")


def normal_quantile(drop_ratio: float) -> float:
    """How many deviations a normal number stays above with probability `drop_ratio`; 0 from one half on.

    >>> round(normal_quantile(0.05), 3), normal_quantile(0.6)
    (1.645, 0.0)
    """
    return max(0.0, NormalDist().inv_cdf(1 - drop_ratio))


def buffer_rows(c: float, sigma: float, theta: float) -> int:
    """Equation 7: the largest whole n with n^2 - c n - 2 c (sigma / theta)^2 < 0; 0 if there is none.

    >>> buffer_rows(c=1.0, sigma=2.0, theta=1.0)    # n^2 - n - 8 < 0
    3
    """
    root = (c + math.sqrt(c * c + 8 * c * (sigma / theta) ** 2)) / 2
    return max(0, math.ceil(root) - 1)


@dataclass(frozen=True)
class Kim(SavedPolicy["KimGenerator"]):
    """Lose about `drop_ratio` of the rows if delays are normal; hold at most `slack` rows (0: punctuation mode)."""

    drop_ratio: float
    slack: int | None = None

    def __post_init__(self) -> None:
        check_drop_ratio(self.drop_ratio)
        if self.slack is not None and self.slack < 0:
            raise DeclarationError(
                f"slack of {self.slack} rows: give the most rows to hold back, 0 for heartbeats without a buffer"
            )

    def start(self) -> KimGenerator:
        """A controller that has seen nothing."""
        return KimGenerator(self)


class KimGenerator(DisorderController):
    """Figure 3: as many rows as equation 7 allows, and the heartbeat of equation 8."""

    KIND = "kim"

    def __init__(self, policy: Kim) -> None:
        super().__init__(policy.slack)
        self._c = normal_quantile(policy.drop_ratio) ** 2

    def measure(self) -> tuple[int, int]:
        """Size and heartbeat by the normal law of the delays."""
        rows = buffer_rows(self._c, self._vseq.delays.deviation, self._vseq.interval)
        return rows, shift(self._clock, -math.ceil(self._vseq.behind(rows)))


@dataclass(frozen=True)
class KimAdhoc(SavedPolicy["KimAdhocGenerator"]):
    """Trail the mean time of the latest rows by a share of their deviation."""

    drop_ratio: float

    def __post_init__(self) -> None:
        check_drop_ratio(self.drop_ratio)

    def start(self) -> KimAdhocGenerator:
        """A controller that has seen nothing."""
        return KimAdhocGenerator(self)


class KimAdhocGenerator(DisorderController):
    """Figure 4: by the mean and the deviation of the times."""

    KIND = "kim_adhoc"

    def __init__(self, policy: KimAdhoc) -> None:
        super().__init__(slack=None)
        self._drop_ratio = policy.drop_ratio

    def measure(self) -> tuple[int, int]:
        """Size and heartbeat by the spread of the times."""
        deviation, theta = self._vseq.times.deviation, self._vseq.interval
        behind = self._clock - self._vseq.times.mean + deviation * (1 - 2 * self._drop_ratio)
        size = LEAST_SIZE + math.floor(deviation * normal_quantile(self._drop_ratio) / theta)
        return size, shift(self._clock, -math.ceil(behind))
