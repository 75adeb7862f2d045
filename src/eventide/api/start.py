"""Start several queries together, in one engine: one round for all of them, each row read once.

Law: queries over the same stream share it. All streams are of one kind: DataFrames run on Spark, Arrow data here.

*The program.* What was built in Python becomes streams, operators and queries, each once. An operator that was given no
name is called after what reads it, as a sub-query in SQL is, and tells its rows at once: whoever reads them needs no
order. What was given a name is the same for all that read it.

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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from dataclasses import replace as replaced
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from eventide.api.arguments import length
from eventide.api.inputs import ArrowData, SparkRows
from eventide.api.query import ContinuousQuery, QueueOptions
from eventide.api.rows import UNNAMED, EventRows, GivenSink, Node, Startable
from eventide.api.running_query import RunningQueries
from eventide.engine.running import Running
from eventide.errors import DeclarationError
from eventide.language.scope.expression_text import unused
from eventide.launch.engines import IN_PYTHON, claim_outputs
from eventide.plan.binding import through
from eventide.plan.declared.evolution import Consent
from eventide.plan.declared.join import Join, Lookup
from eventide.plan.declared.program import Operator, Program
from eventide.plan.declared.query import Query
from eventide.plan.declared.rows import queued
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
    accept: bool = False,
    backfill: Iterable[str] = (),
    **named: Startable,
) -> RunningQueries:
    """Start several queries in one engine, which reads each row once.

    A keyword (`speeds=query`) names a query. `sinks` are given by the name of the query. `driver_memory` (such as
    `'1 GB'`) is for the state of all queries together. `accept` drops the state of queries that changed or are gone
    since the checkpoint was written; `backfill` names new or changed queries that read all rows of their files. The
    other parameters are those of a single query's `start`.

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
    streams, program = planned(asked)
    given = {query.called: given.get(query.called) for query in asked}
    opened = {name: given_sink(sink, format) for name, sink in given.items()}
    memory = None if driver_memory is None else memory_bytes(driver_memory)
    # A table is there whenever it is read.
    at_hand = all(isinstance(one.given, ArrowData) for one in streams if one.declared.table is None)
    return running_in(
        lambda folder: _engine(streams, program, folder, opened, every, memory, Consent(accept, tuple(backfill))),
        checkpoint,
        opened,
        given,
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
    consent: Consent,
) -> Running:
    frames = {s.declared.name: s.given.frame for s in streams if isinstance(s.given, SparkRows)}
    if frames:
        if any(isinstance(one.given, ArrowData) for one in streams):
            raise DeclarationError(
                "queries over DataFrames run on Spark and those over Arrow data in this process: start them apart"
            )
        from eventide.engine.operators.placement import DRIVER_MEMORY
        from eventide.engine.spark.engine import SparkEngine

        spark = next(iter(frames.values())).sparkSession
        size = DRIVER_MEMORY if memory is None else memory
        return SparkEngine(spark, program, checkpoint, sinks, frames, every=every, driver_memory=size, consent=consent)
    from eventide.engine.local.engine import LocalEngine

    seconds = 0.0 if every is None else length(every, TimeKind.TIMESTAMP, "every") / 1_000_000
    inputs = {s.declared.name: s.given.opened(s.declared) for s in streams if isinstance(s.given, ArrowData)}
    return LocalEngine(program, checkpoint, sinks, inputs, every=seconds, consent=consent)


def planned(asked: Iterable[Startable]) -> tuple[list[EventStream], Program]:
    """Collect the streams that the queries read, and their program."""
    results = [one for one in asked if isinstance(one, EventRows | ContinuousQuery)]
    placing = ProgramNames(frozenset(map(id, results)))
    if len(placing.results) < len(results):
        raise DeclarationError("a query cannot be started twice in one engine: leave it out, or start it apart")
    for one in results:
        placing.place(one, one.called)
    if not placing.streams:
        raise DeclarationError("there is nothing to start: give at least one query, made by .agg(...) or .select(...)")
    # The rows of a twin are read for the stream itself.
    streams = [stream for stream in placing.streams.values() if stream.twin_of is None]
    declared = tuple(stream.declared for stream in placing.streams.values())
    return streams, Program(declared, tuple(placing.queries), tuple(placing.operators))


@dataclass
class ProgramNames:
    """Gives everything its place in a program; what is `results` goes by its own name."""

    results: frozenset[int]
    streams: dict[str, EventStream] = field(default_factory=dict)
    operators: list[Operator] = field(default_factory=list)
    queries: list[Query] = field(default_factory=list)
    known: dict[int, str] = field(default_factory=dict)

    def place(self, node: Node, name: str) -> str:
        """Take in a stream, or rows or a query and all below them; the name under which it is read.

        `name` is that of its reader.
        """
        if not isinstance(node, EventRows | ContinuousQuery):
            self._take(node)
            return node.declared.name
        if id(node) in self.known:
            return self.known[id(node)]
        is_own = id(node) in self.results or node.called != UNNAMED
        mine = node.called if is_own else unused(f"{name}_below", self._used)
        self.known[id(node)] = mine
        if isinstance(node, ContinuousQuery):
            self._place_query(node, mine)
        else:
            inputs = [self.place(one, mine) for one in node.inputs]
            self.operators.append(_with_inputs(node, mine, inputs, is_own))
        return mine

    def _place_query(self, node: ContinuousQuery, name: str) -> None:
        query = replaced(node.declared, name=name, stream=self.place(node.stream, name))
        self.queries.append(self.behind_queue(query, node.queue) if node.queue is not None else query)
        if node.prodded_by is not None:
            self.place(node.prodded_by, name)

    def behind_queue(self, query: Query, wanted: QueueOptions) -> Query:
        """A query that reads its rows from a queue, which is put in before it."""
        name = unused(f"{query.name}_queue", self._used)
        streams = tuple(stream.declared for stream in self.streams.values())
        below = Program(streams, (*self.queries, query), tuple(self.operators))
        queue, query = queued(query, through(below, query), name, wanted.functions, wanted.room, wanted.sideline)
        self.operators.append(queue)
        return query

    @property
    def _used(self) -> list[str]:
        return [*self.streams, *(step.name for step in (*self.operators, *self.queries))]

    def _take(self, stream: EventStream) -> None:
        if stream.twin_of is not None:
            self._take(stream.twin_of)
        known = self.streams.setdefault(stream.declared.name, stream)
        if known.given is not stream.given or known.declared != stream.declared:
            raise DeclarationError(
                f"two different streams are both called {stream.declared.name!r}: give each its name, "
                "eventide.stream(..., name='traffic'); queries that share a stream are made of the same one"
            )


def _with_inputs(node: EventRows, name: str, inputs: list[str], is_own: bool) -> Operator:
    operator = node.declared
    if isinstance(operator, Join):
        left, right = replaced(operator.left, input=inputs[0]), replaced(operator.right, input=inputs[-1])
        return replaced(operator, name=name, left=left, right=right)
    if isinstance(operator, Lookup):
        rows, versions = replaced(operator.rows, input=inputs[0]), replaced(operator.versions, input=inputs[-1])
        return replaced(operator, name=name, rows=rows, versions=versions)
    ordered, alone = operator.ordered and is_own, operator.simultaneous and is_own
    return replaced(operator, name=name, inputs=tuple(inputs), ordered=ordered, simultaneous=alone)
