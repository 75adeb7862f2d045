"""Freeway traffic as it reaches a control centre: late, out of order, and some of it not at all.

    python -m examples.freeway out/freeway

Loop detectors along four highways count cars every 10 seconds for a quarter of an hour, 21,552 readings in all.
What is odd about them is what is odd about real ones:

| who                 | what                                                                                    |
|---------------------|-----------------------------------------------------------------------------------------|
| everyone            | a delay of its own, one to four seconds, and a clock that is off by up to a second       |
| `I-5 north 07`      | a straggler: its radio delivers every reading 8 to 15 seconds late                       |
| `I-84` from 08:04   | its cabinet loses the line for 50 seconds, and sends all that it kept at once            |
| `OR-217 north 12`   | its clock is set wrong at 08:05, and is 40 seconds fast from then on                     |
| `I-205 south 03`    | falls silent at 08:07 and is never heard again                                           |
| `I-205 north` 08:08 | a jam: speeds fall from 95 to 25 km/h, further down the road later                       |

The same seed gives the same rows. Files hold 5 seconds of arrivals each, in the order of arrival.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

SECOND = 1_000_000
MINUTE = 60 * SECOND
START = 1_741_075_200 * SECOND
"""Eight o'clock on 4 March 2025, UTC."""

LENGTH = 15 * MINUTE
EVERY = 10 * SECOND
EACH = 5 * SECOND
"""A file holds so many microseconds of arrivals."""

HIGHWAYS = ("I-5", "I-84", "I-205", "OR-217")
DIRECTIONS = ("north", "south")
PER_DIRECTION = 30
STRAGGLER, FAST, SILENT = "I-5 north 07", "OR-217 north 12", "I-205 south 03"
FAST_FROM, FAST_BY = 5 * MINUTE, 40 * SECOND
SILENT_FROM = 7 * MINUTE
CUT = (4 * MINUTE, 4 * MINUTE + 50 * SECOND)
JAM_FROM, JAM_PER_DETECTOR, JAM_LENGTH = 8 * MINUTE, 5 * SECOND, 5 * MINUTE

Micros = NDArray[np.int64]


def detectors() -> list[tuple[str, str, int]]:
    """Highway, direction and place of every detector.

    >>> len(detectors()), detectors()[6]
    (240, ('I-5', 'north', 7))
    """
    places = range(1, PER_DIRECTION + 1)
    return [(road, way, place) for road in HIGHWAYS for way in DIRECTIONS for place in places]


def readings(seed: int = 0) -> pa.Table:
    """All readings in the order of their arrival.

    >>> rows = readings()
    >>> rows.num_rows, rows.column_names
    (21552, ['detector', 'highway', 'direction', 'ts', 'arrived', 'cars', 'speed'])
    """
    random = np.random.default_rng(seed)
    parts = [_of_detector(random, *detector) for detector in detectors()]
    rows = pa.concat_tables(parts)
    return rows.take(pc.sort_indices(rows, [("arrived", "ascending"), ("detector", "ascending")]))


def write_files(rows: pa.Table, folder: Path) -> int:
    """One file for every 5 seconds of arrivals; gives how many."""
    folder.mkdir(parents=True)
    part = (pc.cast(rows.column("arrived"), pa.int64()).to_numpy() - START) // EACH
    for number in range(int(part[-1]) + 1):
        path = folder / f"part-{number:04}.parquet"
        pq.write_table(rows.filter(pa.array(part == number)), path)
        # Spark takes files in the order of their dates.
        os.utime(path, (START // SECOND + number,) * 2)
    return int(part[-1]) + 1


def _of_detector(random: np.random.Generator, highway: str, direction: str, place: int) -> pa.Table:
    name = f"{highway} {direction} {place:02}"
    happened = np.arange(random.integers(0, EVERY), LENGTH, EVERY, dtype=np.int64)
    if name == SILENT:
        happened = happened[happened < SILENT_FROM]
    usual = random.uniform(1.0, 4.0) * SECOND
    arrived = happened + (usual * random.lognormal(0.0, 0.25, len(happened))).astype(np.int64)
    if name == STRAGGLER:
        arrived = happened + random.integers(8 * SECOND, 15 * SECOND, len(happened))
    if highway == "I-84":
        kept = (happened >= CUT[0]) & (happened < CUT[1])
        arrived = np.where(kept, CUT[1] + random.integers(0, 2 * SECOND, len(happened)), arrived)
    clock_offset = np.full(len(happened), random.integers(-SECOND, SECOND))
    if name == FAST:
        clock_offset[happened >= FAST_FROM] = FAST_BY
    cars = random.poisson(4.5, len(happened)).astype(np.int32)
    return pa.table(
        {
            "detector": pa.repeat(name, len(happened)),
            "highway": pa.repeat(highway, len(happened)),
            "direction": pa.repeat(direction, len(happened)),
            "ts": _times(happened + clock_offset),
            "arrived": _times(arrived),
            "cars": cars,
            "speed": _speeds(random, happened, place, jammed=(highway, direction) == ("I-205", "north")),
        }
    )


def _speeds(random: np.random.Generator, happened: Micros, place: int, jammed: bool) -> NDArray[np.float64]:
    """Kilometres per hour; the jam reaches one detector after the other."""
    free = random.normal(95.0, 6.0, len(happened))
    since = happened - JAM_FROM - place * JAM_PER_DETECTOR
    in_jam = jammed & (since >= 0) & (since < JAM_LENGTH)
    return np.round(np.where(in_jam, random.normal(25.0, 5.0, len(happened)), free).clip(3.0), 1)


def _times(micros: Micros) -> pa.Array:
    return pa.array(START + micros).cast(pa.timestamp("us", "UTC"))


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description="Freeway traffic, as files in the order of arrival.")
    parser.add_argument("folder", type=Path)
    asked = parser.parse_args()
    rows = readings()
    print(f"{rows.num_rows:,} readings in {write_files(rows, asked.folder)} files in {asked.folder}")


if __name__ == "__main__":
    main()
