"""The systems that the papers argue with, as generators: a run, and what its operator would declare about it.

`counter_system` and `sensor_system` are the two examples of STREAM (Srivastava and Widom, section 4): every row they
generate keeps the declared bounds. `kim_experiment` is the stream of Kim et al., section 6. Declared values are tuples
with one place per source, in the numbering of the recording.

>>> system = counter_system(seed=0, sources=3, rows=300)
>>> len(system.fastest) == len(system.slowest) == len(system.latency) == len(system.recording.source_names) == 3
True
>>> sensor_system(seed=0, sources=4, seconds=10).minimum_rate
1
>>> kim_experiment(seed=0).rows
24000
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from eventide.profile.reading import Recording
from eventide.testing.streams import MILLISECOND, SECOND, START, arrived, emissions, in_order


@dataclass(frozen=True, eq=False)
class CounterSystem:
    """Sources that stamp rows with tokens of one global counter (STREAM 4.1).

    Times are token numbers, so application time and the clock have different units. `fastest` and `slowest` bound how
    long a source works on one token, `latency` how long its rows travel, all in microseconds of the clock. Rows of one
    source do not overtake each other.

    >>> bool((np.diff(np.sort(counter_system(seed=1, sources=2, rows=50).recording.time)) == 1).all())
    True
    """

    recording: Recording
    fastest: tuple[int, ...]
    slowest: tuple[int, ...]
    latency: tuple[int, ...]


@dataclass(frozen=True, eq=False)
class SensorSystem:
    """Sensors that stamp rows with their own clock, set right now and then (STREAM 4.2).

    `deviation` bounds how far a sensor's clock is off, `latency` how long its rows travel (both microseconds); the
    application clock advances by at least `minimum_rate` per unit of the wall clock.

    >>> max(sensor_system(seed=1, sources=3, seconds=5).deviation) <= 2 * SECOND
    True
    """

    recording: Recording
    deviation: tuple[int, ...]
    minimum_rate: int
    latency: tuple[int, ...]


def counter_system(seed: int, sources: int = 5, rows: int = 20_000) -> CounterSystem:
    """Workers that fetch a token, work on it for 1 to 400 ms (mostly briefly), send it on, and rest: some for seconds.

    >>> counter_system(seed=2, rows=1_000).recording.rows
    1000
    """
    rng = np.random.default_rng(seed)
    fastest = rng.integers(1, 5, sources) * MILLISECOND
    slowest = fastest + rng.integers(50, 400, sources) * MILLISECOND
    latency = rng.integers(5, 50, sources) * MILLISECOND
    # The cube keeps most tokens quick and a few nearly as slow as allowed: the case delayed guarantees are made for.
    work = fastest + ((slowest - fastest) * rng.uniform(0, 1, (rows, sources)) ** 3).astype(np.int64)
    usual_rest = np.exp(rng.uniform(np.log(20), np.log(5_000), sources)) * MILLISECOND
    rest = (rng.exponential(1.0, (rows, sources)) * usual_rest).astype(np.int64)
    emitted = np.cumsum(rest + work, axis=0)
    fetched = (emitted - work).ravel()
    # The counter serves requests in the order of the clock; each worker fetched enough tokens to fill the run alone.
    first = np.argsort(fetched, kind="stable")[:rows]
    source = (first % sources).astype(np.intp)
    token = np.arange(rows, dtype=np.int64)
    sent = emitted.ravel()[first]
    reached = in_order(source, token, sent + rng.integers(0, latency[source] + 1))
    order = np.lexsort((token, reached))
    recording = Recording.of("global counter", token[order], reached[order] + START, source[order])
    return CounterSystem(
        recording,
        _as_numbered(recording, fastest),
        _as_numbered(recording, slowest),
        _as_numbered(recording, latency),
    )


def sensor_system(seed: int, sources: int = 20, seconds: int = 600) -> SensorSystem:
    """Sensors with clocks that drift ahead or behind until the next synchronisation, a row a second each on average.

    >>> sensor_system(seed=2, sources=3, seconds=20).recording.rows
    60
    """
    rng = np.random.default_rng(seed)
    true_time, source = emissions(rng, rows=sources * seconds, seconds=seconds, sources=sources)
    deviation = rng.integers(100 * MILLISECOND, 2 * SECOND, sources)
    latency = rng.integers(50 * MILLISECOND, 500 * MILLISECOND, sources)
    every = rng.integers(20 * SECOND, 60 * SECOND, sources)
    ahead = rng.choice([-1, 1], sources)
    # Off by 95 % of the declared deviation before it is set right: declared bounds are strict, clocks keep a reserve.
    off = 0.95 * deviation[source] * ((true_time % every[source]) / every[source]) * ahead[source]
    arrival = true_time + rng.integers(0, latency[source] + 1)
    recording = arrived("distributed sensors", true_time + off.astype(np.int64), arrival, source)
    return SensorSystem(recording, _as_numbered(recording, deviation), 1, _as_numbered(recording, latency))


def kim_experiment(
    seed: int,
    sensors: int = 20,
    seconds: int = 1_200,
    mean_delay: int = 500 * MILLISECOND,
    delay_deviation: int = 150 * MILLISECOND,
) -> Recording:
    """Sensors that each send a row every second, over a network whose latency is normal.

    The paper gives the 20 sensors and the second; it does not print the latency it had. Half a second with a deviation
    of 150 ms makes about three rows pass each other, as its small buffers suggest. The sensors start at random within
    the first second, so the gaps between rows of the whole stream are irregular.

    >>> len(kim_experiment(seed=0, sensors=4, seconds=10).source_names)
    4
    """
    rng = np.random.default_rng(seed)
    source = np.tile(np.arange(sensors, dtype=np.intp), seconds)
    phase = rng.integers(0, SECOND, sensors)
    time = np.repeat(np.arange(seconds, dtype=np.int64) * SECOND, sensors) + phase[source]
    delay = np.maximum(0.0, rng.normal(mean_delay, delay_deviation, len(time)))
    return arrived(f"{sensors} sensors a second", time, time + delay.astype(np.int64), source)


def _as_numbered(recording: Recording, by_name: NDArray[np.int64]) -> tuple[int, ...]:
    """Values of sources "0", "1", ... in the order in which the recording numbers them."""
    return tuple(int(by_name[int(name)]) for name in recording.source_names)
