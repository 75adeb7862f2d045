"""Generated streams of five further families, four sizes of each, which were also known while the policy was made.

>>> recording = FURTHER["relay, 12 sources, 30 s"](1)
>>> recording.rows, len(recording.source_names)
(8000, 12)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from benchmarks.heartbeats.generated import ROWS
from eventide.profile.reading import Recording
from eventide.testing.streams import MILLISECOND, SECOND, arrived, emissions, exponential, in_order


def mixed(seed: int, phones: int, loggers: int) -> Recording:
    """Phones that speak every second, in order, beside loggers whose rows are disordered by half a minute."""
    rng = np.random.default_rng(seed)
    seconds = ROWS // (phones + loggers)
    tick = np.repeat(np.arange(seconds), phones) * SECOND
    phone = np.tile(np.arange(phones), seconds)
    time = tick + rng.integers(0, SECOND, phones)[phone]
    fast = in_order(phone, time, time + exponential(rng, 80.0 * MILLISECOND, len(time)))
    logged, logger = emissions(rng, rows=seconds * loggers, seconds=seconds, sources=loggers)
    slow = logged + exponential(rng, 8.0 * SECOND, len(logged))
    return arrived(
        "mixed",
        np.concatenate((time, logged)),
        np.concatenate((fast, slow)),
        np.concatenate((phone, logger + phones)),
    )


def relay(seed: int, sources: int, swing: int) -> Recording:
    """Three gateways whose queues swell and drain in turn; their sources stay in order."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=ROWS, seconds=4_000, sources=sources)
    phase = (source % 3) * 2 * np.pi / 3
    queue = np.maximum(np.sin(time / (600.0 * SECOND) * 2 * np.pi + phase), 0) * swing * SECOND
    arrival = time + queue.astype(np.int64) + exponential(rng, 100.0 * MILLISECOND, ROWS)
    return arrived("relay", time, in_order(source, time, arrival), source)


def shifts(seed: int, sources: int, silent: int) -> Recording:
    """Machines that work in shifts: silent for minutes in turn, then back with fresh rows, a little disordered."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=2 * ROWS, seconds=6_000, sources=sources)
    working = ((time // SECOND + source * 97) % (2 * silent)) < silent
    time, source = time[working][:ROWS], source[working][:ROWS]
    return arrived("shifts", time, time + exponential(rng, 500.0 * MILLISECOND, len(time)), source)


def resent(seed: int, sources: int, share: float) -> Recording:
    """A lossy link: a share of the rows is sent again after a time-out of 20 s, the others come at once."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=ROWS, seconds=4_000, sources=sources)
    again = (rng.random(ROWS) < share) * 20 * SECOND
    return arrived("resent", time, time + again + exponential(rng, 50.0 * MILLISECOND, ROWS), source)


def drifting(seed: int, sources: int, per_hour: int) -> Recording:
    """Clocks that drift apart, each at its own pace, and are set right every half hour; all in order."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=ROWS, seconds=8_000, sources=sources)
    pace = rng.uniform(-1, 1, sources)[source] * per_hour / 3_600
    arrival = in_order(source, time, time + exponential(rng, 40.0 * MILLISECOND, ROWS))
    return arrived("drifting", time + ((time % (1_800 * SECOND)) * pace).astype(np.int64), arrival, source)


FURTHER: Mapping[str, Callable[[int], Recording]] = {
    **{f"mixed, {p} and {n}": partial(mixed, phones=p, loggers=n) for p, n in ((8, 8), (30, 2), (2, 14), (4, 1))},
    **{f"relay, {n} sources, {s} s": partial(relay, sources=n, swing=s) for n, s in ((12, 30), (3, 30))},
    **{f"relay, {n} sources, {s} s": partial(relay, sources=n, swing=s) for n, s in ((60, 10), (6, 120))},
    **{f"shifts, {n} sources, {s} s": partial(shifts, sources=n, silent=s) for n, s in ((10, 300), (40, 300))},
    **{f"shifts, {n} sources, {s} s": partial(shifts, sources=n, silent=s) for n, s in ((10, 60), (4, 900))},
    **{f"resent, {n} sources, {s:.1%}": partial(resent, sources=n, share=s) for n, s in ((10, 0.005), (10, 0.02))},
    **{f"resent, {n} sources, {s:.1%}": partial(resent, sources=n, share=s) for n, s in ((100, 0.005), (1, 0.02))},
    **{f"drifting, {n}, {s} s/h": partial(drifting, sources=n, per_hour=s) for n, s in ((5, 1), (5, 10))},
    **{f"drifting, {n}, {s} s/h": partial(drifting, sources=n, per_hour=s) for n, s in ((20, 1), (2, 5))},
}
"""Further families that were known while the policy was made."""
