"""A stream of files that a test writes while an engine runs, and waiting for what the engine makes of them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.engine.local.engine import LocalEngine
from eventide.engine.running import Running
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query, named_as
from eventide.plan.declared.stream import Input, Stream, columns
from eventide.plan.declared.window import Window
from eventide.sinks.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE = 300.0
"""Seconds after which a test gives up: for an engine that hangs, not for one that is slow."""


def stream(folder: Path) -> Stream:
    return Stream(
        "s",
        columns("t BIGINT, k STRING, v INT"),
        time="t",
        policy=FixedDelay(0),
        input=Input("parquet", str(folder), max_files=1),
    )


def tumbling(name: str, length: int = 10) -> Query:
    return Query(name, "s", Window(length), named_as(n="count(*)", total="sum(v)"))


def put(folder: Path, number: int, times: list[int]) -> None:
    """Let a file appear, whole; files are read in the order of their numbers."""
    folder.mkdir(exist_ok=True)
    rows = {"t": times, "k": ["a"] * len(times), "v": pa.array([1] * len(times), pa.int32())}
    hidden = folder / f".{number:04d}.parquet"
    pq.write_table(pa.table(rows), hidden)
    os.utime(hidden, (1_700_000_000 + number,) * 2)
    hidden.rename(folder / f"{number:04d}.parquet")


def made(
    spark: SparkSession | None, program: Program, checkpoint: Path, sinks: Mapping[str, Sink], **options: Any
) -> Running:
    """An engine: on Spark if there is a session."""
    if spark is None:
        return LocalEngine(program, str(checkpoint), sinks, **options)
    from eventide.engine.spark.engine import SparkEngine

    return SparkEngine(spark, program, str(checkpoint), sinks, **options)


def wait_until(condition: Callable[[], bool], running: Running | None = None) -> None:
    """Wait; an engine that failed meanwhile tells why."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it did not come to that"
        if running is not None:
            assert not running.await_end(0.02), "the engine has ended"
        else:
            time.sleep(0.02)


def in_a_thread(function: Callable[[], Any]) -> Any:
    """Call it in another thread; what it returns or raises."""
    found: list[Any] = []

    def call() -> None:
        try:
            found.append(function())
        except BaseException as failure:
            found.append(failure)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(PATIENCE)
    assert found, "it did not come back"
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]
