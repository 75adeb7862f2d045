"""Caps each input's frontier at the least heartbeat of the operator's label.

Law: an operator sees each input as far as it has come, and no further than the least heartbeat of its label
(`eventtime.scheduling.labels`). What was known of the input's columns at an earlier time is what is known of them then;
labels may change from round to round, and no operator ever goes back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from eventide.engine.operators.frontier import OperatorFrontier, of_stream
from eventide.eventtime.instant import FOREVER
from eventide.eventtime.scheduling.labels import HeartbeatScope, Node, Shape, labels
from eventide.plan.binding import BoundProgram, Edge, input_managers
from eventide.plan.declared.program import Program
from eventide.plan.declared.stream import Stream
from eventide.plan.declared.window import RowWindow

REMEMBERED = 64
"""So many earlier frontiers of an input are remembered, for an operator that is held behind them."""


def shape_of(program: Program, inputs: Mapping[str, Iterable[str]]) -> Shape:
    """The plan as labels need it: `inputs` is what each query and operator that runs takes its rows from."""
    names = (step.name for step in program.steps if step.name in inputs)
    nodes = (Node(name, tuple(dict.fromkeys(inputs[name]))) for name in names)
    return Shape(tuple(stream.name for stream in program.streams), tuple(nodes))


def others_of(
    program: Program, shape: Shape, level: HeartbeatScope, selectivity: Mapping[str, float]
) -> dict[str, tuple[str, ...]]:
    """For each query and operator, the streams that it waits for although it does not read them."""
    found = labels(shape, level, selectivity)
    others = {name: _comparable(program, shape, name, found[name] - shape.below(name)) for name in found}
    if level is HeartbeatScope.MEMORY:
        # What is kept before a join goes by what the join goes by.
        others |= {name: others[join] for name, join in input_managers(program).items()}
    return others


def _comparable(program: Program, shape: Shape, name: str, sources: frozenset[str]) -> tuple[str, ...]:
    """Those of the streams whose time is the operator's own kind of time, not the number of a row."""
    below = shape.operators_below(name)
    if any(isinstance(query.window, RowWindow) for query in program.queries if query.name in below):
        return ()
    kind = {stream.name: stream.time_kind for stream in program.streams}
    kinds = {kind[source] for source in shape.below(name)}
    return tuple(sorted(one for one in sources if {kind[one]} == kinds))


class FrontierLimits:
    """The labels of a program, for a round or until they are made anew."""

    def __init__(self, plan: BoundProgram, level: HeartbeatScope) -> None:
        self._plan = plan
        self._level = level
        self._streams: Mapping[str, Stream] = {stream.name: stream for stream in plan.program.streams}
        names = (*plan.queries, *plan.operators)
        self.plan_shape = shape_of(plan.program, {name: [way.source for way in plan.ways_into(name)] for name in names})
        self._seen: dict[str, list[OperatorFrontier]] = {}
        self.others: dict[str, tuple[str, ...]] = {}
        self.shape = self.plan_shape
        self.label({})

    def label(self, selectivity: Mapping[str, float]) -> bool:
        """Assign the labels; whether any has changed."""
        others = others_of(self._plan.program, self.plan_shape, self._level, selectivity)
        changed = others != self.others
        if changed:
            # Whoever goes by a stream reads its time.
            self.others = others
            nodes = (Node(node.name, (*node.inputs, *others[node.name])) for node in self.plan_shape.operators)
            self.shape = Shape(self.plan_shape.sources, tuple(nodes))
        return changed

    def remember(self, name: str, frontier: OperatorFrontier) -> None:
        """Note how far a query or operator has come."""
        if self._level is not HeartbeatScope.OPERATOR:
            seen = self._seen.setdefault(name, [])
            if not seen or seen[-1] != frontier:
                seen.append(frontier)
                del seen[:-REMEMBERED]

    def inputs(self, name: str, known: Mapping[str, OperatorFrontier]) -> tuple[tuple[Edge, OperatorFrontier], ...]:
        """How far the inputs of a query or operator count for it, by way."""
        limit = min((known[source].time for source in self.others[name]), default=FOREVER)
        return tuple((way, self._up_to(way.source, known[way.source], limit)) for way in self._plan.ways_into(name))

    def _up_to(self, source: str, frontier: OperatorFrontier, limit: int) -> OperatorFrontier:
        if frontier.time <= limit:
            return frontier
        if source in self._streams:
            return of_stream(self._streams[source], limit)
        earlier = [one for one in self._seen.get(source, ()) if one.time <= limit]
        # What is set aside is open, however far the rest has come.
        return replace(earlier[-1] if earlier else OperatorFrontier(), time=limit, holes=frontier.holes)
