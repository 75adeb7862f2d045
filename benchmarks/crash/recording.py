"""A small recording for the crash test: three streams, one file of each a round.

Law: the same seed gives the same files, in the same order (they are a second apart). Among the readings some rows come
far too late and some have no time, so that the late table and the rejects table are put to the test too.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

START = 1_700_000_000_000_000
SECOND = 1_000_000
STREAMS = ("readings", "numbers", "visits")


def record(folder: Path, files: int, rows: int = 200, seed: int = 0) -> None:
    """Write `files` files of `rows` rows for each stream."""
    random = np.random.default_rng(seed)
    for number in range(files):
        tables = (_readings(random, number, rows), _numbers(random, number, rows), _visits(random, rows))
        for stream, table in zip(STREAMS, tables, strict=True):
            place = folder / stream
            place.mkdir(parents=True, exist_ok=True)
            file = place / f"{number:04d}.parquet"
            pq.write_table(table, file)
            os.utime(file, (START // SECOND + number,) * 2)


def _readings(random: np.random.Generator, number: int, rows: int) -> pa.Table:
    """Half a minute of three devices; most rows take a few seconds, a few take minutes, a few have no time."""
    arrived = START + number * 30 * SECOND + np.sort(random.integers(0, 30 * SECOND, rows))
    delay = random.exponential(2 * SECOND, rows) + np.where(random.random(rows) < 0.04, 150 * SECOND, 0)
    time = pa.array(arrived - delay.astype(np.int64), mask=random.random(rows) < 0.02)
    return pa.table(
        {
            "ts": time.cast(pa.timestamp("us", "UTC")),
            "arrived": pa.array(arrived).cast(pa.timestamp("us", "UTC")),
            "device": random.choice(["north", "south", "west"], rows),
            "value": pa.array(random.integers(-50, 1000, rows), pa.int32(), mask=random.random(rows) < 0.05),
        }
    )


def _numbers(random: np.random.Generator, number: int, rows: int) -> pa.Table:
    """A sequence, somewhat out of order."""
    n = number * rows + np.arange(rows) - random.integers(0, 40, rows)
    return pa.table({"n": n, "amount": random.integers(0, 9, rows)})


def _visits(random: np.random.Generator, rows: int) -> pa.Table:
    """Rows without a time: the clock of their round will be theirs."""
    return pa.table({"page": random.choice(["a", "b"], rows)})
