"""Measure the disorder of a recording: what there is to wait for, before any policy is asked.

- A row is *out of order* when a row with a larger time arrived before it: over all sources, or from its own source.
- Its *lateness* is how far it lies behind that largest time; 0 when it is in order. - Its *delay* is its arrival less
  its time. The smallest delay of a source estimates the offset of its clock: a row cannot travel faster than at once,
  so what is left of the fastest row is the clock (and the road that all rows share). - A *future row* is ahead of the
  clock by more than the others explain: farther beyond their 99 % quantile than ten times the distance from their 1 %
  to their 99 % quantile. Without measured arrivals the i-th smallest time stands in for the clock of the i-th row.

>>> r = Recording.of("two", time=[10, 30, 20, 40], arrival=[11, 31, 32, 41], source=["a", "b", "a", "b"])
>>> d = disorder(r)
>>> d.out_of_order, d.out_of_order_within_sources, d.lateness["max"], d.future_rows
(0.25, 0.0, 10.0, 0)
>>> d.by_source.longest_silence.tolist(), d.by_source.smallest_delay.tolist()
([21, 10], [1, 1])

*One pass.* Running maxima and sorting within each source need no loop over sources. The values of each source are
lifted above all values of the sources before it; then one running maximum, or one sort, over everything never mixes two
sources.

>>> bounds = np.array([0, 3, 5])
>>> running_maximum(np.array([5, 9, 7, 1, 4]), bounds).tolist()
[5, 9, 9, 1, 4]
>>> sorted_within(np.array([5, 9, 7, 4, 1]), bounds).tolist()
[5, 7, 9, 1, 4]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.eventtime.instant import Instants
from eventide.profile.reading import Recording

_ROOM = 2**62


def grouped(labels: NDArray[np.intp], count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """An order that puts rows of one label side by side, else as they were, and the bounds of the labels in it.

    >>> order, bounds = grouped(np.array([1, 0, 1]), 2)
    >>> order.tolist(), bounds.tolist()
    ([1, 0, 2], [0, 1, 3])
    """
    # NumPy sorts 16-bit numbers by counting, ten times as fast as wider ones.
    narrow = labels.astype(np.uint16) if count <= 2**16 else labels
    order = np.argsort(narrow, kind="stable")
    bounds = np.concatenate(([0], np.cumsum(np.bincount(labels, minlength=count))))
    return order, bounds.astype(np.intp)


def running_maximum(values: Instants, bounds: NDArray[np.intp]) -> Instants:
    """The running maximum of values, starting anew at every bound."""
    level, lift, ladder = _lifted(values, bounds)
    return _values(np.maximum.accumulate(level + lift) - lift, ladder)


def sorted_within(values: Instants, bounds: NDArray[np.intp]) -> Instants:
    """The values between any two bounds, sorted."""
    level, lift, ladder = _lifted(values, bounds)
    return _values(np.sort(level + lift) - lift, ladder)


def _lifted(values: Instants, bounds: NDArray[np.intp]) -> tuple[Instants, Instants, int | Instants]:
    """Levels from 0 up, what lifts each source above those before it, and the ladder from levels back to values.

    Levels are the values less the smallest, which is then the ladder. Where these would not fit so many times over,
    levels are ranks, and the ladder holds the value of each rank.
    """
    sources = len(bounds) - 1
    lowest, highest = (int(values.min()), int(values.max())) if len(values) else (0, 0)
    height = highest - lowest + 1
    ladder: int | Instants = lowest
    if height <= _ROOM // max(sources, 1):
        level = values - lowest
    else:
        ladder = np.sort(values)
        level = np.searchsorted(ladder, values)
        height = len(values)
    return level, np.repeat(np.arange(sources) * height, np.diff(bounds)), ladder


def _values(level: Instants, ladder: int | Instants) -> Instants:
    return level + ladder if isinstance(ladder, int) else ladder[level]


QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "max": 1.0}


@dataclass(frozen=True, eq=False)
class BySource:
    """One place per source, in the order of the recording's names; distances in its units."""

    rows: NDArray[np.int64]
    smallest_delay: Instants
    median_delay: NDArray[np.float64]
    out_of_order: NDArray[np.float64]
    longest_silence: Instants
    first_seen: Instants
    last_seen: Instants

    def rate(self, per: int) -> NDArray[np.float64]:
        """Rows of each source in a length of time, from first to last sight; NaN for one seen at a single instant."""
        seen = (self.last_seen - self.first_seen).astype(np.float64)
        rate = np.full(len(seen), np.nan)
        np.divide((self.rows - 1) * float(per), seen, out=rate, where=seen > 0)
        return rate


@dataclass(frozen=True, eq=False)
class Disorder:
    """Shares of rows out of order, quantiles of lateness and delay, and the sources."""

    out_of_order: float
    out_of_order_within_sources: float
    lateness: dict[str, float]
    lateness_within_sources: dict[str, float]
    delay: dict[str, float]
    future_rows: int
    by_source: BySource


def disorder(recording: Recording) -> Disorder:
    """Measure a recording of at least one row."""
    time, arrival = recording.time, recording.arrival
    order, bounds = grouped(recording.source, len(recording.source_names))
    starts = bounds[:-1]
    late = np.maximum.accumulate(time) - time
    delay = arrival - time
    source_time, source_arrival, source_delay = time[order], arrival[order], delay[order]
    late_in_source = running_maximum(source_time, bounds) - source_time
    return Disorder(
        out_of_order=float(np.count_nonzero(late) / len(time)),
        out_of_order_within_sources=float(np.count_nonzero(late_in_source) / len(time)),
        lateness=_quantiles(late),
        lateness_within_sources=_quantiles(late_in_source),
        delay={"min": float(delay.min()), **_quantiles(delay)},
        future_rows=int(np.count_nonzero(future_rows(recording))),
        by_source=BySource(
            rows=np.diff(bounds).astype(np.int64),
            smallest_delay=np.minimum.reduceat(source_delay, starts),
            median_delay=_medians(source_delay, bounds),
            out_of_order=np.add.reduceat((late_in_source > 0).astype(np.float64), starts) / np.diff(bounds),
            longest_silence=_longest_silence(source_arrival, starts),
            first_seen=source_arrival[starts],
            last_seen=source_arrival[bounds[1:] - 1],
        ),
    )


def future_rows(recording: Recording) -> NDArray[np.bool_]:
    """Which rows are ahead of the clock by more than the others explain.

    >>> times = [*range(100), 10_000, *range(100, 200)]
    >>> no_clock = Recording.of("r", times, np.maximum.accumulate(times), ["a"] * 201)
    >>> np.flatnonzero(future_rows(no_clock)).tolist()
    [100]
    """
    time = recording.time
    clock = recording.arrival
    if np.array_equal(clock, np.maximum.accumulate(time)):
        clock = np.sort(time)
    ahead = time - clock
    ordered = np.sort(ahead)
    low, high = (int(ordered[int(share * (len(ahead) - 1))]) for share in (0.01, 0.99))
    return ahead > high + 10 * max(high - low, 1)


def _quantiles(values: Instants) -> dict[str, float]:
    ordered = np.sort(values)
    return {name: float(ordered[int(share * (len(values) - 1))]) for name, share in QUANTILES.items()}


def _medians(values: Instants, bounds: NDArray[np.intp]) -> NDArray[np.float64]:
    ordered, rows = sorted_within(values, bounds), np.diff(bounds)
    lower, upper = ordered[bounds[:-1] + (rows - 1) // 2], ordered[bounds[:-1] + rows // 2]
    medians: NDArray[np.float64] = lower + (upper - lower) / 2
    return medians


def _longest_silence(arrival: Instants, starts: NDArray[np.intp]) -> Instants:
    gap = np.diff(arrival, prepend=arrival[:1])
    gap[starts] = 0
    return np.maximum.reduceat(gap, starts)
