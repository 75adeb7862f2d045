"""Answers of the last round, for those who ask again.

Law: an early answer is made of what the last committed round left, so until the next one the same prod has the same
answer; it is given again without asking the engine, which would have to keep every answer until a round has scored it.
A dashboard over a silent stream so costs nothing. What is remembered is of one round, and is bounded.

>>> remembered = Remembered()
>>> remembered.keep(3, "plan", "speeds", Prod(), Answered(3, Timing.TIMELY, b"{}"))
>>> remembered.find(3, "plan", "speeds", Prod()).timing.value, remembered.find(4, "plan", "speeds", Prod())
('repeated', None)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, replace

from eventide.eventtime.early.prod import Prod, Timing

MOST, MOST_BYTES = 256, 4 << 20


@dataclass(frozen=True)
class Answered:
    """How a prod came in a round, and the rows of its answer as JSON, with commas between them."""

    round: int
    timing: Timing
    rows: bytes


class Remembered:
    """Answers by query and prod; to be used by one thread at a time."""

    def __init__(self) -> None:
        self._round: int | None = None
        self._plan: object = None
        self._answers: OrderedDict[Hashable, Answered] = OrderedDict()
        self._bytes = 0

    def find(self, round: int, plan: object, query: str, prod: Prod) -> Answered | None:
        """The answer to the same prod after the same round, of the same plan."""
        found = self._answers.get(_key(query, prod)) if round == self._round and plan is self._plan else None
        if found is None or found.timing is not Timing.TIMELY:
            return found
        return replace(found, timing=Timing.REPEATED)

    def keep(self, round: int, plan: object, query: str, prod: Prod, answer: Answered) -> None:
        """Remember an answer, and forget those of another round, and the oldest ones where there are too many."""
        if round != self._round or plan is not self._plan:
            self._answers.clear()
            self._round, self._plan, self._bytes = round, plan, 0
        self._bytes += len(answer.rows)
        self._answers[_key(query, prod)] = answer
        while len(self._answers) > MOST or self._bytes > MOST_BYTES:
            _, oldest = self._answers.popitem(last=False)
            self._bytes -= len(oldest.rows)


def _key(query: str, prod: Prod) -> Hashable:
    return query, prod.up_to, prod.after, frozenset(prod.groups.items())
