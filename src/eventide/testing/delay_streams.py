"""Streams that are hard because of how long rows travel: steps, drifts, tails, bursts, retries.

>>> uniform_shuffle(seed=1).rows
30000
>>> heavy_tail(seed=1).time[0] == heavy_tail(seed=1).time[0]
np.True_
"""

from __future__ import annotations

import numpy as np

from eventide.profile.recording import Recording
from eventide.testing.building import MILLISECOND, SECOND, arrived, emissions, exponential, in_order


def delay_step(seed: int) -> Recording:
    """A route change in the middle of the run: from then on every delay is ten times as long."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=40_000, seconds=600, sources=10)
    mean = np.where(time < 300 * SECOND, 200.0, 2_000.0) * MILLISECOND
    return arrived("delay_step", time, time + exponential(rng, mean, len(time)), source)


def delay_step_down(seed: int) -> Recording:
    """A slow route repaired in the middle of the run: from then on every delay is a tenth."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=40_000, seconds=600, sources=10)
    mean = np.where(time < 300 * SECOND, 2_000.0, 200.0) * MILLISECOND
    return arrived("delay_step_down", time, time + exponential(rng, mean, len(time)), source)


def drifting_delay(seed: int) -> Recording:
    """A network that fills up over the day: the mean delay drifts from 100 ms to 2 s, with no step to see."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=40_000, seconds=600, sources=10)
    mean = 100.0 * MILLISECOND * 20.0 ** (time / (600 * SECOND))
    return arrived("drifting_delay", time, time + exponential(rng, mean, len(time)), source)


def heavy_tail(seed: int) -> Recording:
    """Mobile networks with retransmissions: Pareto delays (alpha 1.1 to 1.5 by source), so no delay is the longest."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=40_000, seconds=800, sources=10)
    alpha = rng.uniform(1.1, 1.5, 10)[source]
    delay = 50 * MILLISECOND * (1.0 + rng.pareto(alpha))
    return arrived("heavy_tail", time, time + delay.astype(np.int64), source)


def lognormal_network(seed: int) -> Recording:
    """A fleet spread over the world: lognormal delays, with another median and spread for every device."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=40_000, seconds=800, sources=30)
    median = np.exp(rng.uniform(np.log(20), np.log(500), 30)) * MILLISECOND
    spread = rng.uniform(0.4, 1.2, 30)
    delay = median[source] * np.exp(spread[source] * rng.standard_normal(len(time)))
    return arrived("lognormal_network", time, time + delay.astype(np.int64), source)


def alternating(seed: int) -> Recording:
    """A link with moods: half a minute of calm, half a minute of storm with delays fifty times as long, and again."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=40_000, seconds=600, sources=10)
    stormy = (time // (30 * SECOND)) % 2 == 1
    mean = np.where(stormy, 2_500.0, 50.0) * MILLISECOND
    return arrived("alternating", time, time + exponential(rng, mean, len(time)), source)


def growing_disorder(seed: int) -> Recording:
    """A system that is coming apart: a row may be late by a quarter of the time since the start, without bound."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=40_000, seconds=600, sources=8)
    delay = rng.uniform(0, 1, len(time)) * time / 4
    return arrived("growing_disorder", time, time + delay.astype(np.int64), source)


def uniform_shuffle(seed: int) -> Recording:
    """One feed without any notion of source, read through a pool of workers: delays uniform in 0 to 2 s."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=30_000, seconds=300, sources=1)
    return arrived("uniform_shuffle", time, time + rng.integers(0, 2 * SECOND, len(time), endpoint=True), source)


def bursts(seed: int) -> Recording:
    """Alarms that come in avalanches: 2,000 rows within 100 ms, queued behind each other at 500 rows a second."""
    rng = np.random.default_rng(seed)
    calm, calm_source = emissions(rng, rows=20_000, seconds=400, sources=5)
    calm_arrival = calm + exponential(rng, 50.0 * MILLISECOND, len(calm))
    begins = np.arange(10, 400, 20) * SECOND
    offset = np.sort(rng.integers(0, 100 * MILLISECOND, (len(begins), 2_000)), axis=1)
    queued = np.arange(1, 2_001) * (2 * MILLISECOND)
    burst = (begins[:, None] + offset).ravel()
    burst_arrival = burst + np.tile(queued, len(begins))
    burst_source = rng.integers(0, 5, len(burst)).astype(np.intp)
    return arrived(
        "bursts",
        np.concatenate((calm, burst)),
        np.concatenate((calm_arrival, burst_arrival)),
        np.concatenate((calm_source, burst_source)),
    )


def duplicates(seed: int) -> Recording:
    """A client that retries: 3 % of the rows arrive a second time, 1 to 10 s after the first copy."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=40_000, seconds=600, sources=10)
    first = in_order(source, time, time + exponential(rng, 50.0 * MILLISECOND, len(time)))
    again = np.sort(rng.choice(len(time), size=len(time) * 3 // 100, replace=False))
    second = first[again] + rng.integers(1 * SECOND, 10 * SECOND, len(again), endpoint=True)
    return arrived(
        "duplicates",
        np.concatenate((time, time[again])),
        np.concatenate((first, second)),
        np.concatenate((source, source[again])),
    )


def sequence(seed: int) -> Recording:
    """Sequence numbers of packets instead of times, shuffled within 50 places; the clock counts arrivals."""
    rng = np.random.default_rng(seed)
    number = np.arange(30_000, dtype=np.int64)
    order = np.argsort(number + rng.uniform(0, 50, len(number)))
    return Recording.of("sequence", number[order], number, np.zeros(len(number), dtype=np.intp))
