"""What has to be counted round by round, because no status keeps it: the time of each step, and results.

Law: counting costs a round some microseconds, and needs no library; whoever reads gets a copy of one moment.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from eventide.engine.round.report import STEPS, RoundReport

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
"""Upper edges in seconds of the histogram of steps."""


@dataclass(frozen=True)
class RoundTotals:
    """By step, how many rounds it took up to each edge of `BUCKETS` and no less, and its seconds in all; results by
    query since the start; when the last round was committed, in seconds since 1970."""

    steps: dict[str, list[int]] = field(default_factory=lambda: {step: [0] * (len(BUCKETS) + 1) for step in STEPS})
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STEPS, 0.0))
    results: Counter[str] = field(default_factory=Counter)
    last_round: float | None = None


class RoundCounts:
    """Counts rounds; to be called after each.

    >>> counts = RoundCounts(now=lambda: 7.0)
    >>> counts(RoundReport(0, 0, {}, {}, {}, {}, {}, seconds={"reduce": 0.2}))
    >>> counts.now().seconds["reduce"], counts.now().steps["reduce"][5], counts.now().last_round
    (0.2, 1, 7.0)
    """

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._lock, self._now = threading.Lock(), now
        self._counted = RoundTotals()

    def __call__(self, work: RoundReport) -> None:
        """Take a committed round into account."""
        with self._lock:
            counted = self._counted
            for step, seconds in work.seconds.items():
                counted.steps[step][bisect_left(BUCKETS, seconds)] += 1
                counted.seconds[step] += seconds
            for query, results in work.results.items():
                counted.results[query] += results.rows
            self._counted = replace(counted, last_round=self._now())

    def now(self) -> RoundTotals:
        """What has been counted so far."""
        with self._lock:
            steps = {step: list(counts) for step, counts in self._counted.steps.items()}
            seconds, results = dict(self._counted.seconds), Counter(self._counted.results)
            return replace(self._counted, steps=steps, seconds=seconds, results=results)
