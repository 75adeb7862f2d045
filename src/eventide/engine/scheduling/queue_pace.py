"""How many rows may go through a queue in a round: as many as an expensive function takes in the time it is given.

Law: the number is settled before the round, and written into its intent, so a round run again lets the same rows go. A
declared one is that. Otherwise it follows what the last rounds took for a row, and grows at most fourfold from one
round to the next, so that one quick round does not lead to a slow one.

>>> pace = QueuePace(seconds=0.5)
>>> pace.budget("q"), pace.learn("q", rows=1000, seconds=2.0), pace.budget("q")
(1000, None, 250)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from eventide.plan.declared.program import Operator
from eventide.plan.declared.rows import Queue

FIRST = 1_000
GROWTH = 4
MOST = 1_000_000


@dataclass
class QueuePace:
    """What is known of the queues of an engine, each of which is given `seconds` of a round, or `rows`."""

    seconds: float = 0.5
    rows: int | None = None
    _next: dict[str, int] = field(default_factory=dict)

    def budget(self, queue: str) -> int:
        """How many rows may go in the next round."""
        return self.rows or self._next.get(queue, FIRST)

    def budgets(self, operators: Iterable[Operator]) -> dict[str, int]:
        """The budget of every queue of a program."""
        return {one.name: one.room or self.budget(one.name) for one in operators if isinstance(one, Queue)}

    def learn(self, queue: str, rows: int, seconds: float) -> None:
        """So many rows have gone through, and took so long."""
        if rows:
            fitting = round(self.seconds * rows / max(seconds, 1e-9))
            self._next[queue] = max(1, min(fitting, GROWTH * max(rows, self.budget(queue)), MOST))
