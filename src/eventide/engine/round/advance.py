"""Step 3 of a round: operators, each after what it reads, go as far as their own inputs allow.

Laws. *Own frontier*: each runs up to the least heartbeat of its own inputs, whatever the rest of the plan waits for
(STREAM paper, section 7: operator-level heartbeats), unless the program is scheduled otherwise (`frontier_limits`).
What is emitted is reduced at once for whoever reads it, and closes windows above in the same round. *On demand*: an
idle stream that someone waits for is asked in this step (`RoundExecution`).

*The scheduler* lasts from round to round. It is made anew from the last round record whenever a round fails or the
program changes, so a round that is run again is scheduled as it was, but for what it remembers of frontiers before the
last round, which only lets an operator that is held back wait a little longer.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from eventide.engine.operators.frontier import OperatorFrontier, least_time, of_stream
from eventide.engine.operators.operator import InputProgress, Operator, Output
from eventide.engine.relations.executor import Executor
from eventide.engine.relations.relation import Relation
from eventide.engine.round.downstream import DownstreamFeed
from eventide.engine.round.heartbeats import Ingestion
from eventide.engine.round.side_tables import lost_rows, lost_values
from eventide.engine.scheduling.frontier_limits import FrontierLimits
from eventide.engine.scheduling.trace import Trace, TraceLine
from eventide.engine.stream_progress import StreamPoint, StreamProgress
from eventide.errors import DataFaultError, EngineError
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.scheduling.depth_first import depth_first
from eventide.eventtime.scheduling.expensive import SelectivityTracker
from eventide.eventtime.scheduling.labels import HeartbeatScope
from eventide.eventtime.scheduling.options import Scheduling
from eventide.plan.binding import BoundProgram

Streams = Mapping[str, StreamProgress] | Mapping[str, StreamPoint]


@dataclass(frozen=True)
class AdvanceStep:
    """Lets the operators of a program run, in the order of the scheduler.

    `flush_rows`: about so many rows of an operator are emitted in one round. `trace` is called with every decision.
    """

    plan: BoundProgram
    feeds: Mapping[str, DownstreamFeed]
    streams: Streams
    limits: FrontierLimits
    executor: Executor
    flush_rows: int | None = None
    trace: Trace | None = None

    @cached_property
    def closing_by_source(self) -> frozenset[str]:
        """The queries that go by the heartbeats of single sources."""
        return frozenset(name for name, bound in self.plan.queries.items() if bound.query.by_source)

    def run(self, round: int, clock: int, ingestion: Ingestion) -> RunningOperators:
        """Close what can be closed, asking idle streams that someone waits for."""
        advancing = self._begun(round, ingestion)
        for one in depth_first(self.limits.shape, RoundExecution(advancing), ingestion.idle):
            if self.trace is not None:
                self.trace(TraceLine(round, clock, one.at, one.move.value, one.to, one.why))
        return advancing

    def sweep(self, round: int, ingestion: Ingestion, only: Collection[str]) -> RunningOperators:
        """Let some operators run once each, from below, up to the given heartbeats of the streams."""
        advancing = self._begun(round, ingestion)
        for step in self.plan.program.steps:
            if step.name in only and step.name in ingestion.operators:
                advancing.turn(step.name)
        return advancing

    def _begun(self, round: int, ingestion: Ingestion) -> RunningOperators:
        frontiers = {
            name: of_stream(self.streams[name].stream, beats.combined) for name, beats in ingestion.heartbeats.items()
        }
        return RunningOperators(self, round, ingestion, frontiers)

    def inputs(
        self, name: str, known: Mapping[str, OperatorFrontier], ingestion: Ingestion | None = None
    ) -> list[InputProgress]:
        """The frontiers of an operator's inputs, capped by how far it may go."""
        found = []
        for way, frontier in self.limits.inputs(name, known):
            stream = self.streams.get(way.source)
            beats = None if ingestion is None else ingestion.heartbeats.get(way.source)
            latest, by_source = NEVER if stream is None else stream.latest, None if beats is None else beats.by_source
            found.append(InputProgress(way.name, frontier, latest, by_source))
        return found


@dataclass
class RunningOperators:
    """The operators of one round while they run; afterwards what they have emitted."""

    step: AdvanceStep
    round: int
    ingestion: Ingestion
    frontiers: dict[str, OperatorFrontier]
    outputs: dict[str, Output] = field(default_factory=dict)
    heartbeats: dict[str, int] = field(default_factory=dict)
    """The heartbeat by which each operator has emitted."""
    rejected: dict[str, list[Relation]] = field(default_factory=dict)
    passed: dict[str, tuple[int, float]] = field(default_factory=dict)
    """How many rows each operator gave to its readers, and how many seconds these took for them."""
    seconds: dict[str, float] = field(default_factory=dict)
    """How many seconds each operator took to emit."""
    turns: dict[str, tuple[float, float]] = field(default_factory=dict)
    """From when to when each operator worked, by the processor's clock: its first turn to its last."""

    @property
    def operators(self) -> dict[str, Operator]:
        """The operators as they are now."""
        return self.ingestion.operators

    def would_emit(self, name: str, known: Mapping[str, OperatorFrontier]) -> bool:
        """Whether an operator would emit or free a row, if its inputs had come so far."""
        return self.operators[name].would_emit(self.step.inputs(name, known, self.ingestion))

    def ask(self, stream: str) -> bool:
        """Ask an idle stream for its time; whether all of it has moved."""
        asked = self.step.streams[stream]
        assert isinstance(asked, StreamProgress), "only a round asks a stream for its time"
        before = self.ingestion.heartbeats[stream].combined
        beats = asked.promise(self.ingestion.idle[stream])
        moved = beats.combined > before
        self.ingestion.heartbeats[stream] = replace(beats, combined=max(before, beats.combined))
        if moved:
            self.frontiers[stream] = of_stream(asked.stream, beats.combined)
        return moved

    def turn(self, name: str) -> bool:
        """One turn of an operator; whether it emitted a row."""
        limit = self.step.flush_rows if self.operators[name].may_wait else None
        if limit is not None and name in self.outputs:
            limit = max(0, limit - self.outputs[name].final.rows)
            if limit == 0 and name in self.step.plan.queries:
                # It has emitted what it may in this round.
                return False
        inputs = self.step.inputs(name, self.frontiers, self.ingestion)
        begun = time.perf_counter()
        output = self._advanced(name, inputs, limit)
        ended = time.perf_counter()
        self.seconds[name] = self.seconds.get(name, 0.0) + ended - begun
        self.turns[name] = self.turns.get(name, (begun, ended))[0], ended
        self.heartbeats[name] = least_time(one.frontier for one in inputs)
        self.frontiers[name] = self.operators[name].frontier
        self.step.limits.remember(name, self.frontiers[name])
        if name in self.step.feeds:
            started = time.perf_counter()
            broken = self.step.feeds[name].bring(self.ingestion, output.final, self.round)
            self.rejected.setdefault(name, []).extend(broken)
            rows, seconds = self.passed.get(name, (0, 0.0))
            self.passed[name] = rows + output.final.rows, seconds + time.perf_counter() - started
        return output.final.rows > 0

    def _advanced(self, name: str, inputs: list[InputProgress], limit: int | None) -> Output:
        query = self.step.plan.queries.get(name)
        try:
            self.operators[name], output = self.operators[name].advance(inputs, limit)
        except DataFaultError as fault:
            if query is None:
                raise EngineError(f"query {name!r}: an expression of it fails for a row ({fault})") from fault
            raise EngineError(
                f"query {name!r}: an aggregate of it fails over the rows of a window; "
                f"choose one that gives NULL instead, such as try_sum ({fault})"
            ) from fault
        if query is None:
            lost, owner = lost_rows(self.step.executor, name, output, self.round), name
        else:
            lost, owner = lost_values(self.step.executor, query, output, self.round), query.query.stream
        if lost is not None:
            self.rejected.setdefault(owner, []).append(lost)
        before = self.outputs.get(name)
        self.outputs[name] = output if before is None else before.with_more(output)
        return output


def would_emit(step: AdvanceStep, operators: Mapping[str, Operator], ingestion: Ingestion) -> bool:
    """Whether these heartbeats of the streams would make an operator emit a row, anywhere in the plan."""
    known = {name: of_stream(step.streams[name].stream, beats.combined) for name, beats in ingestion.heartbeats.items()}
    for node in step.limits.plan_shape.operators:
        inputs = step.inputs(node.name, known, ingestion)
        if operators[node.name].would_emit(inputs):
            return True
        known[node.name] = operators[node.name].frontier_at(inputs)
    return False


class RoundExecution:
    """Adapts the operators of a round to the depth-first scheduler (`eventtime.scheduling.depth_first.Execution`)."""

    def __init__(self, advancing: RunningOperators) -> None:
        self._advancing = advancing
        self._shape = advancing.step.limits.shape
        self._had_turn: set[str] = set()
        self._news = {(stream, reader) for stream in advancing.step.streams for reader in self._shape.readers(stream)}

    @property
    def _frontiers(self) -> Mapping[str, OperatorFrontier]:
        return self._advancing.frontiers

    def gives(self, operator: str, reader: str) -> bool:
        """Whether a reader has not taken what was given, or has had no turn yet."""
        return (operator, reader) in self._news

    def run(self, operator: str) -> None:
        """Run an operator once; its readers have news if it emitted a row or moved time, and after its first run."""
        self._news.difference_update((read, operator) for read in self._shape.inputs(operator))
        before = self._frontiers.get(operator)
        emitted = self._advancing.turn(operator)
        first = operator not in self._had_turn
        self._had_turn.add(operator)
        if first or emitted or self._frontiers[operator] != before:
            self._news.update((operator, reader) for reader in self._shape.readers(operator))

    def waits_for(self, operator: str, idle: tuple[str, ...]) -> str | None:
        """The slowest of the idle inputs, if an operator has something that they alone hold up."""
        if not idle:
            return None
        known = {**self._frontiers, **dict.fromkeys(idle, OperatorFrontier(FOREVER))}
        return self.slowest(operator, idle) if self._advancing.would_emit(operator, known) else None

    def slowest(self, operator: str, idle: tuple[str, ...]) -> str:
        """The input that has come least far."""
        return min(idle, key=lambda read: self._frontiers[read].time)

    def ask(self, source: str) -> bool:
        """Ask an idle stream how far its time has come; whether that moves someone."""
        readers = self._shape.readers(source)
        if not self._advancing.ask(source):
            # Some of its sources may have moved, though not all of them: that moves who closes source by source.
            by_source = self._advancing.step.closing_by_source
            readers = tuple(reader for reader in readers if reader in by_source)
        self._news.update((source, reader) for reader in readers)
        return bool(readers)


class Scheduler:
    """Runs the operators of a program, round by round; `saved` is what the record says of their selectivity."""

    def __init__(
        self,
        plan: BoundProgram,
        scheduling: Scheduling,
        saved: Mapping[str, Mapping[str, Any]],
        flush_rows: int | None,
        trace: Trace | None,
    ) -> None:
        self._plan = plan
        self._flush_rows = flush_rows
        self._limits = FrontierLimits(plan, scheduling.heartbeats)
        # Only labels that depend on it need it measured.
        self._measuring = SelectivityTracker(saved) if scheduling.heartbeats is HeartbeatScope.MEMORY else None
        self._trace = trace

    def run(
        self,
        round: int,
        clock: int,
        ingestion: Ingestion,
        feeds: Mapping[str, DownstreamFeed],
        streams: Mapping[str, StreamProgress],
        executor: Executor,
    ) -> RunningOperators:
        """Let operators run, each after what it reads (step 3 of a round)."""
        if self._measuring is not None and self._limits.label(self._measuring.ratios()):
            self._trace_labels(round, clock)
        step = AdvanceStep(self._plan, feeds, streams, self._limits, executor, self._flush_rows, self._trace)
        advanced = step.run(round, clock, ingestion)
        if self._measuring is not None:
            self._measure(advanced, self._measuring)
        return advanced

    def would_emit(
        self,
        operators: Mapping[str, Operator],
        ingestion: Ingestion,
        streams: Mapping[str, StreamProgress],
        executor: Executor,
    ) -> bool:
        """Whether these heartbeats of the streams would make an operator emit a row, anywhere in the plan."""
        return would_emit(AdvanceStep(self._plan, {}, streams, self._limits, executor), operators, ingestion)

    def saved(self, name: str) -> dict[str, Any]:
        """What was measured of an operator, for the round record."""
        return {} if self._measuring is None else self._measuring.saved(name)

    def _measure(self, advanced: RunningOperators, measuring: SelectivityTracker) -> None:
        rows_in = advanced.ingestion.rows_in
        for node in self._limits.plan_shape.operators:
            name = node.name
            seen = min(advanced.frontiers[read].time for read in node.inputs)
            reached = min(frontier.time for _, frontier in self._limits.inputs(name, advanced.frontiers))
            measuring.count(name, rows_in.get(name, 0), advanced.outputs[name].final.rows, seen, reached)

    def _trace_labels(self, round: int, clock: int) -> None:
        if self._trace is None:
            return
        for name, others in self._limits.others.items():
            why = f"waits for {', '.join(others)} as well" if others else "goes by its own inputs"
            self._trace(TraceLine(round, clock, name, "label", name, why))
