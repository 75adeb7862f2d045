"""What has happened: all that the committed rounds left, in memory as on disk.

Law: it changes only by `commit`, all at once. A round that fails before has changed nothing: streams are put back to
what the last record says, and runs of queries are values that were never replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from eventide.engine.backend import Backend
from eventide.engine.checkpoint import Checkpoint
from eventide.engine.cluster_slices import ClusterSlices
from eventide.engine.groupwise_run import GroupwiseRun, told_to
from eventide.engine.open_windows import OpenQuery, open_of_run
from eventide.engine.operator_run import OperatorRun
from eventide.engine.placement import Placement
from eventide.engine.query_run import QueryRun
from eventide.engine.record import RoundRecord
from eventide.engine.row_run import RowRun
from eventide.engine.run_of import bench_of, continued, run_of
from eventide.engine.saved_slices import SavedSlices
from eventide.engine.status import StreamStatus
from eventide.engine.stream_time import StreamTime
from eventide.engine.why import Standing
from eventide.engine.work import Positions, Round, Run
from eventide.errors import CheckpointError
from eventide.eventtime.instant import NEVER, Instants
from eventide.eventtime.scheduling import Scheduling
from eventide.plan.binding import BoundOperator, BoundProgram
from eventide.plan.bound import Bound
from eventide.plan.fingerprint import described, refuse_changes
from eventide.plan.join import Join
from eventide.plan.program import Program
from eventide.plan.window import RowWindow

KEPT_BEFORE_JOINS = (
    "SET heartbeats decides what is kept before joins: what was begun with 'operator' goes on with that, "
    "what was begun with 'query' or 'memory' with one of these"
)


class Committed:
    """The state of an engine after its last committed round."""

    def __init__(self, plan: BoundProgram, checkpoint: Checkpoint, backend: Backend, placement: Placement) -> None:
        program = plan.program
        self._checkpoint = checkpoint
        self._backend = backend
        self._placement = placement
        self._plan: tuple[Program, dict[str, Any]] | None = None
        self._standing: tuple[RoundRecord, dict[str, Run], Standing] | None = None
        self.saved = SavedSlices(checkpoint)
        self.record: RoundRecord | None = checkpoint.last()
        if self.record is not None:
            try:
                refuse_changes(self.record.plan, described(program))
            except CheckpointError as refusal:
                if any(isinstance(operator, Join) for operator in program.operators):
                    refusal.add_note(KEPT_BEFORE_JOINS)
                raise
        self.streams: dict[str, StreamTime] = {}
        self.stood: dict[str, StreamStatus] = {}
        """How each stream stood after the last round; a round under way has streams that are further."""

        self.roll_back(program)
        self.runs: dict[str, Run] = {name: self._continued(name, query) for name, query in plan.queries.items()}
        self.operators = {name: self._operator(bound) for name, bound in plan.operators.items()}

    @property
    def round(self) -> int:
        """The last round, -1 before the first."""
        return -1 if self.record is None else self.record.round

    @property
    def batch(self) -> int:
        """The last batch of the source that is part of a round, -1 before the first."""
        return -1 if self.record is None else self.record.batch

    @property
    def clock(self) -> int:
        """The clock of the last round."""
        return NEVER if self.record is None else self.record.clock

    @property
    def ended(self) -> bool:
        """Whether the last round ended a bounded run."""
        return self.record is not None and self.record.ended

    @property
    def positions(self) -> Positions:
        """How far the inputs of the local engine were read."""
        return {} if self.record is None else self.record.positions

    def standing(self, program: Program, scheduling: Scheduling) -> Standing | None:
        """How the program stands after the last round, for those who ask why; None before the first."""
        record, runs, streams, operators = self.record, self.runs, self.streams, self.operators
        if record is None:
            return None
        told = self._standing
        if told is None or told[0] is not record or told[1] is not runs:

            def opened(name: str) -> OpenQuery:
                return open_of_run(runs[name])

            def waiting(name: str) -> Instants:
                return operators[name].holds

            def names(name: str) -> pa.Array:
                return streams[name].sources

            told = self._standing = record, runs, Standing(program, record, names, opened, waiting, scheduling)
        return told[2]

    def reached(self, name: str) -> int:
        """How far a stream, query or operator had come after the last round."""
        if name in self.streams:
            return self.streams[name].heartbeat
        if name in self.operators:
            return self.operators[name].frontier.time
        return self.runs[name].promised()

    def latest(self, name: str) -> int:
        """The largest time of a row that has come from a stream, or from a query."""
        if name in self.streams:
            return self.streams[name].latest
        return told_to(self.runs[name]) if name in self.runs else self.reached(name)

    def commit(self, program: Program, work: Round) -> None:
        """Make a round happen."""
        for name in work.runs:
            run = work.runs[name] = self._placement.placed(work.runs[name], work.number)
            taken = work.taken.get(name)
            self.saved.keep(name, run, work.number, taken.accepted if taken else None)
        kept = {name: work.kept(name) for name in work.operators}
        for name, kinds in kept.items():
            self.saved.keep_series(name, kinds, work.number)
        for name, heartbeat in work.heartbeats.items():
            self.streams[name].reach(heartbeat, work.clock)
        record = RoundRecord(
            work.number,
            self.batch if work.batch is None else work.batch,
            work.clock,
            work.ending,
            self._described(program),
            {
                name: stream.saved() | self.saved.sources(name, stream, work.number)
                for name, stream in self.streams.items()
            },
            {name: run.saved() | self.saved.of(name) | work.saved.get(name, {}) for name, run in work.runs.items()}
            | {
                name: run.saved() | self.saved.of_series(name, kept[name]) | work.saved.get(name, {})
                for name, run in work.operators.items()
            },
            work.positions,
            self.saved.files(),
        )
        self._checkpoint.commit(record)
        self.record, self.runs, self.operators = record, work.runs, work.operators
        self._note()

    def _described(self, program: Program) -> dict[str, Any]:
        """The plan as plain data, told once for each program: it takes longer than a small round."""
        if self._plan is None or self._plan[0] is not program:
            self._plan = program, described(program)
        return self._plan[1]

    def roll_back(self, program: Program) -> None:
        """Put back what a failed round may have touched: policies learn while they look."""
        self.saved.restore(self.record)
        for stream in program.streams:
            if self.record is None:
                self.streams[stream.name] = StreamTime.start(stream)
            else:
                known = self.saved.source_names(stream.name)
                self.streams[stream.name] = StreamTime.restored(stream, self.record.streams[stream.name], known)
        self._note()

    def _note(self) -> None:
        self.stood = {name: StreamStatus.of(stream) for name, stream in self.streams.items()}

    def _continued(self, name: str, query: Bound) -> Run:
        bench = self._backend.bench(query)
        if self.record is None:
            return kind_of_run(query).start(query, bench)
        restored: Callable[..., Run] = kind_of_run(query).restored
        saved: dict[str, Any] = self.record.queries[name]
        if "chunks" in saved:
            if self._placement.cluster is None:
                raise CheckpointError(f"the slices of query {name!r} are on a cluster: continue with the Spark engine")
            chunks = self.saved.chunks(name, saved)
            placed = ClusterSlices(query, self._placement.cluster, chunks, self.round + 1)
            return restored(query, bench, saved, [], placed)
        return restored(query, bench, saved, self.saved.tables(name), None)

    def _operator(self, bound: BoundOperator) -> OperatorRun:
        bench = bench_of(bound, self._backend)
        saved = None if self.record is None else self.record.queries.get(bound.name)
        if saved is None:
            # Whether a plain merge runs depends on who is told of it, and that may change from one start to the next.
            return run_of(bound, bench)
        return continued(bound, bench, saved, self.saved.series(bound.name, saved["series"]))


def kind_of_run(query: Bound) -> type[QueryRun] | type[RowRun] | type[GroupwiseRun]:
    """Windows of time, windows that close source by source, and windows of rows run differently."""
    if query.query.by_source:
        return GroupwiseRun
    return RowRun if isinstance(query.query.window, RowWindow) else QueryRun
