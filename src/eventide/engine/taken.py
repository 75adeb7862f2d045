"""What a query makes of a round: which partials it took, and what it answers.

>>> answer = Answer.of(pa.table({"rows": [3]}))
>>> answer.rows, [part.num_rows for part in answer.parts()]
(1, [1])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from eventide.engine.cluster_slices import Chunk
    from eventide.plan.bound import Bound


@dataclass(frozen=True)
class Taken:
    """What became of a round's partials.

    `wanted` rows came; those of `late_panes` were too late, those of the panes `revising` change answers that were
    given. `accepted` is what was added to the slices, for the disk; `changed` holds at least what is in those panes.
    `late_where`, if any, is a condition that holds for all rows that were late: not all of their panes need be."""

    wanted: int
    accepted: pa.Table | None = None
    late_panes: tuple[int, ...] = ()
    late_rows: int = 0
    revising: tuple[int, ...] = ()
    revising_rows: int = 0
    changed: pa.Table | Chunk | None = None
    late_where: str | None = None

    def with_more(self, other: Taken) -> Taken:
        """Both, as if they had come at once.

        >>> Taken(3, None, (10,), 1).with_more(Taken(2, None, (20, 10), 2)).late_panes
        (10, 20)
        """
        return Taken(
            self.wanted + other.wanted,
            _both(self.accepted, other.accepted),
            tuple(sorted({*self.late_panes, *other.late_panes})),
            self.late_rows + other.late_rows,
            tuple(sorted({*self.revising, *other.revising})),
            self.revising_rows + other.revising_rows,
            _both(self.changed, other.changed),
        )


@dataclass(frozen=True)
class Answer:
    """Rows of an answer: here as a table, or in files of the cluster that are read part by part.

    `lossy`: whether values of it may be lost that the query does not check by itself.
    """

    rows: int
    parts: Callable[[], Iterator[pa.Table]]
    lossy: bool = False

    @classmethod
    def of(cls, table: pa.Table, lossy: bool = False) -> Answer:
        """An answer that is at hand."""
        return cls(table.num_rows, lambda: iter((table,)), lossy)

    def with_more(self, other: Answer) -> Answer:
        """Both, one after the other.

        >>> both = Answer.of(pa.table({"rows": [3]})).with_more(Answer.of(pa.table({"rows": [4]})))
        >>> both.rows, [part.num_rows for part in both.parts()]
        (2, [1, 1])
        """
        if self.rows == 0 or other.rows == 0:
            return other if self.rows == 0 else self
        return Answer(self.rows + other.rows, lambda: chain(self.parts(), other.parts()), self.lossy or other.lossy)


@dataclass(frozen=True)
class Answers:
    """What a query has to say in a round: of windows that closed, and of windows told anew."""

    final: Answer
    revised: Answer

    def with_more(self, other: Answers) -> Answers:
        """Both, one after the other."""
        return Answers(self.final.with_more(other.final), self.revised.with_more(other.revised))


def rows_in(chunk: pa.Table, query: Bound) -> int:
    """How many rows some partials of a query stand for."""
    if query.keeps_rows:
        return int(chunk.num_rows)
    return int(pc.sum(chunk.column("__n")).as_py() or 0)


def _both(one: Any, other: Any) -> Any:
    """Two tables, or two sets of files, as one."""
    if one is None or other is None:
        return other if one is None else one
    return pa.concat_tables([one, other]) if isinstance(one, pa.Table) else one.with_more(other)
