"""Streams that are hard because of their sources: clocks that disagree, backlogs, silences, newcomers, crowds.

>>> many_sources(seed=1).rows, len(rare_speakers(seed=1).source_names)
(50000, 202)
"""

from __future__ import annotations

import numpy as np

from eventide.eventtime.instant import Instants
from eventide.profile.recording import Recording
from eventide.testing.building import MILLISECOND, SECOND, arrived, emissions, exponential, in_order


def backlog(seed: int) -> Recording:
    """One of five collectors falls behind: its delay grows to 60 s over a third of the run, then drains."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=40_000, seconds=600, sources=5)
    behind = np.interp(time / SECOND, [100, 300, 400], [0, 60, 0]) * SECOND * (source == 0)
    arrival = time + behind.astype(np.int64) + exponential(rng, 20.0 * MILLISECOND, len(time))
    return arrived("backlog", time, in_order(source, time, arrival), source)


def clock_jump(seed: int) -> Recording:
    """Two clocks are set in the middle of the run: one source jumps 30 s ahead, another 30 s back."""
    rng = np.random.default_rng(seed)
    true_time, source = emissions(rng, rows=40_000, seconds=600, sources=10)
    arrival = in_order(source, true_time, true_time + exponential(rng, 50.0 * MILLISECOND, len(true_time)))
    jump = np.zeros(10, dtype=np.int64)
    jump[:2] = 30 * SECOND, -30 * SECOND
    stamped = true_time + jump[source] * (true_time >= 300 * SECOND)
    return arrived("clock_jump", stamped, arrival, source)


def clock_offsets(seed: int) -> Recording:
    """Devices without time service: each clock is off by up to 8 s, ahead or behind, and stays so."""
    rng = np.random.default_rng(seed)
    true_time, source = emissions(rng, rows=40_000, seconds=600, sources=20)
    arrival = in_order(source, true_time, true_time + exponential(rng, 100.0 * MILLISECOND, len(true_time)))
    offset = rng.integers(-8 * SECOND, 8 * SECOND, 20)
    return arrived("clock_offsets", true_time + offset[source], arrival, source)


def silent_half(seed: int) -> Recording:
    """A power cut: half of the sources stop for a third of the run and come back with fresh rows."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=48_000, seconds=600, sources=10)
    speaks = ~((source < 5) & (time >= 200 * SECOND) & (time < 400 * SECOND))
    time, source = time[speaks], source[speaks]
    arrival = in_order(source, time, time + exponential(rng, 200.0 * MILLISECOND, len(time)))
    return arrived("silent_half", time, arrival, source)


def outage_and_flush(seed: int) -> Recording:
    """A device loses its link for 45 s every two minutes, then sends the 1,300 rows it kept, at once and in order."""
    rng = np.random.default_rng(seed)
    seconds, kept_rows, outage = 480, 1_300, 45
    time, source = emissions(rng, rows=30_000, seconds=seconds, sources=4)
    arrival = time + exponential(rng, 50.0 * MILLISECOND, len(time))
    cut_off = (source == 0) & (time % (120 * SECOND) >= 60 * SECOND) & (time % (120 * SECOND) < 105 * SECOND)
    cuts = np.arange(60, seconds, 120) * SECOND
    kept = np.concatenate([cut + np.sort(rng.integers(0, outage * SECOND, kept_rows)) for cut in cuts])
    flushed = np.repeat(cuts + outage * SECOND, kept_rows)
    all_time = np.concatenate((time[~cut_off], kept))
    all_source = np.concatenate((source[~cut_off], np.zeros(len(kept), dtype=np.intp)))
    all_arrival = np.concatenate((arrival[~cut_off], flushed))
    return arrived("outage_and_flush", all_time, in_order(all_source, all_time, all_arrival), all_source)


def _with_rows_ahead(name: str, seed: int, ahead: Instants, every: int) -> Recording:
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=30_000, seconds=600, sources=6)
    arrival = in_order(source, time, time + exponential(rng, 100.0 * MILLISECOND, len(time)))
    stamped = time.copy()
    stamped[every // 2 :: every][: len(ahead)] += ahead
    return arrived(name, stamped, arrival, source)


def future_row(seed: int) -> Recording:
    """One row from a device whose clock was never set: stamped ten years ahead."""
    ten_years = np.array([10 * 365 * 86_400 * SECOND])
    return _with_rows_ahead("future_row", seed, ten_years, every=30_000)


def future_rows(seed: int) -> Recording:
    """A wrong time zone now and then: one row in 5,000 is stamped 1 to 12 hours ahead."""
    hours = np.random.default_rng(seed + 1).integers(1, 12, 6, endpoint=True)
    return _with_rows_ahead("future_rows", seed, hours * 3_600 * SECOND, every=5_000)


def new_sources(seed: int) -> Recording:
    """A growing fleet: 200 devices join all through the run, each with its own mean delay."""
    rng = np.random.default_rng(seed)
    source = rng.integers(0, 200, 40_000).astype(np.intp)
    joins = rng.uniform(0, 540, 200) * SECOND
    time = (joins[source] + rng.uniform(0, 1, len(source)) * (600 * SECOND - joins[source])).astype(np.int64)
    mean = np.exp(rng.uniform(np.log(30), np.log(1_000), 200)) * MILLISECOND
    return arrived("new_sources", time, time + exponential(rng, mean[source], len(time)), source)


def rare_speakers(seed: int) -> Recording:
    """Two busy gateways and 200 devices that report every 200 s or so: in order, with small delays."""
    rng = np.random.default_rng(seed)
    busy, busy_source = emissions(rng, rows=32_000, seconds=2_000, sources=2)
    rare, rare_source = emissions(rng, rows=2_000, seconds=2_000, sources=200)
    time, source = np.concatenate((busy, rare)), np.concatenate((busy_source, rare_source + 2))
    arrival = in_order(source, time, time + exponential(rng, 50.0 * MILLISECOND, len(time)))
    return arrived("rare_speakers", time, arrival, source)


def single_in_order(seed: int) -> Recording:
    """The easy one: a single source, in perfect order, 5 ms away."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=20_000, seconds=400, sources=1)
    return arrived("in_order", time, time + 5 * MILLISECOND, source)


def simultaneous(seed: int) -> Recording:
    """A log that writes whole seconds: hundreds of rows share one time."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=40_000, seconds=150, sources=5)
    arrival = time + exponential(rng, 400.0 * MILLISECOND, len(time))
    return arrived("simultaneous", time // SECOND * SECOND, arrival, source)


def periodic(seed: int) -> Recording:
    """Twenty sensors on a timer, a row exactly every 500 ms each, over a network with normal jitter."""
    rng = np.random.default_rng(seed)
    source = np.tile(np.arange(20, dtype=np.intp), 2_000)
    phase = rng.integers(0, 500 * MILLISECOND, 20)
    time = np.repeat(np.arange(2_000, dtype=np.int64) * 500 * MILLISECOND, 20) + phase[source]
    delay = np.maximum(0.0, rng.normal(800.0, 300.0, len(time))) * MILLISECOND
    return arrived("periodic", time, time + delay.astype(np.int64), source)


def batch_upload(seed: int) -> Recording:
    """Devices that save power: each uploads its rows of the last minute once a minute, at its own second."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=40_000, seconds=1_200, sources=12)
    phase = (rng.integers(0, 60 * SECOND, 12))[source]
    uploaded = ((time - phase) // (60 * SECOND) + 1) * (60 * SECOND) + phase
    return arrived("batch_upload", time, uploaded, source)


def reordered_batches(seed: int) -> Recording:
    """Collectors that ship files of 500 rows and read them from the back: every file arrives in reverse."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=40_000, seconds=1_200, sources=4)
    arrival = np.empty_like(time)
    for collector in range(4):
        rows = np.flatnonzero(source == collector)
        place = np.arange(len(rows))
        last_of_file = np.minimum(place // 500 * 500 + 499, len(rows) - 1)
        # A microsecond for each row that is read before it.
        arrival[rows] = time[rows[last_of_file]] + (last_of_file - place)
    return arrived("reordered_batches", time, arrival, source)


def many_sources(seed: int) -> Recording:
    """A city of meters: 2,000 sources, about 25 rows from each."""
    rng = np.random.default_rng(seed)
    time, source = emissions(rng, rows=50_000, seconds=600, sources=2_000)
    return arrived("many_sources", time, time + exponential(rng, 300.0 * MILLISECOND, len(time)), source)
