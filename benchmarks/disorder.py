"""Rows out of order for the engines to read: Parquet files in the order of arrival, the same for every side.

Law: a row arrives an exponentially distributed delay after its time; rows are cut into files of equal size in the order
of arrival, and files are dated in that order, so that every engine reads them in it. `Disordered.delay` is above the
largest delay there is: whoever waits that long loses nothing. Everything follows from the row's number: the same
declaration gives the same files.

>>> import tempfile
>>> made = Disorder(rows=1_000, groups=10, files=4, seconds=100).into(Path(tempfile.mkdtemp()))
>>> [path.name for path in made.files][:2], made.rows, made.delay > 1_000_000
(['part-00000.parquet', 'part-00001.parquet'], 1000, True)
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import database

SECOND = 1_000_000
START = 1_735_689_600 * SECOND
"""Midnight of 1 January 2025, UTC: a multiple of every window that is asked for."""

COLUMNS = "ts TIMESTAMP, k INT, v INT"
"""What a query needs of the rows; `arrived`, the time of arrival, is there too."""

LONG_AGO = 1_735_700_000
"""Files are dated from here on, a second apart: an engine that sorts files by their date reads them in order."""


@dataclass(frozen=True)
class Disordered:
    """Files that were made: where they are, how many rows they hold, and a delay (microseconds) above the largest."""

    folder: Path
    files: tuple[Path, ...]
    rows: int
    delay: int

    def first(self, count: int, folder: Path) -> Disordered:
        """The first files alone, under another folder; for warming up."""
        folder.mkdir(parents=True)
        kept = self.files[:count]
        for path in kept:
            os.link(path, folder / path.name)
        return Disordered(
            folder, tuple(folder / p.name for p in kept), self.rows * len(kept) // len(self.files), self.delay
        )


@dataclass(frozen=True)
class Disorder:
    """How many rows over how many seconds of application time, and how late they are on average (seconds)."""

    rows: int
    groups: int
    files: int
    seconds: int
    mean_delay: float = 2.0
    seed: int = 1

    def into(self, folder: Path) -> Disordered:
        """Make the files."""
        folder.mkdir(parents=True, exist_ok=True)
        connection = database()
        # Hashes of the row's number are as good as chance here, and the same on every machine.
        connection.execute(
            f"""
            CREATE TABLE rows_in_order AS SELECT time, time + late AS arrival, k, v FROM (
                SELECT {START} + (i * {self.seconds * SECOND}::HUGEINT // {self.rows})::BIGINT AS time,
                    ceil(-ln(1 - (hash(i, {self.seed}, 1) >> 11) / 9007199254740992.0)
                        * {self.mean_delay * SECOND})::BIGINT AS late,
                    (hash(i, {self.seed}, 2) % {self.groups})::INT AS k,
                    (hash(i, {self.seed}, 3) % 1000)::INT AS v
                FROM range({self.rows}) AS numbers(i)
            ) ORDER BY arrival, time, k, v
            """
        )
        (largest,) = connection.execute("SELECT max(arrival - time) FROM rows_in_order").fetchone() or (0,)
        paths = []
        for number in range(self.files):
            path = folder / f"part-{number:05d}.parquet"
            begin, end = (self.rows * edge // self.files for edge in (number, number + 1))
            connection.execute(
                f"""
                COPY (SELECT make_timestamptz(time) AS ts, make_timestamptz(arrival) AS arrived, k, v FROM rows_in_order
                    WHERE rowid >= {begin} AND rowid < {end} ORDER BY rowid) TO '{path}' (FORMAT parquet)
                """
            )
            os.utime(path, (LONG_AGO + number, LONG_AGO + number))
            paths.append(path)
        connection.close()
        # A whole number of seconds, which every side can say.
        return Disordered(folder, tuple(paths), self.rows, (int(largest) // SECOND + 1) * SECOND)
