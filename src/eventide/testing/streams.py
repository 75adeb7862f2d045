"""Generated streams that are hard, and the moves from which they are built: the same seed gives the same recording.

A generator first says when rows happen (`time`, microseconds from the start of the run) and from which source, then how
long each one travels. `arrived` puts the rows in the order of their arrival, as whoever records them would see them.
Some are hard because of how long rows travel: steps, drifts, tails, bursts, retries. Others because of their sources:
clocks that disagree, backlogs, silences, newcomers, crowds. `HARD_CASES` has them all by name. Times and arrivals are
microseconds, except in `sequence`, where both are plain numbers.

>>> HARD_CASES["backlog"](0).rows
40000
>>> sorted(HARD_CASES)[:4]
['alternating', 'backlog', 'batch_upload', 'bursts']

>>> rng = np.random.default_rng(7)
>>> time, source = emissions(rng, rows=4, seconds=2, sources=2)
>>> bool((np.diff(time) >= 0).all()), bool((source < 2).all())
(True, True)
>>> arrived("two rows", np.array([0, 5]), np.array([9, 6]), np.array([0, 1])).source_names
('1', '0')

>>> uniform_shuffle(seed=1).rows
30000
>>> heavy_tail(seed=1).time[0] == heavy_tail(seed=1).time[0]
np.True_

>>> many_sources(seed=1).rows, len(rare_speakers(seed=1).source_names)
(50000, 202)
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.instant import Instants
from eventide.profile.reading import Recording

MILLISECOND = 1_000
SECOND = 1_000_000
START = 1_700_000_000 * SECOND
"""The instant at which generated runs begin, so that times look like real ones."""


def emissions(rng: np.random.Generator, rows: int, seconds: float, sources: int) -> tuple[Instants, NDArray[np.intp]]:
    """Rows that happen independently over the run, each in one of equally busy sources: times ascending, and sources.

    >>> emissions(np.random.default_rng(0), rows=100, seconds=1, sources=1)[1].max()
    np.int64(0)
    """
    time = np.sort(rng.uniform(0, seconds * SECOND, rows)).astype(np.int64)
    return time, rng.integers(0, sources, rows).astype(np.intp)


def exponential(rng: np.random.Generator, mean: NDArray[np.float64] | float, rows: int) -> Instants:
    """Memoryless delays with the given mean (microseconds), one mean for all rows or one per row.

    >>> exponential(np.random.default_rng(0), 1e6, 1000).mean().round(-5)
    np.float64(1000000.0)
    """
    return (rng.exponential(1.0, rows) * mean).astype(np.int64)


def in_order(source: NDArray[np.intp], time: Instants, arrival: Instants) -> Instants:
    """Arrivals over order-preserving connections: no row overtakes an earlier row of its own source.

    >>> in_order(np.array([0, 0, 1]), np.array([1, 2, 3]), np.array([9, 5, 4])).tolist()
    [9, 9, 4]
    """
    order = np.lexsort((time, source))
    # A running maximum restarts at each source when every source is lifted above all the sources before it.
    lift = source[order] * (int(arrival.max()) - int(arrival.min()) + 1)
    held = np.empty_like(arrival)
    held[order] = np.maximum.accumulate(arrival[order] + lift) - lift
    return held


def arrived(name: str, time: Instants, arrival: Instants, source: NDArray[np.intp]) -> Recording:
    """The recording of these rows, by arrival; rows that arrive together keep the order of their times.

    >>> arrived("x", np.array([3, 1]), np.array([4, 4]), np.array([0, 0])).time.tolist() == [START + 1, START + 3]
    True
    """
    order = np.lexsort((time, arrival))
    return Recording.of(name, time[order] + START, arrival[order] + START, source[order])


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


HARD_CASES: dict[str, Callable[[int], Recording]] = {
    "backlog": backlog,
    "delay_step": delay_step,
    "delay_step_down": delay_step_down,
    "drifting_delay": drifting_delay,
    "clock_jump": clock_jump,
    "clock_offsets": clock_offsets,
    "silent_half": silent_half,
    "outage_and_flush": outage_and_flush,
    "heavy_tail": heavy_tail,
    "bursts": bursts,
    "future_row": future_row,
    "future_rows": future_rows,
    "new_sources": new_sources,
    "rare_speakers": rare_speakers,
    "in_order": single_in_order,
    "simultaneous": simultaneous,
    "periodic": periodic,
    "lognormal_network": lognormal_network,
    "alternating": alternating,
    "uniform_shuffle": uniform_shuffle,
    "batch_upload": batch_upload,
    "many_sources": many_sources,
    "growing_disorder": growing_disorder,
    "duplicates": duplicates,
    "reordered_batches": reordered_batches,
    "sequence": sequence,
}
