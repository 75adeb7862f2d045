"""Where a plan stands when it is asked: after a round, or within one.

Law: a standing is all that an early answer is made of, and it is a value: what it holds is never changed, only replaced
by that of a later round. So it can be asked by any number of threads, at any time, whatever becomes of the round under
way: that round may commit, fail, or add or remove queries, and the answer is still that of this standing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eventide.engine.early_state import EarlyState
from eventide.engine.levels import Level
from eventide.engine.operator_run import OperatorRun
from eventide.engine.stream_point import StreamPoint
from eventide.engine.work import Round, Run
from eventide.eventtime.prod import Prod
from eventide.plan.binding import BoundProgram

if TYPE_CHECKING:
    from eventide.engine.rounds import Engine


@dataclass(frozen=True)
class Standing:
    """A plan, and how far all of it has come. `states` is what was known of early answers."""

    number: int
    clock: int
    plan: BoundProgram
    levels: Mapping[str, Level]
    streams: Mapping[str, StreamPoint]
    heartbeats: Mapping[str, int]
    runs: Mapping[str, Run]
    operators: Mapping[str, OperatorRun]
    states: Mapping[str, EarlyState] = field(default_factory=dict)
    prods: dict[str, list[Prod]] = field(default_factory=dict)
    """The prods that were answered from it, to know those that are repeated: the one thing that grows."""

    @classmethod
    def after(cls, engine: Engine) -> Standing:
        """After the last round; to be taken by whoever runs rounds, between two of them."""
        state, points = engine.committed, {name: stream.point() for name, stream in engine.streams.items()}
        beats = {name: point.heartbeat for name, point in points.items()}
        plan = engine.plan, engine.levels, points, beats
        return cls(state.round, state.clock, *plan, state.runs, state.operators, engine.early.states)

    @classmethod
    def within(cls, engine: Engine, work: Round) -> Standing:
        """In the middle of a round, when what can be closed is closed."""
        points = {name: stream.point() for name, stream in engine.streams.items()}
        plan = engine.plan, engine.levels, points, work.heartbeats
        return cls(work.number, work.clock, *plan, work.runs, work.operators)

    def time(self, name: str) -> int:
        """How far a stream, query or operator has come."""
        if name in self.runs:
            return self.runs[name].promised()
        return self.operators[name].frontier.time if name in self.operators else self.heartbeats[name]
