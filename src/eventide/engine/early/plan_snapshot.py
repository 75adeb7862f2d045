"""A plan as it stands when it is asked: after a round, or within one.

Law: a snapshot is all that an early answer is made of, and it is a value: what it holds is never changed, only replaced
by that of a later round. So it can be asked by any number of threads, at any time, whatever becomes of the round under
way: that round may commit, fail, or add or remove queries, and the answer is still that of this snapshot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from eventide.engine.early.state import EarlyState
from eventide.engine.operators.operator import Operator
from eventide.engine.round.downstream import DownstreamFeed
from eventide.engine.streams.progress import StreamPoint
from eventide.eventtime.early.prod import Prod
from eventide.plan.binding import BoundProgram

if TYPE_CHECKING:
    from eventide.engine.round.engine import Engine


@dataclass(frozen=True)
class PlanSnapshot:
    """A plan, and how far all of it has come. `states` is what was known of early answers."""

    number: int
    clock: int
    plan: BoundProgram
    feeds: Mapping[str, DownstreamFeed]
    streams: Mapping[str, StreamPoint]
    heartbeats: Mapping[str, int]
    operators: Mapping[str, Operator]
    states: Mapping[str, EarlyState] = field(default_factory=dict)
    prods: dict[str, list[Prod]] = field(default_factory=dict)
    """The prods that were answered from it, to know those that are repeated: the one thing that grows."""

    @classmethod
    def after(cls, engine: Engine) -> PlanSnapshot:
        """After the last round; to be taken by whoever runs rounds, between two of them."""
        state, points = engine.state, {name: stream.point() for name, stream in engine.streams.items()}
        beats = {name: point.heartbeat for name, point in points.items()}
        plan = engine.plan, engine.feeds, points, beats
        return cls(state.round, state.clock, *plan, state.operators, engine.early.states)

    @classmethod
    def within(
        cls, engine: Engine, round: int, clock: int, heartbeats: Mapping[str, int], operators: Mapping[str, Operator]
    ) -> PlanSnapshot:
        """In the middle of a round, when what can be closed is closed."""
        points = {name: stream.point() for name, stream in engine.streams.items()}
        return cls(round, clock, engine.plan, engine.feeds, points, heartbeats, dict(operators))

    def time(self, name: str) -> int:
        """How far a stream or operator has come."""
        return self.operators[name].frontier.time if name in self.operators else self.heartbeats[name]

    def files(self, names: frozenset[str]) -> frozenset[str]:
        """The files in which these operators have state that is not with the driver."""
        return frozenset(
            file.name
            for name, operator in self.operators.items()
            if name in names
            for rows in operator.state.values()
            for part in rows.parts
            if part.table is None
            for file in part.files
        )
