"""The Spark engine: one streaming query over all declared streams; each of its micro-batches is a round.

Laws. All streams are one union, each row tagged with its stream: one offset log, one round. Spark runs a batch again
after a crash with the same rows; a batch that is part of a committed round is not run twice. In silence the engine
itself makes rounds, only when something waits for the clock, and without a Spark job."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from eventide.engine.introspection.status import Status
from eventide.engine.operators.placement import DRIVER_MEMORY
from eventide.engine.round.engine import Engine, Observer
from eventide.engine.round.report import RoundReport
from eventide.engine.running import Running
from eventide.engine.scheduling.queue_pace import QueuePace
from eventide.engine.scheduling.trace import Trace
from eventide.engine.spark.backend import SparkBackend
from eventide.engine.spark.file_reduce import FileBatch
from eventide.engine.spark.log import SparkLog
from eventide.engine.spark.past import past_of
from eventide.engine.spark.progress import backlogs, has_read_all
from eventide.engine.spark.rearrangement import Rearrangement
from eventide.engine.spark.retries import RETRY_SECONDS, Retries, StoppedError
from eventide.engine.tables import TableReads
from eventide.errors import DeclarationError, EngineError, EventideError
from eventide.eventtime.scheduling.options import Scheduling
from eventide.plan.declared.evolution import QUERY, STREAM, Begin, Consent
from eventide.plan.declared.program import Program
from eventide.plan.expressions.columns import quoted
from eventide.plan.sql.stream_rows import MALFORMED
from eventide.sinks.sink import Sink
from eventide.sources.captured import Captures, where_read
from eventide.sources.moved_files import follow_moves, noted_in
from eventide.sources.spark_errors import of_spark, refuse_connect
from eventide.sources.spark_input import read_stream, read_table
from eventide.storage.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


TAG = "__stream"
WAIT = 0.01
"""Seconds between two rounds without new rows, while rows wait in a queue."""

STOP_SECONDS = 10.0
"""So long a query of Spark has to stop once no round is under way."""


class SparkEngine(Running):
    """A program on Spark. `frames` are streaming DataFrames for streams without a declared input.

    `every`: start a round at most so often (such as `1 second`); by default the next one starts when one has ended.
    `tick`: seconds after which the clock alone may close windows. `by_files=False` leaves also the reduce of Parquet
    files to Spark SQL (`file_reduce`). `flush_rows`: about so many results of a query are emitted in one round.
    `scheduling`: when silent streams are asked, and by which heartbeats operators go; `trace` is called with every
    decision about that. `pace`: how much goes through queues in a round. `consent`: what a changed
    program may do to the state of the checkpoint.
    """

    def __init__(
        self,
        spark: SparkSession,
        program: Program,
        checkpoint: str | Storage,
        sinks: Mapping[str, Sink] | None = None,
        frames: Mapping[str, DataFrame] | None = None,
        every: str | None = None,
        tick: float = 1.0,
        observer: Observer | None = None,
        driver_memory: int = DRIVER_MEMORY,
        by_files: bool = True,
        flush_rows: int | None = None,
        scheduling: Scheduling | None = None,
        trace: Trace | None = None,
        pace: QueuePace | None = None,
        consent: Consent | None = None,
    ) -> None:
        refuse_connect(spark, "this session")
        self.spark = spark
        self._every = every
        self._tick = tick
        given = dict(frames or {})
        storage = Storage.at(checkpoint)
        self._captures = Captures([one for one in program.inputs if one.name not in given], storage)
        self._frames = {
            stream.name: _with_malformed(given[stream.name])
            if stream.name in given
            else read_stream(spark, where_read(stream, storage))
            for stream in program.inputs
            if stream.table is None or stream.name in given
        }
        super().__init__(
            Engine(
                program,
                SparkBackend(spark),
                checkpoint,
                sinks,
                observer,
                driver_memory=driver_memory,
                flush_rows=flush_rows,
                scheduling=scheduling,
                trace=trace,
                pace=pace,
                consent=consent,
            )
        )
        tables = [one for one in program.inputs if one.name not in self._frames]
        self._tables = TableReads(self.engine, tables, partial(read_table, spark))
        self._log = SparkLog(self.engine.checkpoint.storage)
        self._rearrangement = Rearrangement(self.engine.checkpoint.storage)
        # A frame of the user's may have done anything to the rows of its files.
        self._declared_alone = not given
        self._knows_files = by_files and self._declared_alone and self.engine.checkpoint.storage.near
        self._query: StreamingQuery | None = None
        self._retries = Retries(spark, self.engine, self.stopping)

    def start(self, bounded: bool = False) -> SparkEngine:
        """Begin. `bounded`: take what is there now, close everything, and end."""
        self.begin()
        self._retries.bounded = bounded
        for sentence in self._retries.not_answering():
            self._retries.tell(sentence)
        try:
            self._rearrangement.finish()
            self._log.take_back(self.engine.last_batch)
            with self.exclusively():
                self._evolve()
            self._captures.look()
            self._follow_moves()
            self._query = self._started(bounded)
        except BaseException as failure:
            self.failure = failure
            self._close()
            self.finish()
            raise
        self.in_thread("eventide", lambda: self._watch(bounded))
        if self._captures.every is not None and not bounded:
            self.in_thread("eventide-captures", partial(self._captures.ask, self.stopping))
        return self

    def status(self) -> Status:
        """How the engine stands after its last round, and what waits in the partitions of topics."""
        status, waits = super().status(), backlogs(self._query, list(self._frames))
        return replace(status, streams=tuple(replace(one, backlog=waits.get(one.name, {})) for one in status.streams))

    def _evolve(self) -> None:
        """Let a change of the program happen, and what a round without rows was to be that died."""
        storage, evolution = self.engine.checkpoint.storage, self.engine.evolution
        noted, now = noted_in(storage), tuple(self._frames)
        noted = noted.without(evolution.of(STREAM, Begin.OTHER_INPUT))
        others = bool(noted.streams) and noted.streams != now and self._declared_alone
        if others:
            # The batch that was begun is one of other sources.
            self.engine.forget_intent()
        if evolution.history_of:
            self.engine.backfill(self._history(noted.streams))
        self.noted(self.engine.resume())
        self.commit_evolution()
        if self.engine.pending is None:
            self.noted(self._tables.refresh())
        if others:
            read = [name for name, stream in self.engine.streams.items() if stream.losses.rows]
            self._rearrangement.begin(noted, now, read)
            self._log.take_back_begun(self.engine.last_batch)

    def _history(self, known: Sequence[str]) -> Iterator[dict[str, DataFrame]]:
        """All rows that were read before the last round, of the streams whose past is wanted."""
        evolution, batch = self.engine.evolution, self.engine.last_batch
        for stream in self.engine.program.streams:
            if stream.name not in evolution.history_of or batch < 0:
                continue
            place = known.index(stream.name) if stream.name in known and self._declared_alone else None
            read = where_read(stream, self.engine.checkpoint.storage)
            rows = None if place is None else past_of(self.spark, read, self._log, place, batch)
            if rows is None:
                wanted = ", ".join(evolution.of(QUERY, Begin.BEGINNING))
                raise DeclarationError(
                    f"stream {stream.name!r} cannot be read again from its beginning, as a backfill of {wanted} would "
                    "have to: only files and topics of Kafka can. Let it begin at the present"
                )
            yield from ({stream.name: some} for some in rows)

    def _follow_moves(self) -> None:
        storage = self.engine.checkpoint.storage
        streams = [where_read(one, storage) for one in self.engine.program.streams if one.name in self._frames]
        follow_moves(self.spark, storage, streams, self._declared_alone)

    def _started(self, bounded: bool) -> StreamingQuery:
        storage = self.engine.checkpoint.storage
        # Named after the checkpoint: one session can run several engines, and Spark wants names that differ.
        writer = self._union().writeStream.foreachBatch(_weakly(self._on_batch))
        writer = writer.queryName(f"eventide {storage.where}")
        writer = writer.option("checkpointLocation", storage.uri("spark"))
        if bounded:
            writer = writer.trigger(availableNow=True)
        elif self._every is not None:
            writer = writer.trigger(processingTime=self._every)
        try:
            return writer.start()
        except Exception as failure:
            raise of_spark(failure, "Spark cannot start the streams") from failure

    def _stop(self) -> None:
        """Wait for the round under way; the batch after it is refused.

        Spark may be waiting for a broker that does not answer, and hear of nothing for minutes: it is left to that.
        """
        with self.lock:
            query = self._query
        if query is not None:
            stopping = threading.Thread(target=_stop_query, args=(query,), name="eventide-stop-query", daemon=True)
            stopping.start()
            stopping.join(STOP_SECONDS)

    def _union(self) -> DataFrame:
        from pyspark.sql import functions

        if len(self._frames) == 1:
            return next(iter(self._frames.values()))
        tagged = [
            frame.select(
                functions.lit(number).alias(TAG),
                *(functions.col(quoted(name)).alias(_tagged(number, name)) for name in frame.columns),
            )
            for number, frame in enumerate(self._frames.values())
        ]
        union = tagged[0]
        for frame in tagged[1:]:
            union = union.unionByName(frame, allowMissingColumns=True)
        return union

    def _rows(self, batch: DataFrame, number: int) -> dict[str, DataFrame | FileBatch]:
        """The rows of each stream, and their files where these are known."""
        parted = self._parted(batch)
        files = self._log.files_of(number) if self._knows_files else []
        if len(files) != len(parted):
            return {**parted}
        # A stream without new files has no rows: nothing of it needs to be asked.
        return {
            name: frame if uris is None else FileBatch(frame, uris)
            for (name, frame), uris in zip(parted.items(), files, strict=True)
            if uris is None or uris
        }

    def _parted(self, batch: DataFrame) -> dict[str, DataFrame]:
        """The rows of each stream."""
        from pyspark.sql import functions

        if len(self._frames) == 1:
            return {next(iter(self._frames)): batch}
        return {
            name: batch.where(functions.col(TAG) == number).select(
                *(functions.col(quoted(_tagged(number, column))).alias(column) for column in frame.columns)
            )
            for number, (name, frame) in enumerate(self._frames.items())
        }

    def _on_batch(self, batch: DataFrame, number: int) -> None:
        with self.exclusively():
            if number == self.engine.last_batch:
                # It is part of a committed round; only Spark had not heard of that when it died.
                return
            if self.stopping.is_set():
                # Returning would be a promise that the batch is done.
                raise StoppedError
            try:
                pending = self.engine.pending
                if pending is None or pending.batch != number:
                    # A round that is run again has to see the tables that it saw.
                    self.noted(self._tables.refresh())
                self._log.confirm(number)
                portions = {"spark": self._log.portion(number)}
                round = partial(self._round_of, batch, number, portions)
                self.noted(self._retries.carried_out(round))
            except StoppedError:
                raise
            except BaseException as failure:
                # Spark would tell it as a Java exception; what we know is kept for whoever waits.
                self.failure = self.failure or failure
                raise

    def _round_of(self, batch: DataFrame, number: int, portions: dict[str, dict[str, Any]]) -> RoundReport:
        return self.engine.round(self._rows(batch, number), batch=number, portions=portions)

    def _watch(self, bounded: bool) -> None:
        """Tick until the query has ended; then close what is open, if that was asked for."""
        try:
            while not self._has_ended(bounded):
                if self.stopping.is_set():
                    # At once it would cancel the jobs of the round under way.
                    self._stop()
                    break
                if not bounded and self._is_silent() and self.lock.acquire(blocking=False):
                    try:
                        with self.exclusively():
                            self.noted(self._retries.carried_out(self.engine.tick))
                    finally:
                        self.lock.release()
            while bounded and self.engine.is_behind and not self.stopping.is_set():
                with self.exclusively():
                    self.noted(self._retries.carried_out(self.engine.tick))
            if bounded and not self.stopping.is_set() and not self.engine.ended:
                with self.exclusively():
                    self.noted(self._retries.carried_out(self.engine.end))
        except BaseException as failure:
            if self.failure is None and not self.stopping.is_set():
                self.failure = failure if isinstance(failure, EventideError) else of_spark(failure, "Spark failed")
            self.stopping.set()
            if self._query is not None:
                _stop_query(self._query)
        finally:
            self._close()
            self.finish()

    def _is_silent(self) -> bool:
        """Whether the clock may go on by itself: that of Kafka does where no record waits."""
        assert self._query is not None
        return not self.engine.by_clock_of_kafka or has_read_all(self._query, list(self._frames))

    def _has_ended(self, bounded: bool) -> bool:
        """Wait for a tick, and whether the query ended in it; a source that does not answer is tried again."""
        assert self._query is not None
        try:
            return bool(self._query.awaitTermination(WAIT if self.engine.is_behind else self._tick))  # type: ignore[arg-type]
        except Exception as failure:
            # A round that failed has been tried again where that is of use.
            reason = None if self.failure is not None else self._retries.missing(failure)
            if reason is None or self.stopping.is_set():
                raise
            if bounded:
                raise EngineError(f"Spark has given up: {reason}") from failure
            self._retries.tell(reason)
            if not self.stopping.wait(RETRY_SECONDS):
                with self.exclusively():
                    self._query = self._started(bounded)
            return False

    def _close(self) -> None:
        self._shut()
        self.engine.close()
        self.engine.backend.close()


def _stop_query(query: StreamingQuery) -> None:
    # Spark itself may be gone, or be interrupted while it waits for a source; either way nothing runs any more.
    with suppress(Exception):
        query.stop()


class _FailedError(Exception):
    """What Spark hears of a round that failed; the engine knows the rest."""


def _weakly(method: Callable[[DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
    """The method behind a weak reference: Spark holds it until the process ends, and must not hold the engine."""
    reference = weakref.WeakMethod(method)

    def call(batch: DataFrame, number: int) -> None:
        try:
            _found(reference)(batch, number)
            return
        except BaseException as failure:
            message = str(failure)
        # The frames of the other one would keep everything.
        raise _FailedError(message)

    return call


def _found(reference: weakref.WeakMethod[Callable[[DataFrame, int], None]]) -> Callable[[DataFrame, int], None]:
    method = reference()
    if method is None:
        raise StoppedError
    return method


def _with_malformed(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    return frame if MALFORMED in frame.columns else frame.withColumn(MALFORMED, functions.lit(None).cast("string"))


def _tagged(number: int, column: str) -> str:
    return f"s{number}_{column}"
