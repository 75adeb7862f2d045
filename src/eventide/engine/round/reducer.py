"""The statements that reduce the rows of a stream: to slices for each aggregate, and to cells for time.

Law: what a round brought is told apart, never lost: partials of rows that queries want, cells of all rows, and the
number of rows without a usable time. Partials are not yet judged: which of them are late is for the query to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.relations.backend import BatchSql
from eventide.plan.bound.query import BoundQuery
from eventide.plan.bound.rows import slice_columns
from eventide.plan.declared.stream import Stream
from eventide.plan.sql.arrivals import cell_width
from eventide.plan.sql.failing_rows import fail_safe_form
from eventide.plan.sql.portable import is_portable
from eventide.plan.sql.reduce import ReduceText, column_of, reduce_text, wants

CELL_COLUMNS = ("__n", "__lo", "__hi")


@dataclass(frozen=True)
class Cells:
    """What the rows of a stream say of time: by source, how many came from which time to which.

    `unusable` rows have no time that can be used; `slices` are the partial aggregates that were computed beside, by
    query.
    """

    table: pa.Table
    source_columns: tuple[str, ...]
    rows: int
    unusable: int
    slices: dict[str, pa.Table]

    @property
    def latest(self) -> int | None:
        """The largest time."""
        found: int | None = pc.max(self.table.column("__hi")).as_py()
        return found


@dataclass(frozen=True)
class Reducer:
    """The statements for one stream, written once and used every round.

    `together` are the aggregates whose slices come to the driver, by one statement that reads every row once; all
    `others`, ports and aggregates, have a statement each.
    """

    stream: Stream
    together: tuple[BoundQuery, ...]
    others: tuple[BoundQuery, ...]
    text: ReduceText

    @classmethod
    def of(cls, stream: Stream, bounds: Sequence[BoundQuery], on_cluster: frozenset[str] = frozenset()) -> Reducer:
        """Write the statements; slices that are kept on the cluster do not come to the driver."""
        together = tuple(one for one in bounds if not one.keeps_rows and one.query.name not in on_cluster)
        others = tuple(one for one in bounds if one not in together)
        # Without one that keeps partials here, the cells stand for themselves.
        text = reduce_text(stream, together, _cell(stream, bounds), any(not one.keeps_rows for one in others), None)
        return cls(stream, together, others, text)

    @property
    def bounds(self) -> tuple[BoundQuery, ...]:
        """Every query and port that reads the stream."""
        return (*self.together, *self.others)

    @cached_property
    def fail_safe(self) -> Reducer:
        """The same, over the rows that break no query."""
        names = frozenset(one.query.name for one in self.others if not one.keeps_rows)
        return Reducer.of(self.stream, [fail_safe_form(one) for one in self.bounds], names)

    @cached_property
    def _portable(self) -> bool:
        return all(map(is_portable, self.text.branches))

    def reduce(self, backend: BatchSql, up_to: int | None = None) -> Cells:
        """Run the common statement over the rows of a round; `up_to` leaves out rows from the future."""
        text = self.text
        if up_to is not None:
            own = text.summary_in < 0
            text = reduce_text(self.stream, self.together, _cell(self.stream, self.bounds), own, up_to)
        answer = backend.reduce(self.stream, text.sql, self._portable)
        slices = {query.query.name: _slices(answer, i, query) for i, query in enumerate(text.branches)}
        cells = _of_branch(answer, text.summary_in, text)
        unusable = pc.sum(cells.filter(pc.is_null(cells.column("__lo"))).column("__n")).as_py() or 0
        rows = pc.sum(cells.column("__n")).as_py() or 0
        return Cells(cells, text.source_keys, int(rows), int(unusable), slices)


def _cell(stream: Stream, queries: Sequence[BoundQuery]) -> int:
    return cell_width(stream, [query.panes.pane for query in queries if not query.keeps_rows])


def _of_branch(answer: pa.Table, branch: int, text: ReduceText) -> pa.Table:
    names = [*text.source_keys, *CELL_COLUMNS, *(["__at"] if text.stream.arrival is not None else [])]
    rows = answer if _alone(text) else answer.filter(pc.equal(answer.column("__branch"), branch))
    return rows.select(names)


def _slices(answer: pa.Table, branch: int, query: BoundQuery) -> pa.Table:
    """The partial aggregates of one query, under their own names."""
    keep = pc.is_valid(answer.column(f"__pane{branch}"))
    if wants(query) is not None:
        keep = pc.and_(keep, pc.fill_null(answer.column(f"__want{branch}"), False))
    keep = pc.and_(keep, pc.equal(answer.column("__branch"), branch))
    names = [f"__pane{branch}", *(f"__k{branch}_{j}" for j in range(len(query.keys))), "__n"]
    names += [column_of(branch, partial.name) for partial in query.partials]
    return answer.filter(keep).select(names).rename_columns([column.name for column in slice_columns(query)])


def _alone(text: ReduceText) -> bool:
    return len(text.branches) + (text.summary_in < 0) == 1
