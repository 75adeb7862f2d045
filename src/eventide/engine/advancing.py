"""Step 3 of a round: queries and operators, each after what it reads, go as far as their own inputs allow.

Laws. *Own frontier*: each runs up to the least heartbeat of its own inputs, whatever the rest of the plan waits for
(STREAM paper, section 5: operator-level heartbeats). What is told below is reduced at once for whoever reads it, and
closes windows above in the same round.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from eventide.engine.answers import operator_schema, result_schema, results_of
from eventide.engine.frontiers import least_time, of_query, of_stream
from eventide.engine.ledger import lost_rows, lost_values
from eventide.engine.levels import Level
from eventide.engine.operator_run import Frontier, OperatorRun
from eventide.engine.stream_time import StreamTime
from eventide.engine.taken import Answer, Answers
from eventide.engine.work import Round, Run
from eventide.errors import DataFaultError, EngineError
from eventide.eventtime.instant import EDGE, NEVER
from eventide.plan.binding import BoundProgram
from eventide.plan.query import Query


class Advance:
    """Goes through the steps of a program."""

    def __init__(
        self,
        plan: BoundProgram,
        levels: Mapping[str, Level],
        streams: Mapping[str, StreamTime],
        flush_rows: int | None = None,
    ) -> None:
        self._plan = plan
        self._flush_rows = flush_rows
        self._levels = levels
        self._streams = streams

    def run(self, work: Round, only: Collection[str] | None = None) -> None:
        """Close what can be closed; results are left in the round. `only` some of the steps, if they are named."""
        for name, heartbeat in work.heartbeats.items():
            work.frontiers[name] = of_stream(self._streams[name].stream, heartbeat)
        for step in self._plan.program.steps:
            if only is not None and step.name not in only:
                continue
            if isinstance(step, Query):
                final = self._query(work, step.name)
            elif step.name in work.operators:
                final = self._operator(work, step.name)
            else:
                continue
            if step.name in self._levels:
                self._levels[step.name].bring(work, final)

    def _query(self, work: Round, name: str) -> Answer:
        run = work.runs[name]
        sources = [way.source for way in self._plan.ways_into(name)]
        heartbeat = least_time(work.frontiers[source] for source in sources)
        latest = max(self._streams[source].latest if source in self._streams else NEVER for source in sources)
        try:
            work.runs[name], answers = run.advance(heartbeat, work.taken.get(name), latest, self._flush_rows)
        except DataFaultError as fault:
            raise EngineError(
                f"query {name!r}: an aggregate of it fails over the rows of a window; "
                f"choose one that gives NULL instead, such as try_sum ({fault})"
            ) from fault
        for answer in (answers.final, answers.revised):
            lost = lost_values(run.query, answer, work.number)
            if lost is not None:
                work.rejects.setdefault(run.query.query.stream, []).append(lost)
        schema = result_schema(run.query)
        work.results[name] = results_of(name, schema, work.number, _known(heartbeat), answers)
        work.frontiers[name] = of_query(work.runs[name])
        return answers.final

    def _operator(self, work: Round, name: str) -> Answer:
        run = work.operators[name]
        inputs = frontiers_into(self._plan, name, work.frontiers)
        try:
            work.operators[name], told = run.advance(inputs)
        except DataFaultError as fault:
            raise EngineError(f"query {name!r}: an expression of it fails for a row ({fault})") from fault
        lost = lost_rows(name, told, work.number)
        if lost is not None:
            work.rejects.setdefault(name, []).append(lost)
        schema = operator_schema(run.bound)
        answers = Answers(told, Answer.of(schema.empty_table()))
        heartbeat = least_time(inputs.values())
        work.results[name] = results_of(name, schema, work.number, _known(heartbeat), answers)
        work.frontiers[name] = work.operators[name].frontier
        return told


def frontiers_into(plan: BoundProgram, operator: str, known: Mapping[str, Frontier]) -> dict[str, Frontier]:
    """The frontiers of an operator's inputs, by port."""
    return {way.name: known[way.source] for way in plan.ways_into(operator)}


def would_close(
    plan: BoundProgram,
    runs: Mapping[str, Run],
    operators: Mapping[str, OperatorRun],
    streams: Mapping[str, Frontier],
) -> bool:
    """Whether these frontiers of the streams would answer a window or tell a row, anywhere in the plan."""
    known = dict(streams)
    for step in plan.program.steps:
        name = step.name
        if isinstance(step, Query):
            heartbeat = least_time(known[way.source] for way in plan.ways_into(name))
            if runs[name].would_close(heartbeat):
                return True
            known[name] = of_query(runs[name], heartbeat)
        elif name in operators:
            inputs = frontiers_into(plan, name, known)
            if operators[name].would_tell(inputs):
                return True
            # A run is a value: what it would be is not what it is.
            known[name] = operators[name].advance(inputs)[0].frontier
    return False


def _known(heartbeat: int) -> int | None:
    """A heartbeat as it is shown: none before the first, and none when everything has ended."""
    return None if abs(heartbeat) >= EDGE else heartbeat
