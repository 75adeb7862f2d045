"""The scheduler of an engine: how far operators may go, which silent streams are asked, and what was measured for it.

Law: it is made anew from the last round record whenever a round fails or the program changes, so a round that is run
again is scheduled as it was, but for what it remembers of frontiers before the last round, which only lets an operator
that is held back wait a little longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eventide.engine.advancing import Advance, would_close
from eventide.engine.holding import Holding
from eventide.engine.levels import Level as RowsLevel
from eventide.engine.measuring import Measuring
from eventide.engine.operator_run import Frontier, OperatorRun
from eventide.engine.stream_time import StreamTime
from eventide.engine.trace import Trace, TraceLine
from eventide.engine.work import Round, Run
from eventide.eventtime.heartbeat_labels import Level
from eventide.eventtime.scheduling import Scheduling
from eventide.plan.binding import BoundProgram


class Scheduler:
    """Goes through the queries and operators of a program, round by round; `saved` is what the record says of them."""

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
        self._holding = Holding(plan, scheduling.heartbeats)
        # Only labels that depend on it need it measured.
        self._measuring = Measuring(saved) if scheduling.heartbeats is Level.MEMORY else None
        self._trace = trace

    def run(self, work: Round, levels: Mapping[str, RowsLevel], streams: Mapping[str, StreamTime]) -> None:
        """Step 3 of a round."""
        if self._measuring is not None and self._holding.label(self._measuring.ratios()):
            self._tell_labels(work)
        Advance(self._plan, levels, streams, self._holding, self._flush_rows, self._trace).run(work)
        if self._measuring is not None:
            self._measure(work, self._measuring)

    def would_close(
        self,
        runs: Mapping[str, Run],
        operators: Mapping[str, OperatorRun],
        streams: Mapping[str, Frontier],
    ) -> bool:
        """Whether these frontiers of the streams would answer a window or tell a row, anywhere in the plan."""
        return would_close(self._holding, runs, operators, streams)

    def _measure(self, work: Round, measuring: Measuring) -> None:
        for node in self._holding.plain.operators:
            name = node.name
            seen = min(work.frontiers[read].time for read in node.inputs)
            reached = min(frontier.time for _, frontier in self._holding.inputs(name, work.frontiers))
            measuring.count(name, work.came.get(name, 0), work.answers[name].final.rows, seen, reached)
            work.saved[name] = measuring.saved(name)

    def _tell_labels(self, work: Round) -> None:
        if self._trace is None:
            return
        for name, others in self._holding.others.items():
            why = f"waits for {', '.join(others)} as well" if others else "goes by its own inputs"
            self._trace(TraceLine(work.number, work.clock, name, "label", name, why))
