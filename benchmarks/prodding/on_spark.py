"""A subset of the thesis' measurements on Spark, in real time: how much earlier answers are, and what they are worth.

Rows come from Spark's `rate` source with the time at which they were made and a value that is as good as random. The
same query runs twice, with a prod at 70 % of each slide and without any. A window's delay is from its end to the moment
in which the sink is handed its answer; windows of the first rounds, which take long, do not count.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.prodding.runs import AGGREGATES
from benchmarks.prodding.streams import SECOND
from eventide.engine.spark.engine import SparkEngine
from eventide.eventtime.policies.clock_skew import ClockSkew
from eventide.launch.spark_session import local_session
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Prods, Query, named_as
from eventide.plan.declared.stream import Stream, columns
from eventide.plan.declared.window import Window
from eventide.results.error import errors
from eventide.results.results import Results

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RATE = 500
POINT = 0.7
WARM_ROUNDS = 8
PATIENCE = 300.0
SKEW = SECOND
"""Rows are told to be at most so old: the rate source gives those of a second together."""


class Watch:
    """A sink that notes when it is handed what."""

    def __init__(self) -> None:
        self.told: dict[str, dict[int, tuple[float, dict[str, float]]]] = {"early": {}, "final": {}}

    def emit(self, results: Results) -> None:
        """Note the delay after the end of each window, in seconds, and the values of its first answer."""
        now = time.time()
        table = results.table()
        ends = table.column("window_end").cast(pa.int64()).to_pylist()
        values = {name: table.column(name).to_pylist() for name in AGGREGATES}
        for place, (kind, end) in enumerate(zip(table.column("kind").to_pylist(), ends, strict=True)):
            row = {name: float(many[place]) for name, many in values.items()}
            self.told[kind].setdefault(end, (now - end / SECOND, row))

    def rewind(self, query: str, last: int) -> None:
        """A run here is never continued."""

    def close(self) -> None:
        """Nothing is held but memory."""


def on_spark(folder: Path, quick: bool) -> dict[str, float]:
    """Both runs; their numbers side by side."""
    slide = SECOND if quick else 5 * SECOND
    seconds = 25.0 if quick else 120.0
    spark = local_session()
    try:
        prodded = _run(spark, folder / "prodded", slide, seconds, Prods(points=(POINT,)))
        plain = _run(spark, folder / "plain", slide, seconds, None)
    finally:
        spark.stop()
    early, final = prodded.told["early"], prodded.told["final"]
    both = sorted(early.keys() & final.keys())
    found = {
        f"{name}_accuracy": float(
            100
            * (
                1 - errors(pa.array([early[e][1][name] for e in both]), pa.array([final[e][1][name] for e in both]))
            ).mean()
        )
        for name in AGGREGATES
    }
    gains = [final[end][0] - early[end][0] for end in both]
    delays = {name: np.median([delay for delay, _ in run.values()]) for name, run in _finals(prodded, plain).items()}
    return {
        "slide_seconds": slide / SECOND,
        "windows": len(both),
        "gain": float(np.mean(gains)),
        **found,
        "final_delay_with_prods": float(delays["with"]),
        "final_delay_without": float(delays["without"]),
        "final_delay_ratio": float(delays["with"] / delays["without"]),
    }


def _finals(prodded: Watch, plain: Watch) -> dict[str, dict[int, tuple[float, dict[str, float]]]]:
    return {"with": prodded.told["final"], "without": plain.told["final"]}


def _run(spark: SparkSession, folder: Path, slide: int, seconds: float, prods: Prods | None) -> Watch:
    stream = Stream("s", columns("ts TIMESTAMP, v DOUBLE"), time="ts", policy=ClockSkew(SKEW))
    query = Query("q", "s", Window(3 * slide, slide), named_as(**AGGREGATES), prods=prods)
    made = spark.readStream.format("rate").option("rowsPerSecond", RATE).load()
    frame = made.selectExpr("timestamp AS ts", "CAST(pmod(xxhash64(value), 1000) AS DOUBLE) AS v")
    watch = Watch()
    with SparkEngine(spark, Program((stream,), (query,)), str(folder), {"q": watch}, {"s": frame}, tick=0.05) as engine:
        engine.start()
        deadline = time.monotonic() + PATIENCE
        while engine.status().round < WARM_ROUNDS and time.monotonic() < deadline:
            time.sleep(0.05)
        began = time.time() + 3 * slide / SECOND
        time.sleep(seconds)
    for told in watch.told.values():
        for end in [end for end in told if end < began * SECOND]:
            del told[end]
    return watch
