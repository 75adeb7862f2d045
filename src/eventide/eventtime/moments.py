"""Mean and spread of a sliding set of numbers, without losing digits to a large common offset.

Delays may be years (a replayed recording) with a spread of milliseconds; sums of squares would drown the spread. Kept
instead: the mean, and the sum of squared distances from it, updated when numbers come and when they go.

>>> m = Moments()
>>> m.add(2, mean=5.0, scatter=2.0)    # two numbers: 4 and 6
>>> m.add(1, mean=8.0, scatter=0.0)
>>> m.remove(1, mean=8.0, scatter=0.0)
>>> m.mean, m.deviation
(5.0, 1.0)
"""

from __future__ import annotations

import math


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
