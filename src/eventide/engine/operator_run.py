"""What every operator is to the round: rows come in by ports, rows go out, and time is promised to whoever reads it.

Laws. A run is a value: every step gives a new one, so a round that fails changes nothing. *Own frontier*: an operator
goes as far as its own inputs allow, whatever the rest of the plan waits for (STREAM paper, section 5: operator-level
heartbeats). *Promise*: after `advance`, every later output row has its time after `frontier.time`, and each temporal
column at or after its entry in `frontier.least`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, Self

import pyarrow as pa

from eventide.engine.taken import Answer, Taken
from eventide.eventtime.instant import FOREVER, NEVER, Instants
from eventide.eventtime.span import Span
from eventide.plan.bound import Bound
from eventide.plan.columns import Column
from eventide.plan.derived import Derived


@dataclass(frozen=True)
class Frontier:
    """What is known of the later rows of a stream, query or operator.

    Their times are after `time`, or in one of `holes`, spans that were set aside; a column in `least` has no smaller
    value than that in any of them.

    >>> Frontier(9, {"t": 10}).is_over, Frontier(FOREVER).is_over
    (False, True)
    """

    time: int = NEVER
    least: Mapping[str, int | Fraction] = field(default_factory=dict)
    holes: tuple[Span, ...] = ()

    @property
    def is_over(self) -> bool:
        """Whether there are no later rows."""
        return self.time == FOREVER


@dataclass(frozen=True)
class Kept:
    """One kind of an operator's state, on disk a series of files; every table of it has a column `__t`.

    `added` came in this round and is written as one small file. A file goes when all its `__t` are before `live`. When
    there are many, `whole` is written in their place.
    """

    added: pa.Table | None
    live: int
    whole: Callable[[], pa.Table]


class BoundOperator(Protocol):
    """An operator whose names are checked and whose columns have types."""

    @property
    def name(self) -> str:
        """The name that others read it by."""
        ...

    @property
    def ports(self) -> tuple[Bound, ...]:
        """Its inputs, each the way in of one stream, query or operator (`plan.port`)."""
        ...

    @property
    def outputs(self) -> tuple[Column, ...]:
        """The user's columns."""
        ...

    @property
    def results(self) -> Derived:
        """Its rows as a stream for whoever reads it."""
        ...


class OperatorRun(Protocol):
    """An operator while it runs."""

    @property
    def bound(self) -> BoundOperator:
        """The operator."""
        ...

    @property
    def rows(self) -> int:
        """Rows that are held."""
        ...

    @property
    def bytes(self) -> int:
        """Memory of the rows that are held."""
        ...

    @property
    def holds(self) -> Instants:
        """The times of rows that are held, ascending, each once."""
        ...

    @property
    def frontier(self) -> Frontier:
        """What later output rows are like."""
        ...

    def stamped(self, port: str, chunk: pa.Table, clock: int) -> pa.Table:
        """Rows that came into a port without a time of their own: theirs is the clock of the round."""
        ...

    def take(self, port: str, chunk: pa.Table) -> tuple[Self, Taken]:
        """Add the rows of a round that came into a port; it says itself which are late.

        None may be accepted that would break the promise of `frontier`.
        """
        ...

    def would_tell(self, frontiers: Mapping[str, Frontier]) -> bool:
        """Whether these frontiers of the ports' inputs would tell or free a row."""
        ...

    def advance(self, frontiers: Mapping[str, Frontier]) -> tuple[Self, Answer]:
        """Tell what can be told, free what is done with; `frontiers` are those of the inputs, by port.

        The answer has `window_start`, `window_end` (the span), `rows` (how many rows went in), the outputs, `__lost`.
        """
        ...

    def saved(self) -> dict[str, Any]:
        """Plain data for the round record, beside the rows."""
        ...

    def kept(self) -> dict[str, Kept]:
        """What is to be on disk, by a name for each kind: rows of each port, and whatever else it must know."""
        ...

    @classmethod
    def restored(cls, bound: Any, bench: Any, saved: dict[str, Any], tables: Mapping[str, list[pa.Table]]) -> Self:
        """Continue from what was saved; the tables of each kind may hold more than is still needed."""
        ...
