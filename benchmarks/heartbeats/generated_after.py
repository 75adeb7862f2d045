"""Generated streams of ten families, two sizes of each: written after the policy was frozen.

Nothing of the policy was changed for them. `generated.py` and `generated_further.py` have the families known before.

>>> recording = AFTER["duty cycles, 200 sensors"](1)
>>> recording.rows, len(recording.source_names)
(8000, 200)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np

from benchmarks.heartbeats.generated import ROWS
from eventide.profile.reading import Recording
from eventide.testing.streams import MILLISECOND, SECOND, arrived, emissions, exponential, in_order


def passes(seed: int, sources: int, every: int) -> Recording:
    """Buoys that a satellite reaches for a tenth of each orbit: what they kept comes at once, in order."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=ROWS, seconds=200_000, sources=sources)
    orbit = every * SECOND
    within = (time - rng.integers(0, orbit, sources)[source]) % orbit
    wait = np.where(within < orbit // 10, 0, orbit - within)
    arrival = time + wait + exponential(rng, 500.0 * MILLISECOND, ROWS)
    return arrived("passes", time, in_order(source, time, arrival), source)


def paths(seed: int, sources: int, slow: float) -> Recording:
    """Each source changes between a fast and a slow path every hundred rows or so."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=ROWS, seconds=4_000, sources=sources)
    changes = np.cumsum(rng.random(ROWS) < 0.01 * sources)
    on_slow = (changes + source) % 2 == 1
    mean = np.where(on_slow, slow, 0.1) * SECOND
    return arrived("paths", time, time + exponential(rng, mean, ROWS), source)


def lanes(seed: int, sources: int, share: float) -> Recording:
    """A share of the rows has low priority, and takes thirty times as long."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=ROWS, seconds=4_000, sources=sources)
    mean = np.where(rng.random(ROWS) < share, 6_000.0, 200.0) * MILLISECOND
    return arrived("lanes", time, time + exponential(rng, mean, ROWS), source)


def corrected(seed: int, sources: int, walk: int) -> Recording:
    """Meters that read every second, whose clocks wander and are set right now and then."""
    rng = np.random.default_rng(seed)
    ticks = ROWS // sources
    source = np.tile(np.arange(sources, dtype=np.intp), ticks)
    time = np.repeat(np.arange(ticks, dtype=np.int64), sources) * SECOND + rng.integers(0, SECOND, sources)[source]
    steps = rng.normal(0, walk, (ticks, sources)) * MILLISECOND
    off = np.cumsum(steps, axis=0) - np.cumsum(steps, axis=0)[(np.arange(ticks) // 300) * 300]
    arrival = in_order(source, time, time + exponential(rng, 60.0 * MILLISECOND, len(time)))
    return arrived("corrected", time + off.ravel().astype(np.int64), arrival, source)


def duty_cycles(seed: int, sensors: int, every: int) -> Recording:
    """Sensors that wake up, send four readings of the last seconds, and sleep."""
    rng = np.random.default_rng(seed)
    wakes = ROWS // sensors // 4
    sensor = np.repeat(np.arange(sensors, dtype=np.intp), wakes * 4)
    wake = (
        np.tile(np.repeat(np.arange(wakes), 4), sensors) * every * SECOND
        + rng.integers(0, every, sensors)[sensor] * SECOND
    )
    time = wake - np.tile(np.arange(3, -1, -1), wakes * sensors) * SECOND
    return arrived("duty_cycles", time, wake + exponential(rng, 2.0 * SECOND, len(time)), sensor)


def shippers(seed: int, hosts: int, flush: int) -> Recording:
    """Shippers of logs that send after some seconds, or when fifty lines have come."""
    rng = np.random.default_rng(seed)
    time, host = emissions(rng, rows=ROWS, seconds=2_000, sources=hosts)
    arrival = np.empty_like(time)
    for one in range(hosts):
        rows = np.flatnonzero(host == one)
        batch = np.cumsum(np.diff(time[rows] // (flush * SECOND), prepend=0) > 0) * 1_000 + np.arange(len(rows)) // 50
        last = np.searchsorted(batch, batch, side="right") - 1
        arrival[rows] = np.maximum(time[rows[last]], time[rows])
    arrival += exponential(rng, 50.0 * MILLISECOND, ROWS)
    return arrived("shippers", time, in_order(host, time, arrival), host)


def rush(seed: int, sources: int, peak: float) -> Recording:
    """A day with rush hours: the more rows there are, the longer each of them takes."""
    rng = np.random.default_rng(seed)
    uniform = np.sort(rng.random(ROWS))
    hours = np.interp(uniform, [0, 0.05, 0.45, 0.55, 0.95, 1], [0, 7, 9, 16, 18, 24])
    time = (hours * 3_600 * SECOND).astype(np.int64)
    load = np.where(((hours > 7) & (hours < 9)) | ((hours > 16) & (hours < 18)), peak, 1.0)
    source = rng.integers(0, sources, ROWS).astype(np.intp)
    return arrived("rush", time, time + exponential(rng, load * SECOND, ROWS), source)


def regions(seed: int, sources: int, lost: float) -> Recording:
    """Half of the sources are a continent away, and packets are lost in bursts and sent again."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=ROWS, seconds=1_000, sources=sources)
    bursty = rng.random(1_001)[time // SECOND] < lost
    again = (bursty & (rng.random(ROWS) < 0.5)) * SECOND
    arrival = time + (source % 2) * 150 * MILLISECOND + again + exponential(rng, 10.0 * MILLISECOND, ROWS)
    return arrived("regions", time, arrival, source)


def flapping(seed: int, sources: int, seconds: int) -> Recording:
    """One source goes up and down, and is fresh when it is back."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=2 * ROWS, seconds=6_000, sources=sources)
    edges = np.cumsum(rng.exponential(seconds, 6_000 // seconds * 3)) * SECOND
    up = (source > 0) | (np.searchsorted(edges, time) % 2 == 0)
    time, source = time[up][:ROWS], source[up][:ROWS]
    return arrived("flapping", time, time + exponential(rng, 150.0 * MILLISECOND, len(time)), source)


def coarse(seed: int, sources: int, coarse_ones: int) -> Recording:
    """Some sources write whole seconds, the others milliseconds."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=ROWS, seconds=1_000, sources=sources)
    arrival = in_order(source, time, time + exponential(rng, 300.0 * MILLISECOND, ROWS))
    return arrived("coarse", np.where(source < coarse_ones, time // SECOND * SECOND, time), arrival, source)


AFTER: Mapping[str, Callable[[int], Recording]] = {
    **{f"passes, {n} buoys": partial(passes, sources=n, every=e) for n, e in ((10, 6_000), (60, 3_000))},
    **{f"paths, {n} sources": partial(paths, sources=n, slow=s) for n, s in ((5, 3.0), (40, 1.0))},
    **{f"lanes, {n} sources": partial(lanes, sources=n, share=s) for n, s in ((20, 0.05), (4, 0.004))},
    **{f"corrected, {n} meters": partial(corrected, sources=n, walk=w) for n, w in ((8, 5), (40, 20))},
    **{f"duty cycles, {n} sensors": partial(duty_cycles, sensors=n, every=e) for n, e in ((200, 600), (20, 60))},
    **{f"shippers, {n} hosts": partial(shippers, hosts=n, flush=f) for n, f in ((6, 5), (50, 20))},
    **{f"rush, {n} sources": partial(rush, sources=n, peak=p) for n, p in ((10, 20.0), (100, 5.0))},
    **{f"regions, {n} sources": partial(regions, sources=n, lost=p) for n, p in ((8, 0.03), (60, 0.01))},
    **{f"flapping, {n} sources": partial(flapping, sources=n, seconds=s) for n, s in ((8, 60), (3, 300))},
    **{f"coarse, {n} sources": partial(coarse, sources=n, coarse_ones=c) for n, c in ((6, 2), (30, 1))},
}
"""The families that were written when the policy was frozen."""
