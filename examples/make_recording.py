"""Write a recording whose disorder is known, to see what `eventide profile` finds in it.

    python examples/make_recording.py out/demo.parquet

Twelve devices report for an hour, about 200,000 rows in the order of their arrival:

| device             | what is odd about it                                                             |
|--------------------|----------------------------------------------------------------------------------|
| meter-01, -02, ... | eight plain ones: in order, a few tens of milliseconds on the way                |
| clock-ahead        | its clock runs 4 s ahead, so its rows come from the future                       |
| backlog            | its link is too narrow from minute 15 to 30: rows queue up, in order, then drain |
| rare               | speaks about once a minute                                                       |
| heavy-tail         | most rows come at once, some minutes late (Pareto), overtaking each other        |

And meter-08 is silent for half a minute from minute 40 on.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Seconds = NDArray[np.float64]

START = np.datetime64("2025-03-01T08:00:00", "us")
HOUR = 3600.0
CLOCK_AHEAD = 4.0
SILENCE = (40 * 60.0, 40 * 60.0 + 30.0)
NARROW_LINK = (15 * 60.0, 30 * 60.0)
NARROWNESS = 1.1
ROWS_PER_SECOND = 5.2
RARE_PER_SECOND = 1 / 60


def happenings(rng: np.random.Generator, per_second: float) -> Seconds:
    """When one device's events happen: at random, in order, over the hour."""
    return np.sort(rng.uniform(0.0, HOUR, rng.poisson(per_second * HOUR)))


def in_order(happened: Seconds, delay: Seconds) -> Seconds:
    """Arrivals over a connection that never lets a row overtake another."""
    return np.maximum.accumulate(happened + delay)


def through_narrow_link(happened: Seconds) -> Seconds:
    """Arrivals over a link that, for a while, sends rows more slowly than they happen.

    A row leaves when the one before it has left and its own sending is done:
    leaving = done + max over earlier rows of (happened - done before it).
    """
    narrow = (happened >= NARROW_LINK[0]) & (happened < NARROW_LINK[1])
    sending = np.where(narrow, NARROWNESS, 0.5) / ROWS_PER_SECOND
    done = np.cumsum(sending)
    return done + np.maximum.accumulate(happened - (done - sending))


def recording(seed: int = 7) -> pa.Table:
    """The whole recording, in arrival order; the same seed gives the same rows.

    >>> rows = recording()
    >>> len(set(rows["device"].to_pylist())), 190_000 < rows.num_rows < 210_000
    (12, True)
    """
    rng = np.random.default_rng(seed)
    devices: dict[str, tuple[Seconds, Seconds]] = {}  # name: what its rows say, when they arrive
    for number in range(1, 9):
        happened = happenings(rng, ROWS_PER_SECOND)
        if number == 8:
            happened = happened[(happened < SILENCE[0]) | (happened >= SILENCE[1])]
        devices[f"meter-{number:02}"] = happened, in_order(happened, rng.exponential(0.01 * number, len(happened)))
    happened = happenings(rng, ROWS_PER_SECOND)
    devices["clock-ahead"] = happened + CLOCK_AHEAD, in_order(happened, rng.exponential(0.05, len(happened)))
    happened = happenings(rng, ROWS_PER_SECOND)
    devices["backlog"] = happened, through_narrow_link(happened)
    happened = happenings(rng, RARE_PER_SECOND)
    devices["rare"] = happened, in_order(happened, rng.exponential(0.2, len(happened)))
    happened = happenings(rng, ROWS_PER_SECOND)
    devices["heavy-tail"] = happened, happened + 0.05 * rng.pareto(1.3, len(happened))

    said = np.concatenate([said for said, _ in devices.values()])
    arrived = np.concatenate([arrived for _, arrived in devices.values()])
    device = np.repeat(list(devices), [len(said) for said, _ in devices.values()])
    order = np.argsort(arrived, kind="stable")
    return pa.table(
        {
            "device": device[order],
            "event_time": timestamps(said[order]),
            "arrival_time": timestamps(arrived[order]),
            "value": rng.normal(20.0, 3.0, len(order)).round(2),
        }
    )


def timestamps(since_start: Seconds) -> NDArray[np.datetime64]:
    """Seconds since the start, as timestamps in microseconds."""
    return START + (since_start * 1e6).astype("timedelta64[us]")


def main() -> None:
    """Write the recording to the file that is named."""
    parser = argparse.ArgumentParser(description="Write a recording with known disorder, as Parquet.")
    parser.add_argument("file", type=Path)
    file: Path = parser.parse_args().file
    rows = recording()
    file.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(rows, file)
    print(f"wrote {rows.num_rows:,} rows of {len(rows['device'].unique())} devices to {file}")


if __name__ == "__main__":
    main()
