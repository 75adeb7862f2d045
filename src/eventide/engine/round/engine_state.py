"""Engine state after the last committed round, in memory as on disk.

Law: it changes only by `commit`, all at once. A round that fails before has changed nothing: streams are put back to
what the last record says, and operators are values that were never replaced. Policies learn while they look, so whoever
asks without a round how far time would come asks copies: a restart in between changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from eventide.engine.checkpoint.checkpoint import Checkpoint
from eventide.engine.checkpoint.record import RoundRecord, StateFile
from eventide.engine.checkpoint.written_results import WrittenFiles
from eventide.engine.common_time import restored as restored_streams
from eventide.engine.common_time import started
from eventide.engine.introspection.status import StreamStatus
from eventide.engine.introspection.why import ProgressReport
from eventide.engine.operators import factory
from eventide.engine.operators.open_windows import OpenQuery
from eventide.engine.operators.operator import Operator
from eventide.engine.operators.placement import place, placed
from eventide.engine.operators.windows import first_after
from eventide.engine.relations.executor import Executor
from eventide.engine.relations.segments import Segments
from eventide.engine.round.changed_program import continued, latest_of
from eventide.engine.round.report import Positions, RoundInput
from eventide.engine.stream_progress import StreamProgress
from eventide.errors import CheckpointError
from eventide.eventtime.instant import NEVER, Instants
from eventide.eventtime.scheduling.options import Scheduling
from eventide.plan.binding import BoundOperator, BoundProgram
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.evolution import QUERY, STREAM, Begin, Consent, Evolution
from eventide.plan.declared.fingerprint import described
from eventide.plan.declared.join import Join
from eventide.plan.declared.program import Program, reads, streams_below


class SourceNames:
    """The files with the names, by stream, each with how many of its names count."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._checkpoint = checkpoint
        self._files: dict[str, tuple[StateFile, int]] = {}
        self._names: dict[str, pa.Array] = {}

    def restore(self, record: RoundRecord | None) -> None:
        """The files as a record names them."""
        self._files = {}
        if record is None:
            return
        files = {file.name: file for file in record.files}
        for name, saved in record.streams.items():
            if saved["sources"] is not None:
                file, count = saved["sources"]
                self._files[name] = files[file], count

    def saved(self, stream: str, names: pa.Array, round: int) -> dict[str, Any]:
        """The names of a stream's sources, for the record."""
        known = self._files.get(stream)
        if len(names) and (known is None or known[1] != len(names)):
            name = f"slices/_sources/{stream}-{round:010d}.arrow"
            file = self._checkpoint.write_table(name, pa.table({"source": names}))
            known = self._files[stream] = file, len(names)
            self._names[stream] = names
        return {"sources": None if known is None else [known[0].name, known[1]]}

    def of(self, stream: str) -> pa.Array:
        """The names as of the last record."""
        if stream not in self._files:
            return pa.array([], pa.string())
        file, count = self._files[stream]
        if stream not in self._names or len(self._names[stream]) < count:
            self._names[stream] = self._checkpoint.read_table(file).column("source").combine_chunks()
        return self._names[stream].slice(0, count)

    def files(self) -> tuple[StateFile, ...]:
        """Every file, for the record."""
        return tuple(file for file, _ in self._files.values())


KEPT_BEFORE_JOINS = (
    "SET heartbeats decides what is kept before joins: what was begun with 'operator' goes on with that, "
    "what was begun with 'query' or 'memory' with one of these"
)


class EngineState:
    """The record of the last round, the time of every stream, and the operators."""

    def __init__(
        self, plan: BoundProgram, checkpoint: Checkpoint, executor: Executor, consent: Consent | None = None
    ) -> None:
        program = plan.program
        self._checkpoint = checkpoint
        self._executor = executor
        self._plan: tuple[Program, dict[str, Any]] | None = None
        self._progress: tuple[RoundRecord, Mapping[str, Operator], ProgressReport] | None = None
        self._names = SourceNames(checkpoint)
        self.record: RoundRecord | None = checkpoint.last()
        self.evolution = Evolution(())
        """What a changed program does to the streams and queries of the record."""
        if self.record is not None:
            self._evolve(self.record, program, consent or Consent())
        self.outputs: dict[str, WrittenFiles] = {} if self.record is None else self.record.outputs
        """Which rounds have written files of results, as far as they are still there."""
        self.streams: dict[str, StreamProgress] = {}
        self.stream_status: dict[str, StreamStatus] = {}
        """Of each stream after the last round; a round under way has streams that are further."""
        self.roll_back(program)
        bounds: dict[str, BoundQuery | BoundOperator] = {**plan.queries, **plan.operators}
        self.operators: dict[str, Operator] = {}
        kept: dict[str, Operator] = {}
        for name in (step.name for step in program.steps if step.name in bounds):
            is_read = bool(plan.ways_from(name))
            if self.record is not None and name in self.record.queries:
                self.operators[name] = kept[name] = self._continued(self.record, name, bounds[name], is_read)
            else:
                begins = self._beginning(program, bounds[name], name, kept)
                self.operators[name] = factory.start(bounds[name], executor, begins, is_read)

    def _evolve(self, record: RoundRecord, program: Program, consent: Consent) -> None:
        """Go on from the record as far as the program is the one that it was written by, with consent to the rest."""
        found = Evolution.between(record.plan, described(program), record.queries, consent.backfill)
        try:
            found.check(consent)
        except CheckpointError as refusal:
            if any(isinstance(operator, Join) for operator in program.operators):
                refusal.add_note(KEPT_BEFORE_JOINS)
            raise
        self.evolution = found
        if not found.is_nothing:
            self.record = continued(record, found)

    def _beginning(
        self, program: Program, bound: BoundQuery | BoundOperator, name: str, kept: Mapping[str, Operator]
    ) -> int:
        """Where an operator begins of which the record says nothing."""
        # Which plain merges run depends on who is told of them, and that may change from one start to the next.
        if self.record is None or name in self.evolution.of(QUERY, Begin.STATE, Begin.BEGINNING):
            return NEVER
        step = next(step for step in program.steps if step.name == name)
        self._check_times(program, name)
        latest = max((latest_of(read, program, self.streams, kept) for read in reads(step)), default=NEVER)
        if isinstance(bound, BoundQuery):
            return first_after(bound, latest)
        return latest if latest == NEVER else latest + 1

    def _check_times(self, program: Program, name: str) -> None:
        """Refuse windows that would lack rows: of a time that nobody asked for before nothing is known of those."""
        for read in streams_below(program, name):
            stream = program.stream(read)
            before = self.streams[stream.rows_of].losses.rows
            other = stream.time != program.stream(stream.rows_of).time
            if before and other and read in self.evolution.of(STREAM, Begin.PRESENT):
                raise CheckpointError(
                    f"query {name!r} cannot begin in the midst of stream {stream.rows_of!r}: nobody has kept which "
                    f"times {stream.time!r} the {before:,} rows had that came. Let it read them again (backfill), or "
                    "give the changed program another checkpoint"
                )

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

    def progress(self, program: Program, scheduling: Scheduling) -> ProgressReport | None:
        """The state of the program after the last round, for `why`; None before the first round."""
        record, operators, streams = self.record, self.operators, self.streams
        if record is None:
            return None
        known = self._progress
        if known is None or known[0] is not record or known[1] is not operators:

            def opened(name: str) -> OpenQuery:
                found = operators[name].open()
                assert found is not None
                return found

            def waiting(name: str) -> Instants:
                return operators[name].holds

            def names(name: str) -> pa.Array:
                return streams[name].sources

            known = self._progress = (
                record,
                operators,
                ProgressReport(program, record, names, opened, waiting, scheduling),
            )
        return known[2]

    def reached(self, name: str) -> int:
        """How far a stream or operator had come after the last round."""
        return self.streams[name].heartbeat if name in self.streams else self.operators[name].frontier.time

    def latest(self, name: str) -> int:
        """The largest time of a row that has come from a stream or operator."""
        return self.streams[name].latest if name in self.streams else self.operators[name].emitted_to

    def commit(
        self,
        program: Program,
        given: RoundInput,
        heartbeats: Mapping[str, int],
        operators: Mapping[str, Operator],
        saved: Mapping[str, Mapping[str, Any]],
        outputs: dict[str, WrittenFiles],
    ) -> None:
        """Make a round happen; `saved` is what else the record is to hold of operators, `outputs` of their files."""
        found = placed(operators, self._executor)
        for name, heartbeat in heartbeats.items():
            self.streams[name].reach(heartbeat, given.clock)
        record = RoundRecord(
            given.number,
            self.batch if given.batch is None else given.batch,
            given.clock,
            given.ending,
            self._described(program),
            {
                name: stream.saved() | self._names.saved(name, stream.sources, given.number)
                for name, stream in self.streams.items()
            },
            {name: saved_data(operator) | dict(saved.get(name, {})) for name, operator in found.items()},
            given.positions,
            (*state_files(found), *self._names.files()),
            outputs,
        )
        self._checkpoint.commit(record)
        self.record, self.operators, self.outputs = record, found, outputs
        self._note()

    def _described(self, program: Program) -> dict[str, Any]:
        """The plan as plain data, made once for each program: it takes longer than a small round."""
        if self._plan is None or self._plan[0] is not program:
            self._plan = program, described(program)
        return self._plan[1]

    def roll_back(self, program: Program) -> None:
        """Put back what a failed round may have touched: policies learn while they look."""
        self._names.restore(self.record)
        self.streams.update(self.streams_apart(program))
        self._note()

    def streams_apart(self, program: Program) -> dict[str, StreamProgress]:
        """The streams after the last round, as copies: asking these changes nothing that follows."""
        if self.record is None:
            return started(program)
        return restored_streams(program, self.record.streams, self._names.of)

    def _note(self) -> None:
        self.stream_status = {name: StreamStatus.of(stream) for name, stream in self.streams.items()}

    def _continued(self, record: RoundRecord, name: str, bound: BoundQuery | BoundOperator, is_read: bool) -> Operator:
        saved = record.queries[name]
        if saved["place"] == "cluster" and not self._executor.backend.has_cluster:
            raise CheckpointError(f"the state of query {name!r} is on a cluster: continue with the Spark engine")
        return restored(factory.start(bound, self._executor, is_read=is_read), self._executor, saved, record.files)


def restored(operator: Operator, executor: Executor, saved: Mapping[str, Any], files: Iterable[StateFile]) -> Operator:
    """An operator that has seen nothing, continued from what `saved_data` gave of it, its state where it was."""
    by_name = {file.name: file for file in files}
    state = {}
    for kind, rows in operator.state.items():
        parts = [executor.files.restored(rows.layout, part, by_name) for part in saved["state"].get(kind, ())]
        if saved["place"] == "driver":
            parts = [executor.loaded(part) for part in parts]
        state[kind] = Segments(rows.layout).add(*parts)
    return operator.restored(saved, state)


def saved_data(operator: Operator) -> dict[str, Any]:
    """Plain data of an operator for the round record: its snapshot, and the relations of its state."""
    state = {kind: rows.saved() for kind, rows in operator.state.items()}
    return operator.snapshot() | {"place": place(operator), "state": state}


def state_files(operators: Mapping[str, Operator]) -> list[StateFile]:
    """The files that hold the state of operators."""
    return [
        file
        for operator in operators.values()
        for rows in operator.state.values()
        for part in rows.parts
        for file in part.files
    ]
