"""Early answers that were told to someone, until a round has scored them.

Laws. They come from any thread, at any moment; a round scores those that were there when it came to that step, and what
comes later waits for the next one. A round that fails has scored none. An answer from the last round is scored as if it
had come between two rounds. One from an earlier round, because the next was committed while it was being told, is
scored for the windows that are still open: the final rows of the others have come and gone. Of very many that are told
during one round, the last are scored.
"""

from __future__ import annotations

import threading
from collections.abc import Collection
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.operators.operator import Operator
from eventide.eventtime.early.triggers import Moment
from eventide.eventtime.instant import FOREVER
from eventide.plan.declared.query import Query
from eventide.plan.declared.window import RowWindow

MOST = 256
"""So many answers wait for a round, however long it takes: they are kept in memory."""


@dataclass(frozen=True, eq=False)
class EarlyEmission:
    """Early rows of a query after some round, and when they were told."""

    query: Query
    round: int
    table: pa.Table
    when: Moment
    up_to: int = FOREVER

    def is_of(self, query: Query) -> bool:
        """Whether it is that query's: one of the same name may have taken its place."""
        return self.query is query

    def still_open(self, operator: Operator, round: int) -> pa.Table:
        """The rows that wait for their final ones after a round that left the query so."""
        if self.round == round:
            return self.table
        if self.query.by_source or isinstance(self.query.window, RowWindow):
            # Windows that close by source, or over counts of rows, are told group by group: no one time tells which.
            return self.table.slice(0, 0)
        lasts = pc.subtract(self.table.column("window_end").cast(pa.int64()), 1)
        return self.table.filter(pc.greater(lasts, operator.frontier.time))


class UnscoredAnswers:
    """The answers that no committed round has scored."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._unscored: tuple[EarlyEmission, ...] = ()

    def add(self, emission: EarlyEmission) -> None:
        """Someone was told."""
        with self._mutex:
            self._unscored = (*self._unscored, emission)[-MOST:]

    def all(self) -> tuple[EarlyEmission, ...]:
        """Those that are here now, in the order in which they came."""
        return self._unscored

    def forget(self, scored: Collection[EarlyEmission]) -> None:
        """A round that has taken these is committed."""
        with self._mutex:
            gone = frozenset(scored)
            self._unscored = tuple(one for one in self._unscored if one not in gone)
