"""Step 1 of a round, stream by stream: its rows become relations for operators and cells for time.

Laws. A row without a usable time, or too far in the future, is rejected and moves nothing. A row that breaks a query
(an expression of it raises an error) goes to the rejects table with the reason and is not part of that query's results;
it moves time, and counts for the queries that it does not break. Rounds without broken rows pay nothing for this: only
when a statement has failed is it run again, in its fail-safe form. *Place*: rows for an operator come to the driver
only where they surely are few enough; else they stay on the cluster, and the driver learns their summary.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from eventide.engine.operators.operator import Operator
from eventide.engine.relations.backend import BatchSql
from eventide.engine.relations.executor import Executor
from eventide.engine.relations.relation import Relation
from eventide.engine.relations.statement import one_row
from eventide.engine.round.placement import beside_state
from eventide.engine.round.reducer import Cells, Reducer
from eventide.engine.round.side_tables import rejects_layout, side_rows
from eventide.engine.streams.progress import StreamProgress
from eventide.errors import DataFaultError, EngineError
from eventide.plan.bound.query import BoundQuery
from eventide.plan.declared.stream import Timestamps
from eventide.plan.sql.failing_rows import RowExpressions
from eventide.plan.sql.portable import is_portable, keeps_portably
from eventide.plan.sql.reduce import alone_text, broken_text, promises_text, rejects_text, shaped_text, timed

WAY_OUT = "let it give NULL instead, or keep such rows from it by CASE WHEN, and start again"


@dataclass(frozen=True)
class Reduction:
    """One stream's part of a round: cells, rows for operators by port, rejected rows, and promises among the rows.

    `fail_safe`: the rows were read in the fail-safe form, because one breaks a query.
    """

    cells: Cells
    relations: Mapping[str, Relation]
    rejected: tuple[Relation, ...] = ()
    promises: pa.Table | None = None
    fail_safe: bool = False

    @property
    def spoke(self) -> bool:
        """Whether the stream had anything to say."""
        return self.cells.rows > 0 or (self.promises is not None and self.promises.num_rows > 0)


@dataclass
class ReduceStep:
    """Reduces the rows of rounds; remembers which streams had broken rows the last time."""

    executor: Executor
    _broken: set[str] = field(default_factory=set)

    def run(
        self, reducer: Reducer, operators: Mapping[str, Operator], time: StreamProgress, clock: int, round: int
    ) -> Reduction:
        """Reduce the rows of one stream; `operators` are those that they come to, by port."""
        name = reducer.stream.name
        found = None
        if name not in self._broken:
            try:
                found = self._reduce(reducer, operators, time, clock, round)[0]
            except DataFaultError:
                self._broken.add(name)
        found = found or self._reduce_fail_safe(reducer, operators, time, clock, round)
        if reducer.stream.punctuation is None:
            return found
        promises = self.executor.backend.ask(promises_text(reducer.stream))
        return Reduction(found.cells, found.relations, found.rejected, promises, found.fail_safe)

    def _reduce(
        self, reducer: Reducer, operators: Mapping[str, Operator], time: StreamProgress, clock: int, round: int
    ) -> tuple[Reduction, int | None]:
        """With the largest time that is believed, where rows go beyond it."""
        stream, backend = reducer.stream, self.executor.backend
        cells = reducer.reduce(backend)
        limit, rejected = future_limit(time, clock, cells), []
        if limit is not None or cells.unusable:
            count = cells.rows if limit is not None else cells.unusable
            rejected.append(
                side_rows(self.executor, stream, rejects_text(stream, limit), rejects_layout(stream), count, round)
            )
            if limit is not None:
                cells = reducer.reduce(backend, up_to=limit)
        moment = time.moment(clock, cells.table)
        relations = {
            bound.query.name: self._of_slices(operators[bound.query.name], bound, cells, moment)
            for bound in reducer.together
        }
        for bound in reducer.others:
            operator = operators[bound.query.name]
            relations[bound.query.name] = self._of_rows(operator, bound, limit, cells.rows, moment)
        return Reduction(cells, relations, tuple(rejected)), limit

    def _of_slices(self, operator: Operator, bound: BoundQuery, cells: Cells, clock: int) -> Relation:
        """The slices of an aggregate that came with the cells."""
        table = _stamped(cells.slices[bound.query.name], self._stamps(operator, bound, clock))
        return self.executor.of_table(operator.layout(bound.query.name), table)

    def _of_rows(self, operator: Operator, bound: BoundQuery, limit: int | None, rows: int, clock: int) -> Relation:
        """Rows, or slices, that have a statement of their own."""
        port, text = bound.query.name, alone_text(bound, limit)
        layout, renames, stamps = operator.layout(port), operator.renames(port), self._stamps(operator, bound, clock)
        portable = keeps_portably(bound) if bound.keeps_rows else is_portable(bound)
        if self.executor.fits(rows * layout.row_bytes):
            table = _stamped(self.executor.backend.reduce(bound.stream, text, portable), stamps)
            names = [renames.get(column.name, column.name) for column in layout.brought]
            named = table.select(names).rename_columns([column.name for column in layout.brought])
            return beside_state(operator, self.executor.of_table(layout, named), self.executor)
        shaped = shaped_text(text, [column.name for column in layout.brought], renames, stamps)
        tables = {"stamps": one_row(**{f"of{name}": at for name, at in stamps.items()})} if stamps else {}
        # Tasks that read files know no tables beside them.
        return self.executor.stored(bound.stream, shaped, portable and not stamps, layout, tables)

    @staticmethod
    def _stamps(operator: Operator, bound: BoundQuery, clock: int) -> Mapping[str, int]:
        if bound.stream.timestamps is Timestamps.EXTERNAL:
            return {}
        return operator.stamps(bound.query.name, clock)

    def _reduce_fail_safe(
        self, reducer: Reducer, operators: Mapping[str, Operator], time: StreamProgress, clock: int, round: int
    ) -> Reduction:
        """The same without rows that break a query; these are rejected."""
        stream = reducer.stream
        try:
            found, limit = self._reduce(reducer.fail_safe, operators, time, clock, round)
            text = broken_text(stream, reducer.bounds, limit)
            broken = side_rows(self.executor, stream, text, rejects_layout(stream), found.cells.rows, round)
        except DataFaultError as fault:
            raise unreduced(self.executor.backend, reducer, fault) from fault
        if not broken.rows:
            # As long as every round has a broken row, to try the other form would fail every time.
            self._broken.discard(stream.name)
        rejected = (*found.rejected, *((broken,) if broken.rows else ()))
        return Reduction(found.cells, found.relations, rejected, fail_safe=True)


def unreduced(backend: BatchSql, reducer: Reducer, fault: DataFaultError) -> EngineError:
    """The error that stops the engine: a function of the user fails, which no engine can try row by row."""
    stream = reducer.stream
    for query in reducer.bounds:
        for spelled, condition in RowExpressions(query).conditions:
            try:
                backend.ask(f"{timed(stream)} SELECT count(*) AS n FROM timed WHERE {condition}")
            except DataFaultError:
                return EngineError(
                    f"query {query.display_name!r}: {spelled} fails for a row of stream {stream.name!r}, "
                    f"and it cannot be told for which: {WAY_OUT} ({fault})"
                )
    return EngineError(f"an expression over stream {stream.name!r} fails for a row: {WAY_OUT} ({fault})")


def future_limit(time: StreamProgress, clock: int, cells: Cells) -> int | None:
    """The largest time that is believed, if this round has rows beyond it that are to be rejected."""
    future = time.stream.future
    if future is None or not future.reject:
        return None
    limit = time.moment(clock, cells.table) + future.ahead
    return limit if cells.latest is not None and cells.latest > limit else None


def _stamped(table: pa.Table, stamps: Mapping[str, int]) -> pa.Table:
    """Rows without a time of their own: theirs is the clock of the round."""
    for name, at in stamps.items():
        place = table.schema.get_field_index(name)
        if place >= 0:
            table = table.set_column(place, name, pa.array(np.full(table.num_rows, at, dtype=np.int64)))
    return table
