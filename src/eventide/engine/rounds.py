"""The round: the clock tick of the engine, the same on Spark and on one machine.

Laws. Heartbeats of a round close windows in that round. A round happens all at once, when its record is committed;
before that it has not happened, and run again, at the clock it was meant to have, it gives the same. Every row of a
round is in a slice, in the late table, in the rejects table, or was wanted by no query.

    reduce   rows -> partials by pane and group, cells by source            (Spark SQL, or DuckDB)
    promise  cells and clock -> heartbeats                                  (the time core)
    advance  slices that have closed -> results, level by level             (SQL over slices)
    prod     prods that are due, over slices that are open -> early results
    emit     results -> sinks; late rows and rejects -> their tables        (idempotent by round)
    commit   one atomic record
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from eventide.engine.backend import Backend
from eventide.engine.checkpoint import Checkpoint
from eventide.engine.cluster_slices import Cluster
from eventide.engine.committed import Committed, kind_of_run
from eventide.engine.early_step import EarlyStep
from eventide.engine.frontiers import of_stream
from eventide.engine.groupwise_run import met
from eventide.engine.ledger import Ledger
from eventide.engine.levels import levels_of
from eventide.engine.placement import DRIVER_BYTES, Placement
from eventide.engine.prodding import EarlyResults
from eventide.engine.promising import Promise
from eventide.engine.queue_pace import QueuePace
from eventide.engine.queue_run import QueueRun
from eventide.engine.record import Intent
from eventide.engine.reduce_step import ReduceStep
from eventide.engine.reduction import Reducer
from eventide.engine.scheduler import Scheduler
from eventide.engine.sidelining import set_bursts_aside
from eventide.engine.status import QueryStatus, Status
from eventide.engine.storage import Storage
from eventide.engine.stream_time import StreamTime
from eventide.engine.trace import Trace
from eventide.engine.windows import first_after
from eventide.engine.work import Observer, Positions, Round
from eventide.errors import DeclarationError, EngineError
from eventide.eventtime.asking import Asker
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.prod import Prod
from eventide.eventtime.scheduling import Scheduling
from eventide.plan.binding import BoundProgram
from eventide.plan.bound import Bound
from eventide.plan.input_managers import as_run
from eventide.plan.program import Program
from eventide.plan.query import Query
from eventide.plan.stream import Timestamps
from eventide.sinks.sink import Sink

__all__ = ["Engine", "Observer", "Round"]

FEW_ROWS = 50_000
"""After a round of fewer rows, the next one is read as one partition: a shuffle would cost more than it shares out."""


class Engine:
    """Runs a program round by round, from its last committed round on.

    `now` is the wall clock in microseconds, for rounds that are not told their clock. `flush_rows`: about so many
    results of a query are told in one round, the others in the next ones. `scheduling` says when silent streams are
    asked and by which heartbeats operators go; `trace` is told every decision about that. `pace` says how many rows go
    through the queues before expensive functions.
    """

    def __init__(
        self,
        program: Program,
        backend: Backend,
        checkpoint: str | Storage,
        sinks: Mapping[str, Sink] | None = None,
        observer: Observer | None = None,
        now: Callable[[], int] | None = None,
        driver_bytes: int = DRIVER_BYTES,
        flush_rows: int | None = None,
        scheduling: Scheduling | None = None,
        trace: Trace | None = None,
        pace: QueuePace | None = None,
    ) -> None:
        if flush_rows is not None and flush_rows < 1:
            raise DeclarationError(f"flush_rows {flush_rows} would never tell anything: give 1 or more")
        self.backend = backend
        self._flush_rows = flush_rows
        self.sinks = dict(sinks or {})
        self._observer = observer or (lambda round, step: None)
        self._now = now or (lambda: time.time_ns() // 1000)
        self._stamps = any(stream.timestamps is not Timestamps.EXTERNAL for stream in program.streams)
        self.scheduling = scheduling or Scheduling()
        program = as_run(program, self.scheduling.heartbeats)
        self._trace = trace
        self._pace = pace or QueuePace()
        self._seconds: dict[str, float] = {}
        self._last_rows = FEW_ROWS
        self._has_run = False
        self._asker = Asker(self.scheduling.timestamps)
        self.early = EarlyStep(self)
        for name in self.sinks:
            if program.operator(name) is None:
                program.query(name)
        self.plan = BoundProgram.of(program, backend, told=self.sinks)
        self.checkpoint = Checkpoint.open(checkpoint)
        try:
            self.cluster = Cluster(backend, self.checkpoint) if backend.has_cluster else None
            placement = Placement(self.cluster, driver_bytes)
            self.committed = Committed(self.plan, self.checkpoint, backend, placement)
            self._write_statements()
            self.early.publish()
            self._reduce_step = ReduceStep(backend, self.cluster)
            self.ledger = Ledger(self.checkpoint.storage)
            self._rewind()
        except BaseException:
            self.checkpoint.close()
            raise

    # From the outside

    @property
    def program(self) -> Program:
        """What is run."""
        return self.plan.program

    @property
    def bound(self) -> Mapping[str, Bound]:
        """The queries, bound to what they read."""
        return self.plan.queries

    @property
    def next_round(self) -> int:
        """The number of the round to come."""
        return self.committed.round + 1

    @property
    def last_batch(self) -> int:
        """The last batch of the source that is part of a committed round, -1 before the first."""
        return self.committed.batch

    @property
    def ended(self) -> bool:
        """Whether a bounded run has come to its end."""
        return self.committed.ended

    @property
    def is_behind(self) -> bool:
        """Whether rows wait in a queue: a round without new rows would let some go."""
        return any(isinstance(run, QueueRun) and run.rows for run in self.committed.operators.values())

    @property
    def streams(self) -> dict[str, StreamTime]:
        """The time of every stream."""
        return self.committed.streams

    def round(
        self,
        rows: Mapping[str, Any],
        clock: int | None = None,
        heartbeats: Mapping[str, int] | None = None,
        batch: int | None = None,
        positions: Positions | None = None,
        over: Mapping[str, Iterable[str]] | None = None,
    ) -> Round:
        """Run one round over these rows, by stream. `heartbeats` are promises given from outside.

        `over` names sources that are over with this round: time does not wait for them, until one speaks again.
        """
        ends = {name: list(sources) for name, sources in (over or {}).items()}
        for name in ends:
            self.program.stream(name, "sources are over of").check_named_sources()
        return self._run(rows, clock, dict(heartbeats or {}), batch, dict(positions or {}), ending=False, over=ends)

    def tick(self, clock: int | None = None) -> Round | None:
        """A round without rows, if the clock alone lets something close; None if nothing waits for it."""
        meant = self.checkpoint.pending(self.committed.round)
        if meant is not None:
            if meant.batch is None and not meant.ends:
                return self.resume()
            if meant.batch is not None and not self._has_run:
                # Its rows are about to come again.
                return None
            self.forget_intent()
        clock = self._now() if clock is None else clock
        if self._would_close(clock, self._asker.asks(self.committed.clock, clock)) or self.early.is_due(clock):
            return self._run({}, clock, {}, None, self.committed.positions, ending=False)
        return None

    def resume(self) -> Round | None:
        """Run a round without rows that was meant, and not committed, when the engine died; None if there is none.

        Not the last round of a bounded run: more may have come since, and goes before the end.
        """
        meant = self.checkpoint.pending(self.committed.round)
        if meant is None or meant.batch is not None or meant.ends:
            return None
        positions = self.committed.positions
        return self._run({}, meant.clock, meant.heartbeats, None, positions, ending=False, over=meant.over)

    def forget_intent(self) -> None:
        """The rows of a round that was meant will not come again: what comes next is another round."""
        self.checkpoint.drop_after(self.committed.round)

    def end(self, clock: int | None = None) -> Round:
        """The last round of a bounded run: every stream is over, everything that is open closes."""
        return self._run({}, clock, dict.fromkeys(self.streams, FOREVER), None, self.committed.positions, ending=True)

    def prod(self, query: str, prod: Prod | None = None) -> EarlyResults:
        """Early results of a query after the last round: of all open windows, or of some; in any thread."""
        return self.early.answer(query, prod or Prod())

    def add(self, query: Query, sink: Sink | None = None) -> None:
        """Run one more query from the next round on; it sees no rows of before: its first window starts after them."""
        plan = self.plan.with_query(query, self.backend)
        bound = plan.queries[query.name]
        latest = max(self.committed.latest(way.source) for way in plan.ways_into(query.name))
        if sink is not None:
            sink.rewind(query.name, self.committed.round)
            self.sinks[query.name] = sink
        self.plan, run = plan, kind_of_run(bound).start(bound, self.backend.bench(bound), first_after(bound, latest))
        # Made anew, not changed: someone may be reading the status.
        self.committed.runs = {**self.committed.runs, query.name: run}
        self._write_statements()
        self.early.publish()

    def remove(self, name: str) -> None:
        """Forget a query and its slices; windows that it has open are not answered."""
        self.plan = self.plan.without_query(name)
        self.committed.runs = {other: run for other, run in self.committed.runs.items() if other != name}
        sink = self.sinks.pop(name, None)
        if sink is not None and sink not in self.sinks.values():
            sink.close()
        self.committed.saved.forget(name)
        self._write_statements()
        self.early.publish()

    def close(self) -> None:
        """Let go of the checkpoint and the sinks."""
        for sink in {id(sink): sink for sink in self.sinks.values()}.values():
            sink.close()
        self.checkpoint.close()

    def status(self) -> Status:
        """How things stand after the last round, which is the one that prods are answered from."""
        last = self.early.standing
        standing, state = self.committed.standing(self.program, self.scheduling), self.committed
        streams = tuple(state.stood[one.name].with_left_out(standing, one) for one in self.program.streams)
        queries = tuple(QueryStatus.of(name, run, standing) for name, run in state.runs.items())
        queries += tuple(QueryStatus.of_operator(name, run, standing) for name, run in state.operators.items())
        queries = self.early.told_of(queries)
        seconds, words = dict(self._seconds), self.scheduling.words
        return Status(
            self.backend.name, last.number, last.clock, state.ended, streams, queries, seconds, scheduling=words
        )

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
    ) -> Round:
        for name in (*rows, *promises):
            self.program.stream(name, "rows came for")
        if self.ended and not ending and rows:
            raise EngineError(
                "this bounded run has ended and closed every window: give the rows that came later another checkpoint"
            )
        # Rows that are stamped by the clock must never fall behind the heartbeat of the round before.
        last = self.committed.clock
        least = last + 1 if self._stamps and last != NEVER else last
        clock = max(self._now() if clock is None else clock, least)
        before = self.checkpoint.pending(self.committed.round)
        if before is not None and (before.batch != batch or before.ends != ending):
            # What died was another kind of round: with rows where this has none, or the other way around.
            self.forget_intent()
        rooms = self._pace.rooms(self.program.operators)
        meant = self.checkpoint.intend(Intent(self.next_round, batch, clock, promises, over or {}, rooms))
        state = dict(self.committed.runs), dict(self.committed.operators)
        work = Round(self.next_round, batch, meant.clock, dict(meant.heartbeats), rows, positions, ending, *state)
        work.over = meant.over
        for name, room in meant.rooms.items():
            run = work.operators[name]
            assert isinstance(run, QueueRun)
            work.operators[name] = run.begun(work.clock, room)
        try:
            for name, step in self.STEPS:
                started = time.perf_counter()
                step(self, work)
                work.seconds[name] = time.perf_counter() - started
                self._observer(work.number, name)
        except BaseException:
            self.committed.roll_back(self.program)
            self._scheduler = self._made_scheduler()
            raise
        finally:
            self.backend.release()
        self._seconds = work.seconds
        if work.reductions:
            self._last_rows = sum(reduction.rows for reduction in work.reductions.values())
        for name in meant.rooms:
            self._pace.learn(name, *work.passed.get(name, (0, 0.0)))
        self._has_run = True
        self.early.commit(work)
        return work

    def _reduce(self, work: Round) -> None:
        self.backend.bring(work.rows, few=self._last_rows < FEW_ROWS)
        for stream in self.program.streams:
            if stream.name in work.rows:
                reduction = self._reduce_step.run(work, self._reducers[stream.name], self.streams[stream.name])
                work.reductions[stream.name] = reduction

    def _promise(self, work: Round) -> None:
        asking, last = self.scheduling.timestamps, self.committed.clock
        Promise(self.plan, self.streams, self.backend, self.committed.reached, asking, last).run(work)

    def _advance(self, work: Round) -> None:
        self._scheduler.run(work, self.levels, self.streams)

    def _prod(self, work: Round) -> None:
        self.early.run(work)
        set_bursts_aside(work, self.plan)

    def _emit(self, work: Round) -> None:
        for name, results in work.results.items():
            if name in self.sinks:
                self.sinks[name].emit(results)
        for name, parts in work.late.items():
            self.ledger.late(name, work.number, parts)
        for name, parts in work.rejects.items():
            self.ledger.rejects(name, work.number, parts)

    def _commit(self, work: Round) -> None:
        placed = self._on_cluster()
        self.early.settle(work)
        self.committed.commit(self.program, work)
        if self._on_cluster() != placed:
            self._write_statements()

    STEPS = (
        ("reduce", _reduce),
        ("promise", _promise),
        ("advance", _advance),
        ("prod", _prod),
        ("emit", _emit),
        ("commit", _commit),
    )

    # Beginning and changing

    def _rewind(self) -> None:
        """Rounds after the last committed one have not happened, whatever sinks have seen of them."""
        self.ledger.rewind(self.committed.round)
        for name, sink in self.sinks.items():
            sink.rewind(name, self.committed.round)

    def _write_statements(self) -> None:
        """Reduce statements are written once, and again when queries, or the places of their slices, change."""
        self._scheduler = self._made_scheduler()
        self.levels = levels_of(self.plan, self.backend, self.cluster)
        self.early.begin()
        placed = self._on_cluster()
        self._reducers = {
            stream.name: Reducer.of(stream, [way.bound for way in self.plan.ways_from(stream.name)], placed)
            for stream in self.program.streams
        }

    def _on_cluster(self) -> frozenset[str]:
        runs = self.committed.runs.items()
        return frozenset(name for name, run in runs if run.slices.placement == "cluster")

    def _made_scheduler(self) -> Scheduler:
        saved = {} if self.committed.record is None else self.committed.record.queries
        return Scheduler(self.plan, self.scheduling, saved, self._flush_rows, self._trace)

    def _would_close(self, clock: int, asks: bool) -> bool:
        """Whether the clock alone would answer a window, or tell a row; what is over may still wait."""
        runs, frontiers = dict(self.committed.runs), {}
        for name, stream in self.streams.items():
            beats = stream.promise(stream.moment_of(clock)) if asks else stream.promised()
            frontiers[name] = of_stream(stream.stream, beats.combined)
            for query in self.program.of_stream(name):
                runs[query.name] = met(runs[query.name], stream.sources, beats.by_source)
        return self._scheduler.would_close(runs, self.committed.operators, frontiers)
