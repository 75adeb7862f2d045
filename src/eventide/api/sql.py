"""A script in Eventide's SQL, from Python.

Law: the text is read and checked as a whole before anything runs. What would go to the console is kept in memory
instead, to be asked for with `results()`. Settings in the text hold unless `start` is given others.

>>> import json, pathlib, tempfile
>>> folder = pathlib.Path(tempfile.mkdtemp())
>>> _ = (folder / "rows.json").write_text("".join(json.dumps({"t": t, "v": 1}) + "\\n" for t in (1, 12, 25)))
>>> script = sql(f"CREATE STREAM s (t BIGINT, v INT) FROM json '{folder}'; SELECT sum(v) AS n FROM s [RANGE 10]")
>>> running = script.start(engine="local", bounded=True)
>>> running.awaitTermination()
True
>>> [row["n"] for table in running.results().values() for row in table.to_pylist()]
[1, 1, 1]
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, replace
from importlib.metadata import version
from os import PathLike
from typing import TYPE_CHECKING

import pyarrow as pa

from eventide.api.inputs import ArrowData, SparkRows
from eventide.api.rows import GivenSink
from eventide.api.running_query import RunningQueries
from eventide.api.start import given_sink, running_in
from eventide.engine.running import Running
from eventide.errors import DeclarationError
from eventide.language.script import Script, read_script
from eventide.launch.connectors import formats_of, missing_settings
from eventide.launch.engines import chosen_engine
from eventide.launch.settings import RunSettings, checked_engine
from eventide.launch.user_functions import local_backend, register_on_spark, registered, with_comparisons
from eventide.plan.declared.evolution import Consent
from eventide.plan.declared.program import NAME, Program
from eventide.profile.amounts import memory_bytes
from eventide.sinks.sink import Sink, sink_of
from eventide.storage.storage import Storage
from eventide.watch.watching import watch

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from eventide.api.stream import EventStream

TICK = 1.0


def sql(text: str, file: str | None = None, **streams: EventStream) -> SqlScript:
    """Read and check a script in Eventide's SQL; start it with `start` or `run`.

    `file` is its name in error messages. A stream made in Python is a keyword argument, by its name in the script.

    >>> import pyarrow as pa
    >>> from eventide.api.stream import stream
    >>> cars = stream(pa.table({"t": [1, 12], "speed": [50, 60]}), time="t")
    >>> sql("SELECT max(speed) AS top FROM cars [RANGE 20]", cars=cars).run()["query_1"].column("top").to_pylist()
    [60]
    >>> sql("SELECT count(*) FROM trafic [RANGE 5 minutes]").plan
    Traceback (most recent call last):
        ...
    eventide.errors.LanguageError: <text>:1:22: there is no stream 'trafic'
        SELECT count(*) FROM trafic [RANGE 5 minutes]
                             ^
      declare it before: CREATE STREAM trafic (ts TIMESTAMP, ...)
    """
    if not isinstance(text, str):
        raise DeclarationError(f"a script is a text, not {text!r}: give the SQL itself, or Path(file).read_text()")
    named = {name: _named(name, stream) for name, stream in streams.items()}
    return SqlScript(read_script(text, file, [stream.declared for stream in named.values()]), named)


@dataclass(frozen=True)
class SqlScript:
    """A script that was read and checked, ready to start. Made by `eventide.sql`."""

    script: Script
    streams: Mapping[str, EventStream]
    """Those that were made in Python."""

    @property
    def plan(self) -> Program:
        """The streams and queries as plan nodes."""
        return self.script.program

    def start(
        self,
        sinks: Mapping[str, GivenSink] | None = None,
        checkpoint: str | PathLike[str] | None = None,
        *,
        spark: SparkSession | None = None,
        engine: str | None = None,
        format: str = "parquet",
        bounded: bool | None = None,
        driver_memory: int | str | None = None,
        replace: bool = False,
        accept: bool = False,
        backfill: Iterable[str] = (),
    ) -> RunningQueries:
        """Start all queries of the script together.

        `sinks` are given by the name of the query, and win over INTO in the script. By default the script runs on
        Spark: in the session `spark`, else in the active one, else in a new one. With `engine="local"`, or over streams
        of Arrow data, it runs in this process. The other parameters are those of `ContinuousQuery.start`;
        `backfill` names queries.
        """
        if not self.plan.steps:
            raise DeclarationError("this script has no query to start: add a SELECT")
        given = dict(sinks or {})
        for name in given:
            if self.plan.operator(name) is None:
                self.plan.query(name)
        settings = RunSettings.of(self.script.settings)
        memory = settings.driver_memory if driver_memory is None else memory_bytes(driver_memory)
        opened = {**self._named_sinks(), **{name: given_sink(sink, format) for name, sink in given.items()}}
        frames, inputs = self._given()
        session = spark or next((frame.sparkSession for frame in frames.values()), None)
        asked = checked_engine(engine) or settings.engine
        if engine == "local" and frames:
            raise DeclarationError(f"stream {min(frames)!r} is a DataFrame, which runs on Spark: leave engine out")
        chosen = "local" if inputs else "spark" if session is not None else asked
        where = chosen_engine(chosen, self.plan)
        program = with_comparisons(self.plan, self.script.functions)
        functions = registered(self.script.functions, self.plan)
        consent = Consent(accept, tuple(backfill))

        def made(folder: str | Storage) -> Running:
            tick, flush = settings.tick or TICK, settings.flush_rows
            if where == "local":
                from eventide.engine.local.engine import LocalEngine

                opened_inputs = {name: data.opened(self.plan.stream(name)) for name, data in inputs.items()}
                return LocalEngine(
                    program,
                    folder,
                    opened,
                    opened_inputs,
                    every=settings.every or 0.0,
                    tick=tick,
                    backend=local_backend(functions, run=True),
                    flush_rows=flush,
                    pace=settings.pace,
                    scheduling=settings.scheduling,
                    consent=consent,
                )
            from eventide.engine.operators.placement import DRIVER_MEMORY
            from eventide.engine.spark.engine import SparkEngine

            pause = None if settings.every is None else f"{settings.every} seconds"
            there = _session(session, settings, formats_of(program, self.script.outputs))
            register_on_spark(there, functions)
            return SparkEngine(
                there,
                program,
                folder,
                opened,
                frames,
                every=pause,
                tick=tick,
                driver_memory=DRIVER_MEMORY if memory is None else memory,
                flush_rows=flush,
                pace=settings.pace,
                scheduling=settings.scheduling,
                consent=consent,
            )

        place, ends = checkpoint or settings.checkpoint, bool(inputs) if bounded is None else bounded

        def watched(folder: str | Storage) -> Running:
            running = made(folder)
            if self.script.alerts and not ends:
                try:
                    watch(running).add(self.script.alerts)
                except BaseException:
                    running.stop()
                    raise
            return running

        return running_in(watched, place, opened, given, format, ends, replace)

    def run(self, *, spark: SparkSession | None = None, engine: str | None = None) -> dict[str, pa.Table]:
        """Read the rows that are there now, close every window, and return all results by the name of the query.

        A `LostRowsWarning` says how many rows were late or rejected.
        """
        with self.start(dict.fromkeys(self._named_sinks()), spark=spark, engine=engine, bounded=True) as running:
            return running.finished()

    def _given(self) -> tuple[dict[str, DataFrame], dict[str, ArrowData]]:
        given = {name: stream.given for name, stream in self.streams.items()}
        frames = {name: rows.frame for name, rows in given.items() if isinstance(rows, SparkRows)}
        inputs = {name: rows for name, rows in given.items() if isinstance(rows, ArrowData)}
        if frames and inputs:
            raise DeclarationError("DataFrames run on Spark and Arrow data in this process: one script has one of them")
        return frames, inputs

    def _named_sinks(self) -> dict[str, Sink]:
        return {
            output.query: given_sink(None)
            if output.kind == "console"
            else sink_of(output.kind, output.path, dict(output.options))
            for output in self.script.outputs
        }


def _named(name: str, stream: EventStream) -> EventStream:
    """The stream under the name by which a script knows it."""
    from eventide.api.stream import EventStream

    if not isinstance(stream, EventStream):
        raise DeclarationError(f"{name} is {stream!r}, no stream: make one with eventide.stream(df, time='ts')")
    if not NAME.fullmatch(name):
        raise DeclarationError(f"{name!r} cannot name a stream: use letters, digits and underscores, a letter first")
    return replace(stream, declared=replace(stream.declared, name=name))


def _session(given: SparkSession | None, settings: RunSettings, formats: Set[str]) -> SparkSession:
    from pyspark.sql import SparkSession

    from eventide.launch.spark_session import local_session, settle
    from eventide.sources.spark_errors import refuse_connect

    running = given or SparkSession.getActiveSession()
    if running is None:
        connectors = missing_settings(formats, settings.spark, (), version("pyspark"))
        return local_session(settings.master or "local[*]", {**settings.spark, **connectors})
    refuse_connect(running, "the session")
    settle(running, settings.spark)
    return running
