"""From one level of a plan to the next: the results of a query, or the rows of an operator, as rows for whoever reads
them, in the same round.

Laws. What closes below is reduced for what is above by the same statement as rows of a stream, on the driver: in
DuckDB where that gives Spark's answer, in Spark where it does not. A result is never late for a query above (see
`plan.derived`). One that breaks a query above is rejected, as a row of a stream is.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from dataclasses import replace

import pyarrow as pa

from eventide.engine.arrow_types import arrow_type
from eventide.engine.backend import Backend
from eventide.engine.cluster_slices import Chunk, Cluster
from eventide.engine.delivery import deliver
from eventide.engine.reduce_step import ReduceStep
from eventide.engine.reduction import Reducer
from eventide.engine.slices import slice_schema
from eventide.engine.taken import Answer
from eventide.engine.work import Round
from eventide.engine.workbench import Bench
from eventide.errors import EngineError
from eventide.plan.binding import BoundProgram, Way
from eventide.plan.columns import Column
from eventide.plan.derived import Derived
from eventide.plan.dialect import same_answer
from eventide.plan.reduce_text import MALFORMED, batch_view, kept_text
from eventide.plan.stream import Stream


class Level:
    """The queries and operators that read one query or operator, and how its rows come to them."""

    def __init__(self, stream: Derived, ways: Sequence[Way], backend: Backend, cluster: Cluster | None) -> None:
        self.stream = stream
        self._ways = self._readers = ways
        above = self._above = [way.bound for way in ways]
        self._cluster = cluster
        self._reducer = Reducer.of(stream, above)
        self._rows = ResultRows(stream, self._bench(backend))
        self._step = ReduceStep(self._rows)

    def apart(self, needed: Collection[str], cluster: Cluster | None) -> Level | None:
        """The same for one asking beside the rounds, and for the readers that it needs; None if it needs none.

        What it is working on is its own, and so is the cluster that it stores with.
        """
        other = copy(self)
        other._readers = [way for way in self._ways if way.step in needed]
        if not other._readers:
            return None
        other._cluster = cluster
        other._rows = ResultRows(self.stream, self._rows.bench)
        other._step = ReduceStep(other._rows)
        return other

    def bring(self, work: Round, final: Answer) -> None:
        """Give the rows of a round to whatever is above."""
        if final.rows == 0:
            return
        chunks: dict[str, list[pa.Table]] = {way.name: [] for way in self._ways}
        for part in final.parts():
            self._rows.table = rows_of(self.stream, part)
            for name, chunk in self._step.run(work, self._reducer).chunks.items():
                assert isinstance(chunk, pa.Table)
                chunks[name].append(chunk)
        self._rows.table = None
        for way in self._readers:
            parts = chunks[way.name]
            table = pa.concat_tables(parts) if parts else slice_schema(way.bound).empty_table()
            taken = deliver(work, way, self._placed(work, way, table))
            if taken.late_rows:
                raise EngineError(
                    f"query {way.step!r}: results of query {self.stream.name!r} came late; this is a fault"
                )

    def _placed(self, work: Round, way: Way, chunk: pa.Table) -> pa.Table | Chunk:
        """Partials where the slices of the query are; rows for an operator stay."""
        if way.into_port or work.runs[way.step].slices.placement == "driver":
            return chunk
        assert self._cluster is not None
        return self._cluster.moved(way.bound, chunk, work.number) if chunk.num_rows else Chunk((), (), 0)

    def _bench(self, backend: Backend) -> Bench:
        """Whoever reduces as Spark does."""
        texts = [self._reducer.text.sql, *(kept_text(query) for query in self._above if query.keeps_rows)]
        known = (*self.stream.columns, Column(MALFORMED, "STRING"))
        exact = all(query.driver_exact for query in self._above) and all(same_answer(text, known) for text in texts)
        return backend.bench(replace(self._above[0], driver_exact=exact))


class ResultRows:
    """Results under the name by which the statements of a reduce know them."""

    def __init__(self, stream: Derived, bench: Bench) -> None:
        self._view = batch_view(stream)
        self.bench = bench
        self.table: pa.Table | None = None

    def ask(self, sql: str) -> pa.Table:
        """The answer of a statement over them."""
        return self.bench.ask(sql, {self._view: self.table})

    def reduce(self, stream: Stream, sql: str, plain: bool) -> pa.Table:
        """The same: they are all here."""
        return self.ask(sql)


def rows_of(stream: Derived, answer: pa.Table) -> pa.Table:
    """Results as rows of the stream that they are to the queries above.

    >>> from eventide.plan.columns import columns
    >>> from eventide.plan.stream import TimeKind
    >>> from eventide.plan.window import Window
    >>> sums = Derived.of("sums", columns("total BIGINT"), TimeKind.SEQUENCE, Window(10))
    >>> rows_of(sums, pa.table({"window_start": [0], "window_end": [10], "rows": [2], "total": [7]})).to_pylist()
    [{'total': 7, 'window_start': 0, 'window_end': 10, '_malformed': None}]
    """
    columns = {column.name: answer.column(column.name).cast(arrow_type(column.type)) for column in stream.columns}
    return pa.table({**columns, MALFORMED: pa.nulls(answer.num_rows, pa.string())})


def levels_of(plan: BoundProgram, backend: Backend, cluster: Cluster | None) -> dict[str, Level]:
    """For every query and operator that is read: what is above it."""
    levels = {}
    for name in (*plan.queries, *plan.operators):
        stream, ways = plan.rows_of(name), plan.ways_from(name)
        if ways:
            assert isinstance(stream, Derived)
            levels[name] = Level(stream, ways, backend, cluster)
    return levels
