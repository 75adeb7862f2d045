"""From an operator to those that read it: what it emits becomes their rows, in the same round.

Law: what an operator emits is reduced by the same statements as rows of a stream, where it is: in DuckDB or Spark. A
row is never late for an operator above (see `plan.declared.stream.Derived`). One that breaks a query above is rejected,
as one of a stream is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import pyarrow as pa

from eventide.engine.operators.placement import beside_state
from eventide.engine.relations.executor import Executor, Inputs, Statement, one_row
from eventide.engine.relations.relation import Layout, Relation
from eventide.engine.relations.segments import Segments
from eventide.engine.round.heartbeats import Ingestion, ingest
from eventide.engine.round.side_tables import rejects_layout, with_round
from eventide.errors import DataFaultError, EngineError
from eventide.plan.binding import BoundProgram, Edge
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.stream import WINDOW_END, WINDOW_START, Derived
from eventide.plan.duckdb.transpile import same_answer
from eventide.plan.expressions.columns import Column, quoted
from eventide.plan.sql.failing_rows import fail_safe_form
from eventide.plan.sql.reduce import alone_text, broken_text, shaped_text
from eventide.plan.sql.stream_rows import MALFORMED, batch_view


@dataclass(frozen=True)
class DownstreamFeed:
    """The operators that read one operator, and how its rows come to them."""

    stream: Derived
    ways: tuple[Edge, ...]
    executor: Executor

    def apart(self, needed: Collection[str], executor: Executor) -> DownstreamFeed | None:
        """A copy for the readers that a prod needs, with another executor; None if it needs none."""
        ways = tuple(way for way in self.ways if way.step in needed)
        return replace(self, ways=ways, executor=executor) if ways else None

    def bring(self, found: Ingestion, rows: Segments, round: int) -> list[Relation]:
        """Have the readers ingest emitted rows; those that break a query come back, to be rejected."""
        rejected: list[Relation] = []
        for part in rows.parts:
            given, view = self._as_rows(part)
            try:
                brought = [(way, self._reduced(found, way, way.bound, given, view)) for way in self.ways]
            except DataFaultError:
                brought, broken = self._fail_safe(found, given, view, round)
                rejected += broken
            for way, relation in brought:
                if ingest(found, way, relation).late is not None:
                    raise EngineError(
                        f"query {way.step!r}: results of query {self.stream.name!r} came late; this is a fault"
                    )
        return rejected

    def _fail_safe(
        self, found: Ingestion, given: Relation, view: str, round: int
    ) -> tuple[list[tuple[Edge, Relation]], list[Relation]]:
        try:
            brought = [(way, self._reduced(found, way, fail_safe_form(way.bound), given, view)) for way in self.ways]
            text = broken_text(self.stream, [way.bound for way in self.ways])
            inputs: Inputs = {self._view: given, "constants": one_row(round=round)}
            statement = Statement(view + with_round(text), self._portable(text))
            broken = self.executor.relation(statement, inputs, rejects_layout(self.stream))
        except DataFaultError as fault:
            raise EngineError(
                f"an expression over {self.stream.name!r} fails for a row: let it give NULL instead, or keep such rows "
                f"from it by CASE WHEN, and start again ({fault})"
            ) from fault
        return brought, [broken] if broken.rows else []

    def _reduced(self, found: Ingestion, way: Edge, bound: BoundQuery, given: Relation, view: str) -> Relation:
        operator = found.operators[way.step]
        layout = operator.layout(way.name)
        text = shaped_text(alone_text(bound), [column.name for column in layout.brought], operator.renames(way.name))
        portable = bound.driver_exact and self._portable(alone_text(bound))
        relation = self.executor.relation(Statement(view + text, portable), {self._view: given}, layout)
        return beside_state(operator, relation, self.executor)

    @property
    def _view(self) -> str:
        return batch_view(self.stream)

    @cached_property
    def _known(self) -> tuple[Column, ...]:
        return (*self.stream.columns, Column(MALFORMED, "STRING"))

    def _portable(self, text: str) -> bool:
        return same_answer(text, self._known)

    def _as_rows(self, part: Relation) -> tuple[Relation, str]:
        """Emitted rows as rows of a stream; those on the cluster by what comes before a statement over them."""
        layout = Layout(self._known)
        if part.table is not None:
            return Relation.of_table(layout, rows_of(self.stream, part.table)), ""
        columns = []
        for column in self.stream.columns:
            name = quoted(column.name)
            is_edge = column.name in (WINDOW_START, WINDOW_END) and column.type == "TIMESTAMP"
            columns.append(f"timestamp_micros({name}) AS {name}" if is_edge else name)
        # The rows have the name of the view themselves, and are hidden by it.
        rows = f"SELECT {', '.join(columns)}, CAST(NULL AS STRING) AS {MALFORMED} FROM {self._view}"
        return part, f"WITH {self._view} AS ({rows}) "


def rows_of(stream: Derived, emitted: pa.Table) -> pa.Table:
    """Emitted rows as rows of the stream that readers see.

    >>> from eventide.plan.expressions.columns import columns
    >>> from eventide.plan.declared.stream import TimeKind
    >>> from eventide.plan.declared.window import Window
    >>> sums = Derived.of("sums", columns("total BIGINT"), TimeKind.SEQUENCE, Window(10))
    >>> rows_of(sums, pa.table({"window_start": [0], "window_end": [10], "rows": [2], "total": [7]})).to_pylist()
    [{'total': 7, 'window_start': 0, 'window_end': 10, '_malformed': None}]
    """
    schema = Layout(stream.columns).schema
    columns = {field.name: emitted.column(field.name).cast(field.type) for field in schema}
    return pa.table({**columns, MALFORMED: pa.nulls(emitted.num_rows, pa.string())})


def feeds_of(plan: BoundProgram, executor: Executor) -> dict[str, DownstreamFeed]:
    """For every operator that is read: how its rows come to its readers."""
    feeds = {}
    names: Sequence[str] = (*plan.queries, *plan.operators)
    for name in names:
        stream, ways = plan.rows_of(name), plan.ways_from(name)
        if ways:
            assert isinstance(stream, Derived)
            feeds[name] = DownstreamFeed(stream, ways, executor)
    return feeds
