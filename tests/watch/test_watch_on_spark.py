"""Failure detection, rules and heartbeat traces on Spark, with all state on the cluster."""

from __future__ import annotations

import json
import os
import queue
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import eventide
from eventide.telemetry.tracing import traced

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCRIPT = """
CREATE STREAM s (ts TIMESTAMP, came TIMESTAMP, who STRING, v INT) FROM json 'FOLDER' LIMIT 1 file PER ROUND
    TIMESTAMP BY ts ARRIVAL BY came SOURCE BY who DRATIO 1%;
CREATE QUERY sums AS SELECT who, sum(v) AS total FROM s [RANGE 5 seconds] GROUP BY who;
CREATE ALERT busy ON sums WHEN total > 100;
CREATE ALERT many ON s WHEN rows >= 20;
"""


def written(folder: Path, second: int) -> None:
    """A file with what the sources say in a second; one falls silent, another has much to do for a while."""
    who = "ab" if second >= 20 else "abc"
    at = f"2026-01-31T12:00:{second:02d}Z"
    rows = [{"ts": at, "came": at, "who": one, "v": 50 if one == "b" and second < 10 else 1} for one in who]
    file = folder / f"{second:02d}.json"
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    # Spark reads the oldest file first.
    os.utime(file, (1_700_000_000 + second,) * 2)


def test_sources_rules_and_heartbeats_are_watched_on_spark(tmp_path: Path, spark: SparkSession) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    told: queue.Queue[tuple[str, str, bool]] = queue.Queue()
    script = eventide.sql(SCRIPT.replace("FOLDER", str(folder)))
    with script.start(spark=spark, checkpoint=tmp_path / "state", driver_memory=0, bounded=False) as running:
        running.on_alert(lambda alert: told.put((alert.kind, alert.who, alert.cleared is None)))
        tracing = traced(running.engine)
        found = list[tuple[str, str, bool]]()
        wanted = {("busy", "b", True), ("busy", "b", False), ("many", "", True), ("silence", "c", True)}
        deadline = time.monotonic() + 120
        for second in range(35):
            written(folder, second)
        while wanted - set(found):
            assert time.monotonic() < deadline, found
            assert running.isActive, running.exception()
            found.append(told.get(timeout=120))
        assert ("silence", "a", True) not in found
        assert {visit.step for trace in tracing.traces() for visit in trace.visits} == {"s", "sums"}
        assert any(trace.over is not None for trace in tracing.traces())
