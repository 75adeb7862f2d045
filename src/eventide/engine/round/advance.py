"""Step 3 of a round: operators, each after what it reads, go as far as their own inputs allow.

Laws. *Own frontier*: each runs up to the least heartbeat of its own inputs, whatever the rest of the plan waits for
(STREAM paper, section 7: operator-level heartbeats), unless the program is scheduled otherwise (`frontier_limits`).
What is emitted is reduced at once for whoever reads it, and closes windows above in the same round. *On demand*: an
idle stream that someone waits for is asked in this step (`RoundExecution`).

*Downstream*: what an operator emits is reduced by the same statements as rows of a stream, where it is: in DuckDB or
Spark. A row is never late for an operator above (see `plan.declared.stream.Derived`). One that breaks a query above is
rejected, as one of a stream is.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import pyarrow as pa

from eventide.engine.operators.frontier import OperatorFrontier, least_time, of_stream
from eventide.engine.operators.operator import InputProgress, Operator, Output
from eventide.engine.relations.executor import Executor, Inputs, Statement, one_row
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.engine.round.heartbeats import Ingestion, ingest
from eventide.engine.round.placement import beside_state
from eventide.engine.round.side_tables import lost_rows, lost_values, rejects_layout, with_round
from eventide.engine.scheduling.frontier_limits import FrontierLimits
from eventide.engine.scheduling.trace import Trace, TraceLine
from eventide.engine.stream_progress import StreamPoint, StreamProgress
from eventide.errors import DataFaultError, EngineError
from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.scheduling.depth_first import depth_first
from eventide.plan.binding import BoundProgram, Edge
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.stream import WINDOW_END, WINDOW_START, Derived
from eventide.plan.duckdb.transpile import same_answer
from eventide.plan.expressions.columns import Column, quoted
from eventide.plan.sql.failing_rows import fail_safe_form
from eventide.plan.sql.reduce import alone_text, broken_text, shaped_text
from eventide.plan.sql.stream_rows import MALFORMED, batch_view

Streams = Mapping[str, StreamProgress] | Mapping[str, StreamPoint]


@dataclass(frozen=True)
class AdvanceStep:
    """Lets the operators of a program run, in the order of the scheduler.

    `flush_rows`: about so many rows of an operator are emitted in one round. `trace` is told every decision.
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
        """How far the inputs of an operator have come, as far as it may go by them."""
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
        limit = self.step.flush_rows
        if limit is not None and name in self.outputs and name in self.step.plan.queries:
            limit = max(0, limit - self.outputs[name].final.rows)
            if limit == 0:
                # It has emitted what it may in this round.
                return False
        inputs = self.step.inputs(name, self.frontiers, self.ingestion)
        begun = time.perf_counter()
        output = self._advanced(name, inputs, limit)
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun
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
    """Adapts the operators of a round to the depth-first scheduler (`eventtime.on_demand_schedule.Execution`)."""

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
        """A turn; whoever reads it has news if it emitted a row or moved time, and in its first turn always."""
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


@dataclass(frozen=True)
class DownstreamFeed:
    """The operators that read one operator, and how its rows come to them."""

    stream: Derived
    ways: tuple[Edge, ...]
    executor: Executor

    def apart(self, needed: Collection[str], executor: Executor) -> DownstreamFeed | None:
        """The same for the readers that a prod needs, and by another executor; None if it needs none."""
        ways = tuple(way for way in self.ways if way.step in needed)
        return replace(self, ways=ways, executor=executor) if ways else None

    def bring(self, found: Ingestion, rows: Segments, round: int) -> list[Relation]:
        """Give emitted rows to whoever reads them; those that break a query come back, to be rejected."""
        rejected: list[Relation] = []
        for part in rows.parts:
            given, view = self._as_rows(part)
            try:
                brought = [(way, self._reduced(found, way, way.bound, given, view)) for way in self.ways]
            except DataFaultError:
                brought, broken = self._fail_safe(found, given, view, round)
                rejected += broken
            for way, relation in brought:
                if ingest(found, way, relation).late is not None:
                    raise EngineError(
                        f"query {way.step!r}: results of query {self.stream.name!r} came late; this is a fault"
                    )
        return rejected

    def _fail_safe(
        self, found: Ingestion, given: Relation, view: str, round: int
    ) -> tuple[list[tuple[Edge, Relation]], list[Relation]]:
        try:
            brought = [(way, self._reduced(found, way, fail_safe_form(way.bound), given, view)) for way in self.ways]
            text = broken_text(self.stream, [way.bound for way in self.ways])
            inputs: Inputs = {self._view: given, "constants": one_row(round=round)}
            statement = Statement(view + with_round(text), self._portable(text))
            broken = self.executor.relation(statement, inputs, rejects_layout(self.stream))
        except DataFaultError as fault:
            raise EngineError(
                f"an expression over {self.stream.name!r} fails for a row: let it give NULL instead, or keep such rows "
                f"from it by CASE WHEN, and start again ({fault})"
            ) from fault
        return brought, [broken] if broken.rows else []

    def _reduced(self, found: Ingestion, way: Edge, bound: BoundQuery, given: Relation, view: str) -> Relation:
        operator = found.operators[way.step]
        layout = operator.layout(way.name)
        text = shaped_text(alone_text(bound), [column.name for column in layout.brought], operator.renames(way.name))
        portable = bound.driver_exact and self._portable(alone_text(bound))
        relation = self.executor.relation(Statement(view + text, portable), {self._view: given}, layout)
        return beside_state(operator, relation, self.executor)

    @property
    def _view(self) -> str:
        return batch_view(self.stream)

    @cached_property
    def _known(self) -> tuple[Column, ...]:
        return (*self.stream.columns, Column(MALFORMED, "STRING"))

    def _portable(self, text: str) -> bool:
        return same_answer(text, self._known)

    def _as_rows(self, part: Relation) -> tuple[Relation, str]:
        """Emitted rows as rows of a stream; those on the cluster by what comes before a statement over them."""
        layout = Layout(self._known)
        if part.table is not None:
            return Relation.of_table(layout, rows_of(self.stream, part.table)), ""
        columns = []
        for column in self.stream.columns:
            name = quoted(column.name)
            is_edge = column.name in (WINDOW_START, WINDOW_END) and column.type == "TIMESTAMP"
            columns.append(f"timestamp_micros({name}) AS {name}" if is_edge else name)
        # The rows have the name of the view themselves, and are hidden by it.
        rows = f"SELECT {', '.join(columns)}, CAST(NULL AS STRING) AS {MALFORMED} FROM {self._view}"
        return part, f"WITH {self._view} AS ({rows}) "


def rows_of(stream: Derived, emitted: pa.Table) -> pa.Table:
    """Emitted rows as rows of the stream that they are to whoever reads them.

    >>> from eventide.plan.expressions.columns import columns
    >>> from eventide.plan.declared.stream import TimeKind
    >>> from eventide.plan.declared.window import Window
    >>> sums = Derived.of("sums", columns("total BIGINT"), TimeKind.SEQUENCE, Window(10))
    >>> rows_of(sums, pa.table({"window_start": [0], "window_end": [10], "rows": [2], "total": [7]})).to_pylist()
    [{'total': 7, 'window_start': 0, 'window_end': 10, '_malformed': None}]
    """
    schema = Layout(stream.columns).schema
    columns = {field.name: emitted.column(field.name).cast(field.type) for field in schema}
    return pa.table({**columns, MALFORMED: pa.nulls(emitted.num_rows, pa.string())})


def feeds_of(plan: BoundProgram, executor: Executor) -> dict[str, DownstreamFeed]:
    """For every operator that is read: how its rows come to its readers."""
    feeds = {}
    names: Sequence[str] = (*plan.queries, *plan.operators)
    for name in names:
        stream, ways = plan.rows_of(name), plan.ways_from(name)
        if ways:
            assert isinstance(stream, Derived)
            feeds[name] = DownstreamFeed(stream, ways, executor)
    return feeds
