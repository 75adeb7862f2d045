"""Step 1 of a round, stream by stream: its rows become relations for operators and cells for time.

Laws. A row without a usable time, or too far in the future, is rejected and moves nothing. A row that breaks a query
(an expression of it raises an error) goes to the rejects table with the reason and is not part of that query's results;
it moves time, and counts for the queries that it does not break. Rounds without broken rows pay nothing for this: only
when a statement has failed is it run again, in its fail-safe form. *Place*: rows for an operator come to the driver
only where they surely are few enough; else they stay on the cluster, and the driver learns their summary.

*Statements*: `Reducer` has those that reduce the rows of a stream to slices for each aggregate, and to cells for time.
What a round brought is separated, never lost: partials of rows that queries want, cells of all rows, and the
number of rows without a usable time. Partials are not yet judged: which of them are late is for the query to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from eventide.engine.operators.operator import Operator
from eventide.engine.operators.placement import beside_state
from eventide.engine.relations.backend import BatchSql
from eventide.engine.relations.executor import Executor, one_row
from eventide.engine.relations.relation import Relation
from eventide.engine.round.side_tables import rejects_layout, side_rows
from eventide.engine.stream_progress import StreamProgress
from eventide.errors import DataFaultError, EngineError
from eventide.eventtime.policies.fixed_delay import FixedDelay
from eventide.eventtime.policies.on_demand import OnDemand
from eventide.eventtime.policies.own_progress import OwnProgress
from eventide.eventtime.policies.punctuated import Punctuated
from eventide.eventtime.policies.skew.declared import DeclaredSkew
from eventide.plan.bound.query import BoundQuery
from eventide.plan.bound.rows import slice_columns
from eventide.plan.declared.stream import Stream, TimeKind, Timestamps
from eventide.plan.sql.failing_rows import RowExpressions, fail_safe_form
from eventide.plan.sql.portable import is_portable, keeps_portably
from eventide.plan.sql.reduce import ReduceText, alone_text, broken_text, column_of, reduce_text, shaped_text, wants
from eventide.plan.sql.stream_rows import promises_text, rejects_text, timed

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
        """Reduce without rows that break a query; these are rejected."""
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
                    f"and it is not known for which: {WAY_OUT} ({fault})"
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
        """The largest time of all cells."""
        found: int | None = pc.max(self.table.column("__hi")).as_py()
        return found


@dataclass(frozen=True)
class Reducer:
    """The statements for one stream, written once and used every round.

    `together` are the aggregates whose slices come to the driver, by one statement that reads every row once; all
    `others`, ports and aggregates, have a statement each. Some of them may read twins of the stream: the same rows, at
    the same times.
    """

    stream: Stream
    together: tuple[BoundQuery, ...]
    others: tuple[BoundQuery, ...]
    text: ReduceText

    @classmethod
    def of(cls, stream: Stream, bounds: Sequence[BoundQuery], on_cluster: frozenset[str] = frozenset()) -> Reducer:
        """Write the statements; slices that are kept on the cluster do not come to the driver."""
        together = tuple(one for one in bounds if one.by_panes and one.query.name not in on_cluster)
        others = tuple(one for one in bounds if one not in together)
        # Without one that keeps partials here, the cells stand for themselves.
        text = reduce_text(stream, together, _cell(stream, bounds), any(one.by_panes for one in others), None)
        return cls(stream, together, others, text)

    @property
    def bounds(self) -> tuple[BoundQuery, ...]:
        """Every query and port that reads the stream."""
        return (*self.together, *self.others)

    @cached_property
    def fail_safe(self) -> Reducer:
        """A reducer over the rows that break no query."""
        names = frozenset(one.query.name for one in self.others if one.by_panes)
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
    """The width of a cell that serves the policies of all who read the rows."""
    panes = [query.panes.pane for query in queries if query.by_panes]
    return min(cell_width(one, panes) for one in (stream, *(query.stream for query in queries)))


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


FOLLOWERS = (FixedDelay, OwnProgress, Punctuated, DeclaredSkew, OnDemand)
"""Policies that ask only how far each source has come."""


FINE = 250_000
"""Microseconds: as long as a short round, below which a finer summary could not make a promise come earlier."""


def cell_width(stream: Stream, panes: Sequence[int]) -> int:
    """The width of a cell for a stream whose queries have panes of these widths.

    Any width is correct; a narrow one is more precise, for within a cell a policy must take every row for the earliest
    (see docs/decisions/0002). A policy that learns how late rows are gets cells of a second or less; one that only
    follows the largest time of each source is served by cells as wide as the panes, which cost nothing extra.

    >>> from eventide.plan.declared.stream import columns
    >>> cell_width(Stream("s", columns("t TIMESTAMP"), time="t", policy=FixedDelay(5)), [60_000_000])
    60000000
    >>> cell_width(Stream("s", columns("t TIMESTAMP"), time="t"), [60_000_000])
    250000
    """
    widest = min(panes, default=FINE)
    if _only_follows(stream.policy):
        return widest
    return min(FINE, widest) if stream.time_kind is not TimeKind.SEQUENCE else max(1, widest // 16)


def _only_follows(policy: Any) -> bool:
    """Whether a policy, and all it wraps, only follows."""
    inner = [getattr(policy, f.name) for f in fields(policy)] if is_dataclass(policy) else []
    wrapped = [part for one in inner for part in (one if isinstance(one, tuple) else (one,)) if hasattr(part, "start")]
    if wrapped:
        return all(_only_follows(part) for part in wrapped)
    return isinstance(policy, FOLLOWERS)
