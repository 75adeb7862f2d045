"""The real streams of the shared folder, one recording per run; runs of one file are never mixed.

The files are not part of the repository. They are looked up in `../shared/data`, beside it; without them the benchmark
says so and goes on.

>>> [run.name for run in RUNS][-1]
'vehicle 2, trip 1'
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from benchmarks.harness import REPOSITORY
from eventide.profile.reading import Recording

FOLDER = REPOSITORY.parent / "shared" / "data"


@dataclass(frozen=True)
class Run:
    """One run: which file, which of its rows, the column with their arrival, and that with their order."""

    name: str
    file: str
    only: str = "true"
    arrival: str = "arrival_time_ms"
    order: str = "arrival_seq"

    def load(self, folder: Path = FOLDER) -> Recording | None:
        """Read the run, times as microseconds; None without the file."""
        path = folder / self.file
        if not path.exists():
            return None
        columns = (
            duckdb.connect()
            .execute(
                f"""
                select event_time_ms * 1000 as time, {self.arrival} * 1000 as arrival, source
                from read_csv(?) where {self.only} order by {self.order}
                """,
                [str(path)],
            )
            .fetchnumpy()
        )
        return Recording.of(self.name, columns["time"], columns["arrival"], columns["source"].astype(str))


RUNS = (
    Run("umts d-1", "umts_devices.csv.gz", "session = 'd-1'"),
    Run("umts d-2", "umts_devices.csv.gz", "session = 'd-2'"),
    Run("umts d-3", "umts_devices.csv.gz", "session = 'd-3'"),
    Run("winlog purplesharp", "winlog_hosts.csv.gz", "scenario = 'purplesharp_ad_playbook_I'"),
    Run("winlog empire", "winlog_hosts.csv.gz", "scenario like 'empire%'"),
    Run("crypto", "crypto_trades.csv.gz"),
    Run("vehicle 1, trip 1", "vehicle_telematics.csv.gz", "vehicle = 'vehicle1' and trip = 'trip1'"),
    Run("vehicle 1, trip 2", "vehicle_telematics.csv.gz", "vehicle = 'vehicle1' and trip = 'trip2'"),
    Run("vehicle 2, trip 1", "vehicle_telematics.csv.gz", "vehicle = 'vehicle2' and trip = 'trip1'"),
)
