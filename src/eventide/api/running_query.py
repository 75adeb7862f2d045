"""Handles on running queries: status, results, early answers, stopping, and how a notebook shows them.

Law: queries that were started together run in one engine and end together. What made it fail is raised to everyone who
asks, as one of our own errors.

*In a notebook.* A running query shows how far time is, who holds it back, which windows are open and why, and its last
results, and keeps up with them (`pages/notebook.py`).
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.endpoint.certificate import Certificate
from eventide.endpoint.discovery import EXPOSED, LOOPBACK, Address
from eventide.endpoint.lifecycle import Endpoint, listen
from eventide.engine.early.group_values import microseconds, patterns_in
from eventide.engine.introspection.status import Status
from eventide.engine.running import Running
from eventide.errors import EngineError, EventideError, LostRowsWarning
from eventide.eventtime.early.prod import Prod
from eventide.eventtime.instant import FOREVER
from eventide.report.status import LossReport
from eventide.report.why import WhyOpen, window_words
from eventide.results.accuracy import AccuracySummary
from eventide.sinks.sink import Memory, Sink
from eventide.watch.alert import Alert
from eventide.watch.watching import watch

if TYPE_CHECKING:
    from opentelemetry.trace import TracerProvider
    from pyspark.sql import DataFrame, SparkSession

    from eventide.console.lifecycle import Console
    from eventide.console.subject import LiveSubject


class RunningQueries(Mapping[str, "RunningQuery"]):
    """Running queries that were started together, by name. Made by `eventide.start`; `with` stops them at its end."""

    def __init__(
        self, engine: Running, sinks: Mapping[str, Sink], folders: Mapping[str, Path], checkpoint: str | None = None
    ) -> None:
        self.engine = engine
        self.losses = LossReport()
        """Late rows by stream, and rejected rows by reason, since it was started."""
        self.losses.watch(engine)
        self._checkpoint = checkpoint
        self._queries = {name: RunningQuery(name, self, sink, folders.get(name)) for name, sink in sinks.items()}
        self._failure: EventideError | None = None
        self._endpoint: Endpoint | None = None
        self._console: Console | None = None

    def __getitem__(self, name: str) -> RunningQuery:
        if name not in self._queries:
            raise KeyError(f"there is no query {name!r}; there are: {', '.join(self._queries)}")
        return self._queries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)

    @property
    def isActive(self) -> bool:  # noqa: N802
        """Whether the engine still runs."""
        return not self.engine.ended.is_set()

    def status(self) -> Status:
        """Return the status after the last round: rows, heartbeats, lag, drop ratio, where the state is."""
        return self.engine.status()

    def why(self, query: str) -> list[WhyOpen]:
        """Say for each open window of a query which source keeps it open, by which rule, and when it will close."""
        return [WhyOpen.of(window) for window in self.engine.why(query)]

    def end_source(self, stream: str, source: str) -> None:
        """Declare that a source of a stream is over: it is not waited for any more, until it sends rows again."""
        self.engine.end_source(stream, source)

    def listen(self, host: str = LOOPBACK, port: int = 0, cert: str | None = None, key: str | None = None) -> Endpoint:
        """Listen for questions of other processes: `eventide prod`, or HTTP with the token.

        Port 0 is any free one. With the files of a certificate and its key, in PEM, it is HTTPS; without, on a host
        other than loopback, there is a warning. It ends with the queries, or with `close()` of the returned endpoint.
        """
        if self._endpoint is not None and not self._endpoint.closed:
            raise EngineError(f"it listens already, at {self._endpoint.url}: close that first")
        address = Address.given(host, port)
        certificate = Certificate.given(cert, key)
        if not address.is_loopback and certificate is None:
            warnings.warn(f"{address.shown}: {EXPOSED}", stacklevel=2)
        self._endpoint = listen(self.engine, address, window_words, certificate=certificate)
        return self._endpoint

    def console(self, host: str = LOOPBACK, port: int = 0, cert: str | None = None, key: str | None = None) -> Console:
        """Open the console, where these queries listen; `print(running.console().link())` and open it in a browser.

        It shows time, plan, results, losses and the engine. Where they listen already, the address stays.
        """
        from eventide.console.lifecycle import open_console

        if self._console is None or self._endpoint is None or self._endpoint.closed:
            if self._endpoint is None or self._endpoint.closed:
                self.listen(host, port, cert, key)
            assert self._endpoint is not None
            self._console = open_console(self.engine, self._endpoint)
        return self._console

    def on_alert(self, function: Callable[[Alert], object]) -> None:
        """Call a function with every alert: when it is raised, and again when it has cleared (`alert.cleared`).

        The engine is watched from then on: silent sources, clocks that jump or drift, violated bounds, growing queues,
        slow sinks. `alert.words()` says what was expected and what was seen.
        """
        watch(self.engine).board.listen(function)

    def export_spans(self, provider: TracerProvider | None = None, endpoint: str | None = None) -> None:
        """Tell OpenTelemetry of every round and of heartbeats on their way; needs `eventide[otel]`.

        Spans go to `provider`, else over OTLP/HTTP to the collector at `endpoint`, else where OpenTelemetry's standard
        variables say.
        """
        from eventide.telemetry.otel import export, export_otlp

        if provider is None:
            export_otlp(self.engine, endpoint)
        else:
            export(self.engine, provider)

    def export_lineage(self, to: str, name: str) -> None:
        """Tell OpenLineage what these queries read and write, and how they end: a file, or the address of a catalogue.

        They are a job of this name. Its outputs are the directories that results are written into.
        """
        from eventide.telemetry.openlineage import Job, dataset, export

        found = {query: dataset(format, place, {}) for query, (place, format) in self.engine.engine.directories.items()}
        outputs = {query: place for query, place in found.items() if place is not None}
        export(self.engine, Job(name, None, outputs, bounded=False), to)

    def alerts(self) -> tuple[Alert, ...]:
        """Return the alerts that stand now; the engine is watched from the first call on."""
        return watch(self.engine).board.standing

    def results(self) -> dict[str, pa.Table]:
        """Return all results so far of every query; see `RunningQuery.results`."""
        return {name: query.results() for name, query in self.items()}

    def finished(self) -> dict[str, pa.Table]:
        """Wait for the end and return all results; warn of rows that were late or rejected."""
        self.awaitTermination()
        for sentence in self.losses.sentences(self._checkpoint, ".start(checkpoint=...)"):
            # The caller of `.run()`, which called this.
            warnings.warn(sentence, LostRowsWarning, stacklevel=3)
        return self.results()

    def stop(self) -> None:
        """Finish the current round, commit it, and end."""
        self.engine.stop()

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802
        """Wait for the end; return False after `timeout` seconds. Raises the error that made it fail."""
        if self._failure is None:
            try:
                return self.engine.await_end(timeout)
            except EventideError as failure:
                self._failure = failure
        raise self._failure

    def exception(self) -> EventideError | None:
        """Return the error that made it fail, or None."""
        if self._failure is None and not self.isActive:
            try:
                self.awaitTermination(0)
            except EventideError as failure:
                return failure
        return self._failure

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<{', '.join(self)}: {self._state}>"

    @cached_property
    def subject(self) -> LiveSubject:
        """What a notebook shows of them."""
        from eventide.console.subject import LiveSubject

        return LiveSubject(self.engine)

    @property
    def _state(self) -> str:
        if self.isActive:
            return "running"
        return "failed" if self.exception() is not None else "ended"

    def _ipython_display_(self) -> None:
        for query in self.values():
            query._ipython_display_()


class RunningQuery:
    """A running query. Made by `start`; `with` stops it at its end."""

    def __init__(self, name: str, together: RunningQueries, sink: Sink, folder: Path | None) -> None:
        self.name = name
        self.together = together
        """All queries that were started with it; they end together."""
        self.sink = sink
        self._folder = folder

    @property
    def isActive(self) -> bool:  # noqa: N802
        """Whether the query still runs."""
        return self.together.isActive

    def status(self) -> Status:
        """Return the status after the last round: rows, heartbeats, lag, drop ratio, where the state is."""
        return self.together.status()

    def why(self) -> list[WhyOpen]:
        """Say for each open window which source keeps it open, by which rule, and when it will close.

        The closing time holds if no more rows come.
        """
        return self.together.why(self.name)

    def prod(self, up_to: int | datetime | None = None, groups: Mapping[str, Any] | None = None) -> pa.Table:
        """Return early results of the open windows: of those that end by `up_to`, and of `groups` with these values.

        Beside a value a group may have a list of them, or a range: `{"lane": [1, 2], "segment": {"between": [3, 7]}}`.

        Law: asking changes no final result. The answer belongs to the last committed round (micro-batch) and does not
        wait for the current one; any thread may ask.
        """
        last = FOREVER if up_to is None else up_to if isinstance(up_to, int) else microseconds(up_to)
        running = self.together.engine
        patterns = patterns_in(self.name, running.engine.plan.queries.get(self.name), groups or {})
        return running.prod(self.name, Prod(last, groups=patterns)).table()

    def listen(self, host: str = LOOPBACK, port: int = 0, cert: str | None = None, key: str | None = None) -> Endpoint:
        """Let other processes ask this query, and those started with it; see `RunningQueries.listen`."""
        return self.together.listen(host, port, cert, key)

    def console(self, host: str = LOOPBACK, port: int = 0, cert: str | None = None, key: str | None = None) -> Console:
        """Open the console of this query, and those started with it; see `RunningQueries.console`."""
        return self.together.console(host, port, cert, key)

    def accuracy(self) -> AccuracySummary | None:
        """Return how accurate early results were, compared with the final ones; None if there were none."""
        return self.together.engine.accuracy(self.name)

    def results(self) -> pa.Table:
        """Return all results so far, if they are in memory or in Parquet files of a directory of this machine."""
        if isinstance(self.sink, Memory):
            return self.sink.table(self.name)
        if self._folder is not None:
            files = sorted(self._folder.glob(f"{self.name}-*.parquet"))
            tables = [pq.read_table(file) for file in files]
            return pa.concat_tables(tables, promote_options="default") if tables else pa.table({})
        raise EngineError(
            f"the results of {self.name!r} went to {type(self.sink).__name__}: look for them there, or start without a "
            "sink to keep them in memory"
        )

    def toDF(self, spark: SparkSession | None = None) -> DataFrame:  # noqa: N802
        """Return all results so far as a Spark DataFrame."""
        from pyspark.sql import SparkSession

        session = spark or SparkSession.getActiveSession()
        if session is None:
            raise EngineError("there is no Spark session to make a DataFrame in: give one, .toDF(spark)")
        return session.createDataFrame(self.results())

    def stop(self) -> None:
        """Finish the current round, commit it, and end, also for queries that were started with it."""
        self.together.stop()

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802
        """Wait for the end; return False after `timeout` seconds. Raises the error that made it fail."""
        return self.together.awaitTermination(timeout)

    def exception(self) -> EventideError | None:
        """Return the error that made it fail, or None."""
        return self.together.exception()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"<{self.name}: {self.together._state}>"

    def live(self, update: Callable[[str], object], every: float = 1.0) -> None:
        """Call `update` with how the query stands, as HTML, every so many seconds and once at the end."""
        ended, subject = self.together.engine.ended, self.together.subject
        subject.begin()

        def tell() -> None:
            while not ended.wait(every):
                update(self._repr_html_())
            update(self._repr_html_())
            subject.end()

        threading.Thread(target=tell, name="eventide-live", daemon=True).start()

    def _ipython_display_(self) -> None:
        """How the query stands, in a notebook, kept up to date."""
        notebook = import_module("IPython.display")
        shown = notebook.display(notebook.HTML(self._repr_html_()), display_id=True)
        # Outside of a notebook nothing can be drawn again.
        if shown is not None and self.isActive:
            self.live(lambda html: shown.update(notebook.HTML(html)))

    def _repr_html_(self) -> str:
        from eventide.pages.notebook import query_html

        together = self.together
        results = self.results() if isinstance(self.sink, Memory) else None
        subject, rejected = together.subject, together.losses.rejected
        return query_html(self.name, together._state, subject.standing(), subject.history, results, rejected)
