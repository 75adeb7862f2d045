"""Streams as the prodding thesis makes them, with the moments at which rows and promises arrive.

Law: a promise (the thesis' punctuation) for the end of a slide arrives when every row before that end has arrived, and
not before the end itself; so the streams are grammatical and no row is late.

>>> stream = generated(30, seed=1)
>>> bool((stream.arrivals >= stream.times).all())
True
>>> stream.promises(10 * SECOND)[0][1] == 10 * SECOND - 1
True
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import REPOSITORY

FOLDER = REPOSITORY.parent / "shared" / "data"
SECOND = 1_000_000
Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Recorded:
    """Rows with their times, values and arrivals, in the order of arrival."""

    times: Whole
    values: NDArray[np.float64]
    arrivals: Whole

    @classmethod
    def of(cls, times: Whole, values: NDArray[np.float64], arrivals: Whole) -> Recorded:
        """Sorted by arrival."""
        order = np.argsort(arrivals, kind="stable")
        return cls(times[order], values[order], arrivals[order])

    def promises(self, slide: int) -> list[tuple[int, int]]:
        """When each end of a slide is known to be reached, and the heartbeat that says so."""
        ends = np.arange(slide, int(self.times.max()) + slide + 1, slide, dtype=np.int64)
        order = np.argsort(self.times, kind="stable")
        latest = np.maximum.accumulate(self.arrivals[order])
        rows = np.searchsorted(self.times[order], ends)
        moments = np.maximum(np.where(rows > 0, latest[np.maximum(rows, 1) - 1], 0), ends)
        # A punctuation travels with the data: it cannot overtake the one before it.
        return [(int(moment), int(end) - 1) for moment, end in zip(np.maximum.accumulate(moments), ends, strict=True)]


def generated(
    seconds: int, seed: int, spread: float | None = None, density: float = 0.95, delay: float = 0.5
) -> Recorded:
    """Section 4.4: the next row is of the same second with probability `density`, else of the next one.

    Values are uniform from 0 to 999, or normal around 500 with that `spread`; a row is up to `delay` seconds late.
    """
    rng = np.random.default_rng(seed)
    count = round(seconds / (1 - density))
    times = np.cumsum(rng.random(count) >= density).astype(np.int64) * SECOND
    times = times[times < seconds * SECOND]
    size = len(times)
    values = rng.uniform(0, 999, size) if spread is None else rng.normal(500, spread, size)
    return Recorded.of(times, values, times + rng.integers(0, round(delay * SECOND), size))


def bursty(seconds: int, seed: int, per_second: float = 1 / 200) -> Recorded:
    """Section 4.3.2: 0 to 300 rows in a second, 400 to 800 in a burst of some seconds, through an expensive operator.

    The operator takes `per_second` seconds for each row, so that bursts wait in its queue; a row arrives in the query
    when the operator is done with it. Counters go up in short runs.
    """
    rng = np.random.default_rng(seed)
    calm = rng.integers(40, 190, seconds)
    bursts = np.zeros(seconds, dtype=bool)
    for start in range(25, seconds, 35):
        bursts[start : start + int(rng.integers(1, 5))] = True
    counts = np.where(bursts, rng.integers(400, 800, seconds), calm)
    times = np.repeat(np.arange(seconds, dtype=np.int64) * SECOND, counts)
    times = np.sort(times + rng.integers(0, SECOND, len(times)))
    service = round(per_second * SECOND)
    # A queue with one server: done[i] = max(arrived[i], done[i - 1]) + service.
    place = np.arange(len(times), dtype=np.int64)
    done = np.maximum.accumulate(times - place * service) + (place + 1) * service
    runs = rng.integers(0, 1000, len(times) // 8 + 1)
    counter = np.repeat(runs, 8)[: len(times)] + place % 8 * rng.integers(0, 12, len(times))
    return Recorded.of(times, counter.astype(np.float64), done)


def freeway(hours: int = 48, seed: int = 5, folder: Path = FOLDER) -> Recorded | None:
    """The busiest detector of a real freeway: a row every 20 s, delivered up to 20 s late, as in section 4.3.1.

    None without the recording, which is not part of the repository.
    """
    path = folder / "freeway_loops.csv.gz"
    if not path.exists():
        return None
    found = (
        duckdb.connect()
        .execute(
            """
            with loops as (select source, event_time_ms * 1000 as time, volume from read_csv(?))
            select time - min(time) over () as time, volume from loops
            where source = (select source from loops group by source order by count(*) desc, source limit 1)
            """,
            [str(path)],
        )
        .fetchnumpy()
    )
    times = np.asarray(found["time"], dtype=np.int64)
    within = times < hours * 3600 * SECOND
    times = times[within]
    delays = np.random.default_rng(seed).integers(0, 20 * SECOND, len(times))
    return Recorded.of(times, np.asarray(found["volume"], dtype=np.float64)[within], times + delays)
