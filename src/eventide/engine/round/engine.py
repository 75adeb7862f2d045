"""The engine: runs a program round by round, the same on Spark and on one machine.

Laws. Heartbeats of a round close windows in that round. A round happens all at once, when its record is committed;
before that it has not happened, and run again, at the clock it was meant to have, it gives the same. Every row of a
round is in a slice, in the late table, in the rejects table, or was wanted by no query.

    reduce      rows -> relations for operators, cells by source            (Spark SQL, or DuckDB)
    heartbeats  cells and clock -> heartbeats                               (the time core)
    advance     what has closed -> results, operator after operator         (SQL over relations)
    prod        prods that are due, over what is open -> early results
    emit        results -> sinks; late rows and rejects -> their tables     (idempotent by round)
    commit      one atomic record
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from eventide.engine.checkpoint.checkpoint import Checkpoint
from eventide.engine.checkpoint.record import Intent
from eventide.engine.checkpoint.written_results import missing_words, rounds_of, without
from eventide.engine.early.prodding import EarlyResults
from eventide.engine.early.step import EarlyStep
from eventide.engine.introspection.status import QueryStatus, Status
from eventide.engine.operators import factory
from eventide.engine.operators.operator import Work
from eventide.engine.operators.placement import DRIVER_MEMORY, place
from eventide.engine.operators.windows import first_after
from eventide.engine.relations.backend import Backend
from eventide.engine.relations.executor import Executor
from eventide.engine.relations.files import RelationFiles
from eventide.engine.round.advance import Scheduler
from eventide.engine.round.changed_program import backfilled
from eventide.engine.round.downstream import feeds_of
from eventide.engine.round.engine_state import EngineState
from eventide.engine.round.heartbeats import Ingestion, silent_moments
from eventide.engine.round.reduce import Reducer, ReduceStep
from eventide.engine.round.report import Observer, Positions, RoundInput, RoundReport
from eventide.engine.round.side_tables import SideTables
from eventide.engine.round.steps import FEW_ROWS, RoundSteps
from eventide.engine.scheduling.queue_pace import QueuePace
from eventide.engine.scheduling.trace import Trace
from eventide.engine.steady_clock import SteadyClock
from eventide.engine.stream_progress import StreamProgress
from eventide.errors import DeclarationError, EngineError
from eventide.eventtime.early.prod import Prod
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.scheduling.options import IdlePoller, Scheduling
from eventide.plan.binding import BoundProgram, as_run
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.evolution import Consent, Evolution
from eventide.plan.declared.program import Program
from eventide.plan.declared.query import Query
from eventide.plan.declared.stream import Timestamps
from eventide.results.results import Results
from eventide.sinks.sink import FileSink, Sink
from eventide.storage.storage import Storage

__all__ = ["Engine", "Observer", "RoundReport"]


class Engine:
    """Runs a program round by round, from its last committed round on.

    `now` is the wall clock in microseconds, for rounds that are given no clock. `driver_memory`: so much state stays
    with the driver, of all operators together. `flush_rows`: about so many results of a query are emitted in one round,
    the others in the next ones. `scheduling` says when idle streams are asked and by which heartbeats operators go;
    `trace` is called with every decision about that. `pace` says how many rows go through the queues before expensive
    functions. `consent`: what a changed program may do to the state of the checkpoint.
    """

    def __init__(
        self,
        program: Program,
        backend: Backend,
        checkpoint: str | Storage,
        sinks: Mapping[str, Sink] | None = None,
        observer: Observer | None = None,
        now: Callable[[], int] | None = None,
        driver_memory: int = DRIVER_MEMORY,
        flush_rows: int | None = None,
        scheduling: Scheduling | None = None,
        trace: Trace | None = None,
        pace: QueuePace | None = None,
        consent: Consent | None = None,
    ) -> None:
        if flush_rows is not None and flush_rows < 1:
            raise DeclarationError(f"flush_rows {flush_rows} would never tell anything: give 1 or more")
        self.backend = backend
        self._flush_rows = flush_rows
        self.sinks = dict(sinks or {})
        self.observer = observer or (lambda round, step: None)
        self._now = now or SteadyClock()
        self._stamps = any(stream.timestamps is not Timestamps.EXTERNAL for stream in program.streams)
        self.scheduling = scheduling or Scheduling()
        program = as_run(program, self.scheduling.heartbeats)
        self._trace = trace
        self.pace = pace or QueuePace()
        self.seconds: dict[str, float] = {}
        self.work: dict[str, Work] = {}
        """What every stream and operator has done since the start."""
        self.on_results: list[Callable[[Results], None]] = []
        """Called with the results of a query before they are committed; must not raise."""
        self.last_rows = FEW_ROWS
        self._has_run = False
        self._asker = IdlePoller(self.scheduling.timestamps)
        self.early = EarlyStep(self)
        for name in self.sinks:
            if program.operator(name) is None:
                program.query(name)
        self.plan = BoundProgram.of(program, backend, with_results=self.sinks)
        self.checkpoint = Checkpoint.open(checkpoint)
        try:
            files = RelationFiles(self.checkpoint, backend.has_cluster)
            self.executor = Executor(backend, files, driver_memory)
            self.state = EngineState(self.plan, self.checkpoint, self.executor, consent)
            self.write_statements()
            self.early.publish()
            self.reduce_step = ReduceStep(self.executor)
            self.side_tables = SideTables(self.checkpoint.storage)
            self._rewind()
        except BaseException:
            self.checkpoint.close()
            raise

    # From the outside

    @property
    def program(self) -> Program:
        """The program that is run."""
        return self.plan.program

    @property
    def bound(self) -> Mapping[str, BoundQuery]:
        """The queries, bound to what they read."""
        return self.plan.queries

    def now(self) -> int:
        """The wall clock of the engine, in microseconds."""
        return self._now()

    @property
    def next_round(self) -> int:
        """The number of the round to come."""
        return self.state.round + 1

    @property
    def pending(self) -> Intent | None:
        """What the round to come was going to be when the engine died, if it got so far."""
        return self.checkpoint.pending(self.state.round)

    @property
    def last_batch(self) -> int:
        """The last batch of the source that is part of a committed round, -1 before the first."""
        return self.state.batch

    @property
    def ended(self) -> bool:
        """Whether a bounded run has come to its end."""
        return self.state.ended

    @property
    def is_behind(self) -> bool:
        """Whether rows wait in a queue: a round without new rows would let some go."""
        return any(operator.is_behind for operator in self.state.operators.values())

    @property
    def streams(self) -> dict[str, StreamProgress]:
        """The time of every stream."""
        return self.state.streams

    def round(
        self,
        rows: Mapping[str, Any],
        clock: int | None = None,
        heartbeats: Mapping[str, int] | None = None,
        batch: int | None = None,
        positions: Positions | None = None,
        over: Mapping[str, Iterable[str]] | None = None,
        portions: Mapping[str, dict[str, Any]] | None = None,
    ) -> RoundReport:
        """Run one round over these rows, by stream. `heartbeats` are promises given from outside.

        `over` names sources that are over with this round: time does not wait for them, until one speaks again.
        `portions` says which rows of the inputs these are: only the same ones are a round that died, run again.
        """
        ends = {name: list(sources) for name, sources in (over or {}).items()}
        for name in ends:
            self.program.stream(name, "sources are over of").check_named_sources()
        promised, read, portion_of = dict(heartbeats or {}), dict(positions or {}), dict(portions or {})
        return self._run(rows, clock, promised, batch, read, ending=False, over=ends, portions=portion_of)

    @property
    def by_clock_of_kafka(self) -> bool:
        """Whether a stream goes by the times that Kafka notes: silence is then where no record waits."""
        return any(stream.stream.stamped_by_broker for stream in self.streams.values())

    def tick(self, clock: int | None = None) -> RoundReport | None:
        """A round without rows, if the clock alone lets something close; None if nothing waits for it."""
        meant = self.pending
        if meant is not None:
            if meant.batch is None and not meant.ends:
                return self.resume()
            if meant.batch is not None and not self._has_run:
                # Its rows are about to come again.
                return None
            self.forget_intent()
        clock = self._now() if clock is None else clock
        if self._would_emit(clock, self._asker.asks(self.state.clock, clock)) or self.early.is_due(clock):
            return self._run({}, clock, {}, None, self.state.positions, ending=False)
        return None

    def resume(self) -> RoundReport | None:
        """Run a round without rows that was meant, and not committed, when the engine died; None if there is none.

        Not the last round of a bounded run: more may have come since, and goes before the end.
        """
        meant = self.pending
        if meant is None or meant.batch is not None or meant.ends:
            return None
        positions = self.state.positions
        return self._run({}, meant.clock, meant.heartbeats, None, positions, ending=False, over=meant.over)

    def forget_intent(self) -> None:
        """The rows of a round that was meant will not come again: what comes next is another round."""
        self.checkpoint.drop_after(self.state.round)

    def end(self, clock: int | None = None) -> RoundReport:
        """The last round of a bounded run: every stream is over, everything that is open closes."""
        return self._run({}, clock, dict.fromkeys(self.streams, FOREVER), None, self.state.positions, ending=True)

    def prod(self, query: str, prod: Prod | None = None) -> EarlyResults:
        """Early results of a query after the last round: of all open windows, or of some; in any thread."""
        return self.early.answer(query, prod or Prod())

    def add(self, query: Query, sink: Sink | None = None) -> None:
        """Run one more query from the next round on; it sees no rows of before: its first window starts after them."""
        plan = self.plan.with_query(query, self.backend)
        bound = plan.queries[query.name]
        latest = max(self.state.latest(way.source) for way in plan.ways_into(query.name))
        if sink is not None:
            sink.rewind(query.name, self.state.round)
            self.sinks[query.name] = sink
        self.plan, operator = plan, factory.start(bound, self.executor, first_after(bound, latest))
        # Made anew, not changed: someone may be reading the status.
        self.state.operators = {**self.state.operators, query.name: operator}
        self.write_statements()
        self.early.publish()

    def backfill(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Give queries that are to begin with all rows those of before the last round, some of each stream at a time.

        It is part of the next round, which happens with it or not at all.
        """
        self.state.operators = backfilled(self, rows)
        self.early.publish()

    @property
    def evolution(self) -> Evolution:
        """What the program, where it has changed, did to what the checkpoint holds."""
        return self.state.evolution

    def remove(self, name: str) -> None:
        """Forget a query and its slices; windows that it has open are not answered."""
        self.plan = self.plan.without_query(name)
        self.state.operators = {other: one for other, one in self.state.operators.items() if other != name}
        sink = self.sinks.pop(name, None)
        if sink is not None and sink not in self.sinks.values():
            sink.close()
        self.write_statements()
        self.early.publish()

    def close(self) -> None:
        """Let go of the checkpoint and the sinks."""
        for sink in {id(sink): sink for sink in self.sinks.values()}.values():
            sink.close()
        self.checkpoint.close()

    def status(self) -> Status:
        """The status after the last round, from which prods are answered too."""
        last, state = self.early.snapshot, self.state
        progress = state.progress(self.program, self.scheduling)
        streams = tuple(state.stream_status[one.name].with_left_out(progress, one) for one in self.program.streams)
        there = self.on_cluster()
        queries = tuple(QueryStatus.of(one, progress, name in there) for name, one in state.operators.items())
        queries = self.early.with_early(queries)
        found = (self.backend.name, last.number, last.clock, state.ended, streams, queries)
        return Status(*found, dict(self.seconds), scheduling=self.scheduling.words, work=self.work)

    # The round

    def _run(
        self,
        rows: Mapping[str, Any],
        clock: int | None,
        promises: dict[str, int],
        batch: int | None,
        positions: Positions,
        ending: bool,
        over: dict[str, list[str]] | None = None,
        portions: dict[str, dict[str, Any]] | None = None,
    ) -> RoundReport:
        for name in (*rows, *promises):
            self.program.stream(name, "rows came for")
        if self.ended and not ending and rows:
            raise EngineError(
                "this bounded run has ended and closed every window: give the rows that came later another checkpoint"
            )
        # Rows that are stamped by the clock must never fall behind the heartbeat of the round before.
        last = self.state.clock
        least = last + 1 if self._stamps and last != NEVER else last
        clock = max(self._now() if clock is None else clock, least)
        before = self.pending
        portion_of = portions or {}
        if before is not None and (before.batch, before.ends, before.portions) != (batch, ending, portion_of):
            # What died was another round: of other rows, or with rows where this has none.
            self.forget_intent()
        budgets = self.pace.budgets(self.program.operators)
        meant = self.checkpoint.intend(Intent(self.next_round, batch, clock, promises, over or {}, budgets, portion_of))
        given = RoundInput(
            self.next_round, batch, meant.clock, rows, positions, meant.heartbeats, meant.over, meant.budgets, ending
        )
        try:
            report = RoundSteps(self).run(given)
        except BaseException:
            self.state.roll_back(self.program)
            self.scheduler = self._made_scheduler()
            raise
        finally:
            self.backend.release()
        self._has_run = True
        self.early.publish()
        return report

    # Beginning and changing

    def _rewind(self) -> None:
        """Rounds after the last committed one have not happened, whatever sinks have seen of them."""
        self.side_tables.rewind(self.state.round)
        for name, sink in self.sinks.items():
            sink.rewind(name, self.state.round)
        self._look_for_results()

    @property
    def directories(self) -> dict[str, tuple[str, str]]:
        """Where results stay as files that another process can find, by query, and the format of these."""
        return {
            name: (sink.place, sink.format)
            for name, sink in self.sinks.items()
            if isinstance(sink, FileSink) and sink.place is not None
        }

    def _look_for_results(self) -> None:
        """Warn of result files of earlier rounds that are missing: they are not written again."""
        directories = self.directories
        for name, written in self.state.outputs.items():
            sink = self.sinks[name] if name in directories else None
            if isinstance(sink, FileSink) and directories[name][:1] == (written["directory"],):
                missing = sink.missing(name, rounds_of(written))
                if missing:
                    self.checkpoint.warn(missing_words(name, written, list(missing.values())))
                    self.state.outputs = {**self.state.outputs, name: without(written, missing)}

    def write_statements(self) -> None:
        """Reduce statements are written once, and again when queries, or the places of their state, change."""
        self.scheduler = self._made_scheduler()
        self.feeds = feeds_of(self.plan, self.executor)
        self.early.begin()
        placed = self.on_cluster()
        self.reducers = {
            together[0].name: Reducer.of(together[0], [way.bound for way in self.plan.ways_from_all(together)], placed)
            for together in self.program.reduced_together
        }

    def on_cluster(self) -> frozenset[str]:
        """The operators whose state is on the cluster; all of them where nothing stays with the driver."""
        everything = self.backend.has_cluster and self.executor.driver_memory == 0
        operators = self.state.operators.items()
        return frozenset(name for name, one in operators if everything or place(one) == "cluster")

    def _made_scheduler(self) -> Scheduler:
        saved = {} if self.state.record is None else self.state.record.queries
        return Scheduler(self.plan, self.scheduling, saved, self._flush_rows, self._trace)

    def _would_emit(self, clock: int, asks: bool) -> bool:
        """Whether the clock alone would close a window, or let a row go; what is over may still wait.

        Copies of the streams are asked: what is asked in vain is forgotten, as it would be by a restart.
        """
        streams = self.state.streams_apart(self.program) if asks else self.streams
        moments = silent_moments(streams, clock)
        heartbeats = {name: one.promise(moments[name]) if asks else one.promised() for name, one in streams.items()}
        ingestion = Ingestion(dict(self.state.operators), heartbeats)
        return self.scheduler.would_emit(self.state.operators, ingestion, streams, self.executor)
