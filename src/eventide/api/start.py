"""Start several queries together, in one engine: one round for all of them, each row read once.

Law: queries over the same stream share it. All streams are of one kind: DataFrames run on Spark, Arrow data here.

*Sinks.* A path, a function or nothing is turned into a sink.

>>> given_sink("out", "csv").format
'csv'
>>> type(given_sink(None)).__name__
'Memory'
>>> given_sink(42)
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: 42 is no sink: give a directory, a function that takes an Arrow table, a sink of \
eventide.sinks, or nothing to keep results in memory
"""

from __future__ import annotations

import os
import shutil
import weakref
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from eventide.api.arguments import length
from eventide.api.inputs import ArrowData, SparkRows
from eventide.api.planning import planned
from eventide.api.running_query import RunningQueries
from eventide.api.startable import GivenSink, Startable
from eventide.engine.running import Running
from eventide.errors import DeclarationError
from eventide.launch.engines import IN_PYTHON, claim_outputs
from eventide.plan.declared.program import Program
from eventide.plan.declared.stream import TimeKind
from eventide.profile.amounts import memory_bytes
from eventide.sinks.callback import Callback
from eventide.sinks.directory import Directory
from eventide.sinks.sink import Memory, Sink
from eventide.storage.storage import Storage

if TYPE_CHECKING:
    from eventide.api.stream import EventStream


def given_sink(given: GivenSink, format: str = "parquet") -> Sink:
    """The sink; a function is called with the results of every round that has any."""
    if given is None:
        return Memory()
    if isinstance(given, str | os.PathLike):
        return Directory(given, format)
    if isinstance(given, Sink):
        return given
    if callable(given):
        return Callback(_with_table(given), empty=False)
    raise DeclarationError(
        f"{given!r} is no sink: give a directory, a function that takes an Arrow table, a sink of eventide.sinks, or "
        "nothing to keep results in memory"
    )


def _with_table(function: Callable[[pa.Table], object]) -> Callable[[str, int, pa.RecordBatchReader], object]:
    def receive(query: str, round: int, batches: pa.RecordBatchReader) -> object:
        return function(batches.read_all())

    # An error names the user's function, not ours.
    receive.__qualname__ = getattr(function, "__qualname__", None) or repr(function)
    return receive


def start(
    *queries: Startable,
    sinks: Mapping[str, GivenSink] | None = None,
    checkpoint: str | PathLike[str] | None = None,
    format: str = "parquet",
    every: str | None = None,
    bounded: bool | None = None,
    driver_memory: int | str | None = None,
    replace: bool = False,
    **named: Startable,
) -> RunningQueries:
    """Start queries together; a query under a name (`speeds=q`) is called so. `sinks` are by the name of the query.

    `driver_memory`: so much state, of all of them together, stays with the driver (`'1 GB'`), where they run on Spark.
    `replace`: delete what other checkpoints have written of these queries into the directories of `sinks`.

    >>> import pyarrow as pa
    >>> from eventide.api.stream import stream
    >>> s = stream(pa.table({"t": [1, 12, 25], "v": [1, 2, 3]}), time="t").delay(0)
    >>> running = start(tens=s.window(10).agg(n="count(*)"), all=s.window(30).agg(total="sum(v)"))
    >>> running.awaitTermination()
    True
    >>> running["tens"].results().num_rows, running["all"].results().column("total").to_pylist()
    (3, [6])
    """
    for query in (*queries, *named.values()):
        if not isinstance(query, Startable):
            raise DeclarationError(f"{query!r} is no query: make one with .agg(...) or .select(...)")
    asked = (*queries, *(query.named(name) for name, query in named.items()))
    given = dict(sinks or {})
    if unknown := given.keys() - {query.called for query in asked}:
        has = ", ".join(query.called for query in asked)
        raise DeclarationError(f"there is no query {min(unknown)!r} to give a sink; there are: {has}")
    return start_all(
        asked,
        {query.called: given.get(query.called) for query in asked},
        checkpoint,
        format,
        every,
        bounded,
        driver_memory,
        replace,
    )


def start_all(
    queries: tuple[Startable, ...],
    sinks: Mapping[str, GivenSink],
    checkpoint: str | PathLike[str] | None,
    format: str,
    every: str | None,
    bounded: bool | None,
    driver_memory: int | str | None = None,
    replace: bool = False,
) -> RunningQueries:
    """The queries, checked and running."""
    streams, program = planned(queries)
    opened = {name: given_sink(sink, format) for name, sink in sinks.items()}
    memory = None if driver_memory is None else memory_bytes(driver_memory)
    at_hand = all(isinstance(stream.given, ArrowData) for stream in streams)
    return running_in(
        lambda folder: _engine(streams, program, folder, opened, every, memory),
        checkpoint,
        opened,
        sinks,
        format,
        at_hand if bounded is None else bounded,
        replace,
    )


def running_in(
    made: Callable[[str | Storage], Running],
    checkpoint: str | PathLike[str] | None,
    opened: Mapping[str, Sink],
    given: Mapping[str, GivenSink],
    format: str,
    bounded: bool,
    replace: bool = False,
) -> RunningQueries:
    """Make an engine over the checkpoint, or over one that is gone with the engine, and start it."""
    place = Storage.temporary() if checkpoint is None else fspath(checkpoint)
    try:
        lasting = None if isinstance(place, Storage) else place
        claim_outputs(opened, place, lasting, replace, IN_PYTHON)
        engine = made(place)
    except BaseException:
        if isinstance(place, Storage):
            shutil.rmtree(place.where, ignore_errors=True)
        raise
    if isinstance(place, Storage):
        # With the engine, not with the handle: who needs no handle may drop it.
        weakref.finalize(engine, shutil.rmtree, place.where, ignore_errors=True)
    running = RunningQueries(engine, opened, _folders(given, format), lasting)
    engine.start(bounded=bounded)
    return running


def _folders(sinks: Mapping[str, GivenSink], format: str) -> dict[str, Path]:
    """The directories of this machine from which results can be read again."""
    paths = {name: fspath(sink) for name, sink in sinks.items() if isinstance(sink, str | PathLike)}
    return {name: Path(path) for name, path in paths.items() if format == "parquet" and "://" not in path}


def _engine(
    streams: list[EventStream],
    program: Program,
    checkpoint: str | Storage,
    sinks: Mapping[str, Sink],
    every: str | None,
    memory: int | None,
) -> Running:
    frames = {s.declared.name: s.given.frame for s in streams if isinstance(s.given, SparkRows)}
    if frames:
        if len(frames) < len(streams):
            raise DeclarationError(
                "queries over DataFrames run on Spark and those over Arrow data in this process: start them apart"
            )
        from eventide.engine.round.placement import DRIVER_MEMORY
        from eventide.engine.spark.engine import SparkEngine

        spark = next(iter(frames.values())).sparkSession
        size = DRIVER_MEMORY if memory is None else memory
        return SparkEngine(spark, program, checkpoint, sinks, frames, every=every, driver_memory=size)
    from eventide.engine.local.engine import LocalEngine

    seconds = 0.0 if every is None else length(every, TimeKind.TIMESTAMP, "every") / 1_000_000
    inputs = {s.declared.name: s.given.opened(s.declared) for s in streams if isinstance(s.given, ArrowData)}
    return LocalEngine(program, checkpoint, sinks, inputs, every=seconds)
