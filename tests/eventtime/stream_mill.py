"""Selections and unions as the Stream Mill paper runs them, tuple by tuple, with a register for each input.

A union holds what it has taken, and gives a tuple when no register is before it (figures 5 and 6). The answers to
compare with are computed from all tuples at once, without any order of running.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from eventide.eventtime.instant import FOREVER, NEVER
from eventide.eventtime.scheduling.labels import Shape

Tuple = tuple[int, str]
"""A time and a value."""


@dataclass
class Arc:
    """What one has given and the reader not taken: tuples, and up to where time has come."""

    tuples: list[Tuple] = field(default_factory=list)
    heartbeat: int = NEVER
    taken: int = NEVER

    @property
    def has_news(self) -> bool:
        return bool(self.tuples) or self.heartbeat > self.taken


class Machine:
    """Operators of one input drop the values in `dropped`; the others are unions. All tell what they give."""

    def __init__(self, shape: Shape, answers: dict[str, int], dropped: frozenset[str] = frozenset()) -> None:
        self.shape = shape
        self.answers = answers
        self.dropped = dropped
        self.arcs = {(read, node.name): Arc() for node in shape.operators for read in node.inputs}
        self.held: dict[str, list[Tuple]] = {node.name: [] for node in shape.operators}
        self.told: dict[str, list[Tuple]] = {node.name: [] for node in shape.operators}
        self.heartbeats = dict.fromkeys((*shape.sources, *self.held), NEVER)
        self.runs = 0
        self.asked: list[str] = []

    def bring(self, source: str, tuples: list[Tuple], heartbeat: int) -> None:
        self._give(source, tuples, heartbeat)

    def _give(self, name: str, tuples: list[Tuple], heartbeat: int) -> None:
        self.heartbeats[name] = max(self.heartbeats[name], heartbeat)
        for reader in self.shape.readers(name):
            arc = self.arcs[name, reader]
            arc.tuples += tuples
            arc.heartbeat = self.heartbeats[name]

    # The protocol

    def gives(self, operator: str, reader: str) -> bool:
        return self.arcs[operator, reader].has_news

    def run(self, operator: str) -> None:
        self.runs += 1
        arcs = [self.arcs[read, operator] for read in self.shape.inputs(operator)]
        assert any(arc.has_news for arc in arcs), f"{operator} runs although it has nothing to take"
        for arc in arcs:
            self.held[operator] += [one for one in arc.tuples if one[1] not in self.dropped]
            arc.tuples = []
            arc.taken = arc.heartbeat
        bound = min(arc.taken for arc in arcs)
        ready = sorted(one for one in self.held[operator] if one[0] <= bound)
        self.held[operator] = [one for one in self.held[operator] if one[0] > bound]
        self.told[operator] += ready
        self._give(operator, ready, bound)

    def waits_for(self, operator: str, idle: tuple[str, ...]) -> str | None:
        if not self.held[operator] or not idle:
            return None
        others = [self.arcs[read, operator].taken for read in self.shape.inputs(operator) if read not in idle]
        if min(others, default=FOREVER) < min(self.held[operator])[0]:
            return None
        return self.slowest(operator, idle)

    def slowest(self, operator: str, idle: tuple[str, ...]) -> str:
        return min(idle, key=lambda read: self.arcs[read, operator].taken)

    def ask(self, source: str) -> bool:
        self.asked.append(source)
        moved = self.answers[source] > self.heartbeats[source]
        self._give(source, [], self.answers[source])
        return moved


def all_at_once(
    shape: Shape, rows: dict[str, list[Tuple]], heartbeats: dict[str, int], dropped: frozenset[str]
) -> dict[str, list[Tuple]]:
    """What every operator tells, if each source has these tuples and that heartbeat."""
    found: dict[str, list[Tuple]] = {}
    for node in shape.operators:
        bound = min(heartbeats[source] for source in shape.below(node.name))
        tuples = [one for read in node.inputs for one in (rows[read] if shape.is_source(read) else found[read])]
        found[node.name] = sorted(one for one in tuples if one[0] <= bound and one[1] not in dropped)
    return found
