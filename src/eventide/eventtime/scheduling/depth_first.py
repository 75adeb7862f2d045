"""In which order operators run, and which silent sources are asked: depth first (Stream Mill paper, sections 3 to 5).

The rules, for the operator that one stands at (section 3.1, *next operator selection*):

- **Forward**: if it has given something that a reader has not taken, go to that reader.
- **Encore**: else, if it has something to take, let it run. (An operator that reads several others runs when those have
  nothing to do any more: one goes back to them first. So rows of a round that come by two ways are taken at once.)
- **Backtrack**: else, if it waits, go back to the input that holds it up (section 3.2), and from there further down, as
  long as nothing is to be done on the way.
- **Ask**: backtracking has come to a silent source: ask it for an enabling timestamp (section 5). If time has moved,
  the way leads forward again.

Laws. *Nobody is asked in vain*: a source is asked only if an operator above it waits for it, and once at the most.
*Nothing is left*: in the end no operator has anything to take, or to give, and whoever still waits has had all silent
sources asked that could have moved what it waits for. *An end*: every run takes something.

What a buffer, a register or a window is, an `Execution` knows. Rows of one round are taken together, so "something to
take" is a batch and not a row; the rules are the same.

>>> class Empty:
...     def gives(self, operator, reader): return False
...     def run(self, operator): raise AssertionError
...     def waits_for(self, operator, idle): return "S" if "S" in idle else None
...     def slowest(self, operator, idle): return idle[0]
...     def ask(self, source): return False
>>> from eventide.eventtime.scheduling.labels import Node
>>> for decision in depth_first(Shape(("S",), (Node("O", ("S",)),)), Empty(), idle=("S",)):
...     print(decision.at, decision.move.value, decision.to)
O backtrack S
S ask S
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from eventide.eventtime.scheduling.labels import Shape


class Move(Enum):
    """What the scheduler decided."""

    FORWARD = "forward"
    ENCORE = "encore"
    BACKTRACK = "backtrack"
    ASK = "ask"


@dataclass(frozen=True)
class Decision:
    """At which operator or source, what, where one stands afterwards, and why."""

    at: str
    move: Move
    to: str
    why: str


class Execution(Protocol):
    """What the scheduler has to know of operators while they run."""

    def gives(self, operator: str, reader: str) -> bool:
        """Whether an operator or source has given something that the reader has not taken.

        This is `yield` of the one and `more` of the other.
        """
        ...

    def run(self, operator: str) -> None:
        """Let an operator take what there is, and give what it can."""
        ...

    def waits_for(self, operator: str, idle: tuple[str, ...]) -> str | None:
        """Which of the inputs `idle` holds up rows that the operator has; None where none of them does."""
        ...

    def slowest(self, operator: str, idle: tuple[str, ...]) -> str:
        """The idle input with the least heartbeat, which holds the operator's own heartbeat back."""
        ...

    def ask(self, source: str) -> bool:
        """Ask a silent source; whether its heartbeat has moved."""
        ...


def depth_first(shape: Shape, execution: Execution, idle: Iterable[str]) -> Iterator[Decision]:
    """Run the plan until nothing is left to do, telling every decision; `idle` are the sources that may be asked."""
    schedule = _Schedule(shape, execution, set(idle))
    for source in shape.sources:
        yield from schedule.from_here(source)
    for node in shape.operators:
        yield from schedule.from_here(node.name)
    unasked = -1
    while unasked != len(schedule.idle):
        # What one has asked for may bring rows to another, which then waits for something else.
        unasked = len(schedule.idle)
        for node in reversed(shape.operators):
            yield from schedule.waiting_at(node.name)


class _Schedule:
    def __init__(self, shape: Shape, execution: Execution, idle: set[str]) -> None:
        self._shape = shape
        self._execution = execution
        self.idle = idle

    def from_here(self, start: str) -> Iterator[Decision]:
        """Follow what a source or an operator has to give, depth first, to the end of every way."""
        way = [start]
        while way:
            decision = self._next(way[-1])
            if decision is None:
                way.pop()
                continue
            yield decision
            if decision.move is Move.ENCORE:
                self._execution.run(decision.at)
            else:
                way.append(decision.to)

    def waiting_at(self, operator: str) -> Iterator[Decision]:
        """Go back from an operator that waits, ask, and come forward again; until it does not wait, or in vain."""
        while (held_up_by := self._execution.waits_for(operator, self._may_move(operator))) is not None:
            at, to = operator, held_up_by
            yield Decision(at, Move.BACKTRACK, to, f"{at} has rows that {to} holds up")
            while not self._shape.is_source(to):
                at, to = to, self._execution.slowest(to, self._may_move(to))
                yield Decision(at, Move.BACKTRACK, to, f"{at} has nothing to give before {to} moves")
            self.idle.discard(to)
            moved = self._execution.ask(to)
            yield Decision(to, Move.ASK, to, f"{operator} waits" + ("" if moved else ", but nothing later is known"))
            if moved:
                yield from self.from_here(to)

    def _next(self, at: str) -> Decision | None:
        aside = None
        for reader in self._shape.readers(at):
            if self._execution.gives(at, reader):
                behind = self._unfinished_below(reader)
                if behind is None:
                    return Decision(at, Move.FORWARD, reader, f"{at} has given what {reader} has not taken")
                if behind != at:
                    aside = Decision(at, Move.BACKTRACK, behind, f"{reader} takes what {behind} has to give as well")
        if self._takes(at) and self._unfinished_below(at) is None:
            return Decision(at, Move.ENCORE, at, f"{at} has something to take")
        return aside

    def _takes(self, operator: str) -> bool:
        return any(self._execution.gives(read, operator) for read in self._shape.inputs(operator))

    def _unfinished_below(self, operator: str) -> str | None:
        """The first operator below that has something to take; None where there is none."""
        return next((below for below in self._shape.operators_below(operator) if self._takes(below)), None)

    def _may_move(self, operator: str) -> tuple[str, ...]:
        return tuple(read for read in self._shape.inputs(operator) if self._shape.below(read) & self.idle)
