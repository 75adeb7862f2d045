"""The first step of a round, stream by stream: its rows reduced; what no query can take, told apart.

Laws. A row without a usable time, or too far in the future, is rejected and moves nothing. A row that breaks a query
(an expression of it raises an error) goes to the rejects table with the reason and is not part of that query's answers;
it moves time, and counts for the queries that it does not break. Rounds without broken rows pay nothing for this: only
when a statement has failed is it asked again, in its careful form.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow.compute as pc

from eventide.engine.asking import Asking
from eventide.engine.cluster_slices import Cluster
from eventide.engine.ledger import rejected_rows
from eventide.engine.reduction import Reducer, Reduction
from eventide.engine.stream_time import StreamTime
from eventide.engine.work import Round
from eventide.errors import DataFaultError, EngineError
from eventide.plan.broken import RowExpressions
from eventide.plan.reduce_text import broken_text, promises_text, rejects_text, stored_text, timed


class ReduceStep:
    """Reduces the rows of rounds; remembers which streams had broken rows the last time."""

    def __init__(self, backend: Asking, cluster: Cluster | None = None) -> None:
        self._backend = backend
        self._cluster = cluster
        self._broken: set[str] = set()

    def run(self, work: Round, reducer: Reducer, time: StreamTime | None = None) -> Reduction:
        """Reduce the rows of one stream; without a `time`, none of them can be from the future."""
        reduction = self._reduced(work, reducer, time)
        if reducer.stream.punctuation is None:
            return reduction
        return replace(reduction, promises=self._backend.ask(promises_text(reducer.stream)))

    def _reduced(self, work: Round, reducer: Reducer, time: StreamTime | None) -> Reduction:
        name = reducer.stream.name
        if name not in self._broken:
            try:
                return self._reduce(work, reducer, time)[0]
            except DataFaultError:
                self._broken.add(name)
        return self._reduce_carefully(work, reducer, time)

    def _reduce(self, work: Round, reducer: Reducer, time: StreamTime | None) -> tuple[Reduction, int | None]:
        """With the largest time that is believed, where rows go beyond it."""
        stream = reducer.stream
        reduction = reducer.reduce(self._backend)
        limit = None if time is None else _future_limit(time, work.clock, reduction)
        if limit is not None or reduction.rejected:
            rejected = self._backend.ask(rejects_text(stream, limit))
            work.rejects[stream.name] = [rejected_rows(rejected, work.number)]
            if limit is not None:
                reduction = reducer.reduce(self._backend, up_to=limit)
        for query in reducer.stored:
            assert self._cluster is not None
            stamp = None if stream.time is not None else query.panes.pane_of(work.clock)
            text = stored_text(query, limit, stamp)
            reduction.chunks[query.query.name] = self._cluster.store_round(query, text, work.number)
        return reduction, limit

    def _reduce_carefully(self, work: Round, reducer: Reducer, time: StreamTime | None) -> Reduction:
        """The same without rows that break a query; these are rejected."""
        stream = reducer.stream
        try:
            reduction, limit = self._reduce(work, reducer.careful, time)
            broken = self._backend.ask(broken_text(stream, (*reducer.queries, *reducer.stored), limit))
        except DataFaultError as fault:
            raise self._hopeless(reducer, fault) from fault
        work.careful.add(stream.name)
        if broken.num_rows:
            work.rejects.setdefault(stream.name, []).append(rejected_rows(broken, work.number))
        else:
            # As long as every round has a broken row, to try without care would fail every time.
            self._broken.discard(stream.name)
        return reduction

    def _hopeless(self, reducer: Reducer, fault: DataFaultError) -> EngineError:
        """The error that stops the engine: a function of the user fails, which no engine can try row by row."""
        stream = reducer.stream
        way_out = "let it give NULL instead, or keep such rows from it by CASE WHEN, and start again"
        for query in (*reducer.queries, *reducer.stored):
            for spelled, condition in RowExpressions(query).conditions:
                try:
                    self._backend.ask(f"{timed(stream)} SELECT count(*) AS n FROM timed WHERE {condition}")
                except DataFaultError:
                    return EngineError(
                        f"query {query.told_as!r}: {spelled} fails for a row of stream {stream.name!r}, "
                        f"and it cannot be told for which: {way_out} ({fault})"
                    )
        return EngineError(f"an expression over stream {stream.name!r} fails for a row: {way_out} ({fault})")


def _future_limit(time: StreamTime, clock: int, reduction: Reduction) -> int | None:
    """The largest time that is believed, if this round has rows beyond it that are to be rejected."""
    future = time.stream.future
    if future is None or not future.reject:
        return None
    limit = time.moment(clock, reduction.cells) + future.ahead
    largest = pc.max(reduction.cells.column("__hi")).as_py()
    return limit if largest is not None and largest > limit else None
