"""The union of `benchmarks.idle_waiting` on Spark, in real time.

The fast stream is Spark's `rate` source, the slow one a folder into which a single file comes when three quarters of
the run are over. A row's latency is from the time that the rate source gave it to the moment in which the sink is
handed it; a row that was not told has waited to the end.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.harness import as_duration, show_table
from eventide.engine.spark.engine import SparkEngine
from eventide.eventtime.scheduling.options import IdlePolling, Scheduling
from eventide.launch.spark_session import local_session
from eventide.plan.declared.program import Program
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import Stream, Timestamps, columns
from eventide.results.results import Results

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COLUMNS = "id BIGINT, percent INT, made TIMESTAMP"
RATE = 50
WARM_ROUNDS = 4
"""Rounds whose rows are not counted: the first batches of Spark take long."""

PATIENCE = 300.0
"""Seconds to wait for these."""

SCENARIOS = {
    "A": (IdlePolling.never(), False),
    "B 1/s": (IdlePolling.every(1_000_000), False),
    "C": (IdlePolling.on_demand(), False),
    "D": (IdlePolling.on_demand(), True),
}


def program(latent: bool) -> Program:
    """Two selections and their union, ordered unless nobody has a time."""
    timestamps = Timestamps.LATENT if latent else Timestamps.INTERNAL
    streams = tuple(Stream(name, columns(COLUMNS), timestamps=timestamps) for name in ("fast", "slow"))
    chosen = tuple(Rows(f"{one.name}_chosen", (one.name,), where="percent < 95", ordered=False) for one in streams)
    return Program(streams, operators=(*chosen, Rows("all_rows", ("fast_chosen", "slow_chosen"), ordered=not latent)))


class Latencies:
    """A sink that looks at its watch."""

    def __init__(self) -> None:
        self.by_id: dict[int, tuple[float, float]] = {}

    def emit(self, results: Results) -> None:
        """Note for every row when it was made and how long ago that is, in seconds."""
        if not results.rows:
            return
        now = time.time()
        table = results.table()
        made = np.asarray(table.column("made").cast(pa.int64()).to_numpy()) / 1e6
        for number, since in zip(table.column("id").to_pylist(), made.tolist(), strict=True):
            self.by_id[number] = since, now - since

    def rewind(self, query: str, last: int) -> None:
        """A run here is never continued."""

    def close(self) -> None:
        """Nothing is held but memory."""


def on_spark(folder: Path, seconds: float) -> dict[str, Any]:
    """Every scenario for so long; a table, and the numbers."""
    spark = local_session()
    try:
        latency = {
            name: 1000 * _mean_latency(spark, asking, latent, folder / f"spark-{number}", seconds)
            for number, (name, (asking, latent)) in enumerate(SCENARIOS.items())
        }
    finally:
        spark.stop()
    show_table(
        "The same on Spark in real time", ("scenario", "latency"), [(n, as_duration(ms)) for n, ms in latency.items()]
    )
    return {"latency_ms": latency, "a_over_c": latency["A"] / latency["C"], "c_over_d": latency["C"] / latency["D"]}


def _mean_latency(spark: SparkSession, asking: IdlePolling, latent: bool, folder: Path, seconds: float) -> float:
    slow = folder / "slow"
    slow.mkdir(parents=True)
    sink = Latencies()
    frames = {"fast": _rate(spark), "slow": spark.readStream.schema(COLUMNS).parquet(str(slow))}
    with SparkEngine(
        spark,
        program(latent),
        str(folder / "checkpoint"),
        {"all_rows": sink},
        frames,
        tick=0.05,
        scheduling=Scheduling(asking),
    ) as engine:
        engine.start()
        deadline = time.monotonic() + PATIENCE
        while engine.status().round < WARM_ROUNDS and time.monotonic() < deadline:
            time.sleep(0.05)
        began = time.time()
        time.sleep(0.75 * seconds)
        _write_slow_row(slow)
        time.sleep(0.25 * seconds)
        ended = time.time()
    known = [late for since, late in sink.by_id.values() if began <= since <= ended]
    # What was made and not told: the last rows, one every 1/RATE seconds, of which the selection lets 95 % pass.
    untold = max(0, round(0.95 * RATE * (ended - began)) - len(known))
    waited = [(place + 1) / RATE for place in range(untold)]
    return float(np.mean([*known, *waited]))


def _rate(spark: SparkSession) -> DataFrame:
    made = spark.readStream.format("rate").option("rowsPerSecond", RATE).load()
    return made.selectExpr("value AS id", "CAST(value % 100 AS INT) AS percent", "timestamp AS made")


def _write_slow_row(folder: Path) -> None:
    row = {
        "id": pa.array([-1], pa.int64()),
        "percent": pa.array([0], pa.int32()),
        "made": pa.array([time.time_ns() // 1000], pa.timestamp("us", "UTC")),
    }
    # Spark leaves out files whose name begins with an underscore; what has its name is whole.
    pq.write_table(pa.table(row), folder / "_row.parquet")
    (folder / "_row.parquet").rename(folder / "row.parquet")
