"""The scheduler of an engine: how far operators may go, which idle streams are asked, and what was measured for it.

Law: it is made anew from the last round record whenever a round fails or the program changes, so a round that is run
again is scheduled as it was, but for what it remembers of frontiers before the last round, which only lets an operator
that is held back wait a little longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eventide.engine.operators.operator import Operator
from eventide.engine.relations.executor import Executor
from eventide.engine.round.advance import AdvanceStep, DownstreamFeed, RunningOperators, would_emit
from eventide.engine.round.heartbeats import Ingestion
from eventide.engine.scheduling.frontier_limits import FrontierLimits
from eventide.engine.scheduling.trace import Trace, TraceLine
from eventide.engine.stream_progress import StreamProgress
from eventide.eventtime.scheduling.expensive import SelectivityTracker
from eventide.eventtime.scheduling.labels import HeartbeatScope
from eventide.eventtime.scheduling.options import Scheduling
from eventide.plan.binding import BoundProgram


class Scheduler:
    """Goes through the operators of a program, round by round; `saved` is what the record says of them."""

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
