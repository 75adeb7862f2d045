"""Step 1 of a round: its rows become partials for each query and cells for time.

Law: what a round brought is told apart, never lost: partials of rows that queries want, cells of all rows, and the
number of rows without a usable time. Partials are not yet judged: which of them are late is for the query to say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.asking import Asking
from eventide.engine.cluster_slices import Chunk
from eventide.engine.slices import slice_schema
from eventide.plan.bound import Bound
from eventide.plan.broken import careful
from eventide.plan.cells import cell_width
from eventide.plan.plain import is_plain, keeps_plainly
from eventide.plan.reduce_text import ReduceText, column_of, kept_text, reduce_text, wants
from eventide.plan.stream import Stream

CELL_COLUMNS = ("__n", "__lo", "__hi")


@dataclass(frozen=True)
class Reduction:
    """One stream's part of a round."""

    cells: pa.Table
    source_columns: tuple[str, ...]
    rejected: int
    rows: int
    chunks: dict[str, pa.Table | Chunk] = field(default_factory=dict)
    promises: pa.Table | None = None
    """The promises among the rows, where the stream has a column for them."""

    @property
    def spoke(self) -> bool:
        """Whether the stream had anything to say."""
        return self.rows > 0 or (self.promises is not None and self.promises.num_rows > 0)


@dataclass(frozen=True)
class Reducer:
    """The statements for one stream and its queries, written once and used every round."""

    stream: Stream
    queries: tuple[Bound, ...]
    stored: tuple[Bound, ...]
    text: ReduceText

    @cached_property
    def careful(self) -> Reducer:
        """The same, over the rows that break no query."""
        here, stored = map(careful, self.queries), map(careful, self.stored)
        return Reducer.of(self.stream, [*here, *stored], frozenset(query.query.name for query in self.stored))

    @cached_property
    def _plain(self) -> bool:
        return all(map(is_plain, self.text.branches))

    @classmethod
    def of(cls, stream: Stream, queries: Sequence[Bound], on_cluster: frozenset[str] = frozenset()) -> Reducer:
        """Write the statements; queries whose slices are on the cluster are not brought to the driver."""
        here = tuple(query for query in queries if query.query.name not in on_cluster)
        stored = tuple(query for query in queries if query.query.name in on_cluster)
        text = reduce_text(stream, here, _cell(stream, queries), bool(stored), None)
        return cls(stream, here, stored, text)

    def reduce(self, backend: Asking, up_to: int | None = None) -> Reduction:
        """Run them over the rows that the backend was given; `up_to` leaves out rows from the future."""
        text = self.text
        if up_to is not None:
            own = text.summary_in < 0
            text = reduce_text(self.stream, self.queries, _cell(self.stream, self.queries), own, up_to)
        answer = backend.reduce(self.stream, text.sql, self._plain)
        chunks: dict[str, pa.Table | Chunk] = {
            query.query.name: _chunk(answer, i, query) for i, query in enumerate(text.branches)
        }
        for query in self.queries:
            if query.keeps_rows:
                kept = backend.reduce(self.stream, kept_text(query, up_to), keeps_plainly(query))
                chunks[query.query.name] = kept.select(slice_schema(query).names).cast(slice_schema(query))
        cells = _of_branch(answer, text.summary_in, text)
        unusable = pc.sum(cells.filter(pc.is_null(cells.column("__lo"))).column("__n")).as_py() or 0
        rows = pc.sum(cells.column("__n")).as_py() or 0
        return Reduction(cells, text.source_keys, int(unusable), int(rows), chunks)


def _cell(stream: Stream, queries: Sequence[Bound]) -> int:
    return cell_width(stream, [query.panes.pane for query in queries if not query.keeps_rows])


def _of_branch(answer: pa.Table, branch: int, text: ReduceText) -> pa.Table:
    names = [*text.source_keys, *CELL_COLUMNS, *(["__at"] if text.stream.arrival is not None else [])]
    rows = answer if _alone(text) else answer.filter(pc.equal(answer.column("__branch"), branch))
    return rows.select(names)


def _chunk(answer: pa.Table, branch: int, query: Bound) -> pa.Table:
    """The partials of one query, under their own names."""
    keep = pc.is_valid(answer.column(f"__pane{branch}"))
    if wants(query) is not None:
        keep = pc.and_(keep, pc.fill_null(answer.column(f"__want{branch}"), False))
    keep = pc.and_(keep, pc.equal(answer.column("__branch"), branch))
    rows = answer.filter(keep)
    schema = slice_schema(query)
    names = [f"__pane{branch}", *(f"__k{branch}_{j}" for j in range(len(query.keys))), "__n"]
    names += [column_of(branch, partial.name) for partial in query.partials]
    return rows.select(names).rename_columns(schema.names).cast(schema)


def _alone(text: ReduceText) -> bool:
    return len(text.branches) + (text.summary_in < 0) == 1
