"""Streams as the prodding thesis generates them, and what its windows are worth when they are prodded.

Section 4.4: after a tuple at second t the next one is at t with probability 95 %, else at t + 1; values are uniform,
0 to 999; the Streamer adds a delay of up to half a second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SECOND = 1_000_000
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Windows:
    """Early answers at a point of the slide, and final ones, of windows of 30 s every 10 s."""

    times: NDArray[np.int64]
    arrivals: NDArray[np.int64]
    values: Floats
    range: int = 30 * SECOND
    slide: int = 10 * SECOND

    def errors(self, end: int, point: float) -> dict[str, float]:
        """The relative error of each aggregate of a window that is prodded at a point."""
        within = (self.times >= end - self.range) & (self.times < end)
        there = within & (self.arrivals <= end - round((1 - point) * self.slide))
        early, final = self.values[there], self.values[within]
        of: dict[str, Callable[[Floats], float]] = {"count": len, "sum": np.sum, "average": np.mean, "max": np.max}
        if len(final) == 0:
            return dict.fromkeys(of, 0.0)
        if len(early) == 0:
            return dict.fromkeys(of, 1.0)
        return {name: abs(float(f(final)) - float(f(early))) / abs(float(f(final))) for name, f in of.items()}


def uniform_stream(seed: int, seconds: int, density: float = 0.95, delay: float = 0.5) -> Windows:
    """A stream of the thesis with uniform values."""
    rng = np.random.default_rng(seed)
    count = round(seconds / (1 - density))
    times = np.cumsum(rng.random(count) >= density).astype(np.int64) * SECOND
    # The thesis' times are whole seconds; within the second, tuples come one after the other.
    times = np.sort(times + rng.integers(0, SECOND, count))
    return Windows(times, times + rng.integers(0, max(1, round(delay * SECOND)), count), rng.uniform(0, 999, count))
