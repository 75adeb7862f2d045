"""Generated streams of the kinds that recordings have shown to be hard, four sizes of each: written before the policy.

The policy was developed with these and those of `generated_further.py` beside it. Those of `generated_after.py` were
written when it was frozen.

>>> recording = BEFORE["alike, 100 sources"](1)
>>> recording.rows, len(recording.source_names)
(8000, 100)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from eventide.profile.reading import Recording
from eventide.testing.streams import MILLISECOND, SECOND, arrived, emissions, exponential, in_order

ROWS = 8_000
SEEDS = (1, 2, 3, 4, 5)


def alike(seed: int, sources: int, sigma: float) -> Recording:
    """Alike sources, each disordered within itself: log-normal delays of minutes with a tail up to hours."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=ROWS, seconds=720_000, sources=sources)
    delay = np.exp(rng.normal(np.log(600), sigma, ROWS)) * SECOND
    return arrived("alike", time, time + delay.astype(np.int64), source)


def batches(seed: int, sources: int, every: float) -> Recording:
    """Vehicles that buffer rows and upload them in order, at random moments."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=ROWS, seconds=8_000, sources=sources)
    arrival = time.copy()
    for one in range(sources):
        uploads = np.cumsum(rng.exponential(every, int(20_000 / every))) * SECOND
        mine = source == one
        at = np.minimum(np.searchsorted(uploads, time[mine]), len(uploads) - 1)
        arrival[mine] = np.maximum(uploads[at].astype(np.int64), time[mine])
    arrival += exponential(rng, 300.0 * MILLISECOND, ROWS)
    return arrived("batches", time, in_order(source, time, arrival), source)


def sparse(seed: int, sources: int, together: float) -> Recording:
    """Few sources, nearly in order, minutes of silence between rows; one clock is ahead and once 131 s ahead."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=ROWS // 2, seconds=ROWS * 45, sources=sources)
    echoed = np.flatnonzero(rng.random(len(time)) < together)
    time = np.concatenate((time, time[echoed] + rng.integers(0, 50 * MILLISECOND, len(echoed))))
    source = np.concatenate((source, (source[echoed] + 1) % sources)).astype(np.intp)
    order = np.argsort(time, kind="stable")
    time, source = time[order], source[order]
    arrival = in_order(source, time, time + exponential(rng, 20.0 * MILLISECOND, len(time)))
    stamped = time + (source == 0) * 200 * MILLISECOND
    stamped[len(stamped) // 2] += 131 * SECOND
    return arrived("sparse", stamped, arrival, source)


def uneven(seed: int, sources: int, falling: float) -> Recording:
    """Sources of extremely uneven rates, with delays of days."""
    rng = np.random.default_rng(seed)
    share = falling ** np.arange(sources)
    time = np.sort(rng.uniform(0, 200 * 86_400 * SECOND, ROWS)).astype(np.int64)
    source = rng.choice(sources, ROWS, p=share / share.sum()).astype(np.intp)
    mean = np.exp(rng.uniform(np.log(0.2), np.log(5), sources)) * 86_400 * SECOND
    return arrived("uneven", time, time + exponential(rng, mean[source], ROWS), source)


def markets(seed: int, sources: int, apart: int) -> Recording:
    """Markets in order, whose clocks are apart."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=ROWS, seconds=800, sources=sources)
    offset = rng.integers(-apart * MILLISECOND, apart * MILLISECOND + 1, sources)
    delay = 3 * MILLISECOND + exponential(rng, 15.0 * MILLISECOND, ROWS)
    return arrived("markets", time + offset[source], in_order(source, time, time + delay), source)


BEFORE: Mapping[str, Callable[[int], Recording]] = {
    **{f"alike, {n} sources": partial(alike, sources=n, sigma=s) for n, s in ((100, 1.6), (30, 1.6), (10, 1.0))},
    "alike, 100 sources, light tails": partial(alike, sources=100, sigma=0.6),
    **{f"batches, {n} sources, {s} s": partial(batches, sources=n, every=s) for n, s in ((6, 8), (2, 60), (16, 3))},
    "batches, 6 sources, 60 s": partial(batches, sources=6, every=60),
    **{f"sparse, {n} sources, {t:.0%}": partial(sparse, sources=n, together=t) for n, t in ((4, 0.2), (4, 0.5))},
    **{f"sparse, {n} sources, {t:.0%}": partial(sparse, sources=n, together=t) for n, t in ((8, 0.2), (2, 0.3))},
    **{f"uneven, {n} sources, {f}": partial(uneven, sources=n, falling=f) for n, f in ((14, 0.45), (14, 0.7))},
    **{f"uneven, {n} sources, {f}": partial(uneven, sources=n, falling=f) for n, f in ((5, 0.45), (40, 0.8))},
    **{f"markets, {n}, {a} ms apart": partial(markets, sources=n, apart=a) for n, a in ((4, 400), (4, 20))},
    **{f"markets, {n}, {a} ms apart": partial(markets, sources=n, apart=a) for n, a in ((12, 100), (4, 0))},
}
"""The families that were known while the policy was made."""
