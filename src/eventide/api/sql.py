"""A script in Eventide's SQL, from Python.

Law: the text is read and checked as a whole before anything runs. What would go to the console is kept in memory
instead, to be asked for with `results()`. Settings in the text hold unless `start` is told otherwise.

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

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING

from eventide.api.given_sink import given_sink
from eventide.api.query import GivenSink
from eventide.api.running_query import RunningQueries
from eventide.api.start import running_in
from eventide.commands.engines import chosen_engine
from eventide.commands.settings import RunSettings, checked_engine
from eventide.engine.running import Running
from eventide.errors import DeclarationError
from eventide.language.script import Script, read_script
from eventide.plan.program import Program
from eventide.sinks.by_name import sink_of
from eventide.sinks.sink import Sink

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TICK = 1.0


def sql(text: str, file: str | None = None) -> SqlScript:
    """Read a script; `file` is its name in errors.

    >>> sql("SELECT count(*) FROM trafic [RANGE 5 minutes]").plan
    Traceback (most recent call last):
        ...
    eventide.errors.LanguageError: <text>:1:22: there is no stream 'trafic'
        SELECT count(*) FROM trafic [RANGE 5 minutes]
                             ^
      declare it before: CREATE STREAM trafic (ts TIMESTAMP, ...)
    """
    return SqlScript(read_script(text, file))


@dataclass(frozen=True)
class SqlScript:
    """A script that was read. Made by `eventide.sql`."""

    script: Script

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
        bounded: bool = False,
    ) -> RunningQueries:
        """Start all queries of the script together.

        `sinks`, by the name of the query, go before what the script names. On Spark, which is the default, in the
        session given, else the active one, else a new one; `engine="local"` runs it in this process. `checkpoint` and
        `bounded` as in `ContinuousQuery.start`.
        """
        if not self.plan.queries:
            raise DeclarationError("this script has no query to start: add a SELECT")
        given = dict(sinks or {})
        for name in given:
            self.plan.query(name)
        settings = RunSettings.of(self.script.settings)
        opened = {**self._named_sinks(), **{name: given_sink(sink, format) for name, sink in given.items()}}
        chosen = "spark" if spark is not None else checked_engine(engine) or settings.engine

        def made(folder: str) -> Running:
            if chosen_engine(chosen, self.plan) == "local":
                from eventide.engine.local_engine import LocalEngine

                tick, every = settings.tick or TICK, settings.every or 0.0
                return LocalEngine(self.plan, folder, opened, every=every, tick=tick)
            from eventide.engine.spark_engine import SparkEngine

            pause = None if settings.every is None else f"{settings.every} seconds"
            session = spark or _session(settings)
            return SparkEngine(session, self.plan, folder, opened, every=pause, tick=settings.tick or TICK)

        return running_in(made, checkpoint or settings.checkpoint, opened, given, format, bounded)

    def _named_sinks(self) -> dict[str, Sink]:
        return {
            output.query: given_sink(None)
            if output.kind == "console"
            else sink_of(output.kind, output.path, dict(output.options))
            for output in self.script.outputs
        }


def _session(settings: RunSettings) -> SparkSession:
    from pyspark.sql import SparkSession

    from eventide.engine.spark_session import local_session

    return SparkSession.getActiveSession() or local_session(settings.master or "local[*]", settings.spark)
