"""Step 3 of a round: queries and operators, each after what it reads, go as far as their own inputs allow.

Laws. *Own frontier*: each runs up to the least heartbeat of its own inputs, whatever the rest of the plan waits for
(STREAM paper, section 7: operator-level heartbeats), unless the program is scheduled otherwise (`holding`). What is
told below is reduced at once for whoever reads it, and closes windows above in the same round. *Asked*: a silent stream
that someone waits for is asked in this step (`turns`).
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

import pyarrow as pa

from eventide.engine.answers import operator_schema, result_schema, results_of
from eventide.engine.frontiers import before_holes, least_time, of_query, of_stream
from eventide.engine.groupwise_run import met
from eventide.engine.holding import Holding
from eventide.engine.ledger import lost_rows, lost_values
from eventide.engine.levels import Level
from eventide.engine.operator_run import Frontier, OperatorRun
from eventide.engine.stream_point import StreamPoint
from eventide.engine.stream_time import StreamTime
from eventide.engine.taken import Answer, Answers
from eventide.engine.trace import Trace, TraceLine
from eventide.engine.turns import Turns
from eventide.engine.work import Round, Run
from eventide.errors import DataFaultError, EngineError
from eventide.eventtime.instant import EDGE, NEVER
from eventide.eventtime.on_demand_schedule import depth_first
from eventide.plan.binding import BoundProgram


class Advance:
    """Lets the queries and operators of a program run, in the order of the scheduler."""

    def __init__(
        self,
        plan: BoundProgram,
        levels: Mapping[str, Level],
        streams: Mapping[str, StreamTime] | Mapping[str, StreamPoint],
        holding: Holding,
        flush_rows: int | None = None,
        trace: Trace | None = None,
    ) -> None:
        self._plan = plan
        self._flush_rows = flush_rows
        self._levels = levels
        self._streams = streams
        self._holding = holding
        self._trace = trace

    def run(self, work: Round) -> None:
        """Close what can be closed, asking silent streams that someone waits for; results are left in the round."""
        for name, heartbeat in work.heartbeats.items():
            work.frontiers[name] = of_stream(self._streams[name].stream, heartbeat)
        declared = {name: stream.stream for name, stream in self._streams.items()}
        turns = Turns(work, self._holding, declared, self._turn, lambda name: self._asked(work, name))
        for one in depth_first(self._holding.shape, turns, work.silent):
            if self._trace is not None:
                self._trace(TraceLine(work.number, work.clock, one.at, one.move.value, one.to, one.why))

    def sweep(self, work: Round, only: Collection[str]) -> None:
        """Let some queries and operators run once each, from below, up to what is given of the streams' time."""
        for name, heartbeat in work.heartbeats.items():
            work.frontiers[name] = of_stream(self._streams[name].stream, heartbeat)
        for step in self._plan.program.steps:
            if step.name in only and (step.name in work.runs or step.name in work.operators):
                self._turn(work, step.name)

    def _asked(self, work: Round, stream: str) -> int:
        asked = self._streams[stream]
        assert isinstance(asked, StreamTime), "only a round asks a stream for its time"
        beats = asked.promise(work.silent[stream])
        for query in self._plan.program.of_stream(stream):
            work.runs[query.name] = met(work.runs[query.name], asked.sources, beats.by_source)
        return beats.combined

    def _most(self, work: Round, name: str) -> int | None:
        """How many results may still be told in this round, about; None where there is no limit."""
        if self._flush_rows is None or name not in work.answers or name in work.operators:
            return self._flush_rows
        return max(0, self._flush_rows - work.answers[name].final.rows)

    def _turn(self, work: Round, name: str) -> bool:
        """One turn of a query or operator; whether it told a row."""
        if self._most(work, name) == 0:
            # It has told what it may in this round.
            return False
        final = self._operator(work, name) if name in work.operators else self._query(work, name)
        self._holding.remember(name, work.frontiers[name])
        if name in self._levels:
            started = time.perf_counter()
            self._levels[name].bring(work, final)
            rows, seconds = work.passed.get(name, (0, 0.0))
            work.passed[name] = rows + final.rows, seconds + time.perf_counter() - started
        return final.rows > 0

    def _query(self, work: Round, name: str) -> Answer:
        sources = [way.source for way in self._plan.ways_into(name)]
        inputs = [frontier for _, frontier in self._holding.inputs(name, work.frontiers)]
        run, heartbeat = before_holes(work.runs[name], inputs), least_time(inputs)
        latest = max(self._streams[source].latest if source in self._streams else NEVER for source in sources)
        # What came revises once, in the first turn.
        taken = work.taken.get(name) if name not in work.answers else None
        try:
            work.runs[name], answers = run.advance(heartbeat, taken, latest, self._most(work, name))
        except DataFaultError as fault:
            raise EngineError(
                f"query {name!r}: an aggregate of it fails over the rows of a window; "
                f"choose one that gives NULL instead, such as try_sum ({fault})"
            ) from fault
        for answer in (answers.final, answers.revised):
            lost = lost_values(run.query, answer, work.number)
            if lost is not None:
                work.rejects.setdefault(run.query.query.stream, []).append(lost)
        self._told(work, name, result_schema(run.query), heartbeat, answers)
        work.frontiers[name] = of_query(work.runs[name])
        return answers.final

    def _told(self, work: Round, name: str, schema: pa.Schema, heartbeat: int, answers: Answers) -> None:
        """Answers as results, after those of earlier turns."""
        before = work.answers.get(name)
        both = work.answers[name] = answers if before is None else before.with_more(answers)
        work.results[name] = results_of(name, schema, work.number, _known(heartbeat), both)

    def _operator(self, work: Round, name: str) -> Answer:
        run = work.operators[name]
        inputs = {way.name: frontier for way, frontier in self._holding.inputs(name, work.frontiers)}
        try:
            work.operators[name], told = run.advance(inputs)
        except DataFaultError as fault:
            raise EngineError(f"query {name!r}: an expression of it fails for a row ({fault})") from fault
        lost = lost_rows(name, told, work.number)
        if lost is not None:
            work.rejects.setdefault(name, []).append(lost)
        for kind, kept in work.operators[name].kept().items():
            if kept.added is not None:
                work.added.setdefault(name, {}).setdefault(kind, []).append(kept.added)
        schema = operator_schema(run.bound)
        answers = Answers(told, Answer.of(schema.empty_table()))
        self._told(work, name, schema, least_time(inputs.values()), answers)
        work.frontiers[name] = work.operators[name].frontier
        return told


def would_close(
    holding: Holding,
    runs: Mapping[str, Run],
    operators: Mapping[str, OperatorRun],
    streams: Mapping[str, Frontier],
) -> bool:
    """Whether these frontiers of the streams would answer a window or tell a row, anywhere in the plan."""
    known = dict(streams)
    for node in holding.plain.operators:
        name = node.name
        inputs = holding.inputs(name, known)
        if name in runs:
            frontiers = [frontier for _, frontier in inputs]
            run, heartbeat = before_holes(runs[name], frontiers), least_time(frontiers)
            if run.would_close(heartbeat):
                return True
            known[name] = of_query(run, heartbeat)
        else:
            by_port = {way.name: frontier for way, frontier in inputs}
            if operators[name].would_tell(by_port):
                return True
            # A run is a value: what it would be is not what it is.
            known[name] = operators[name].advance(by_port)[0].frontier
    return False


def _known(heartbeat: int) -> int | None:
    """A heartbeat as it is shown: none before the first, and none when everything has ended."""
    return None if abs(heartbeat) >= EDGE else heartbeat
