"""A cluster in this process: state is in Parquet files, and statements over it run as a worker of Spark runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from eventide.duckdb.executor import SqlExecutor
from eventide.engine.local.backend import LocalBackend
from eventide.engine.relations.backend import ClusterStep, Given, Target
from eventide.engine.relations.relation import Relation, Summary
from eventide.engine.relations.segments import Segments
from eventide.engine.spark.state_tasks import StateTasks
from eventide.engine.spark.worker import emptied, written
from eventide.plan.declared.stream import Stream
from eventide.plan.expressions.columns import Column


class _Tasks:
    """As much of Spark as gives tasks to workers: it runs them at once."""

    def __init__(self, given: Iterable[Any] = ()) -> None:
        self._given = list(given)

    @property
    def sparkContext(self) -> _Tasks:  # noqa: N802
        return self

    def parallelize(self, given: Iterable[Any], slices: int) -> _Tasks:
        return _Tasks(given)

    def map(self, function: Callable[[Any], Any]) -> _Tasks:
        return _Tasks(map(function, self._given))

    def collect(self) -> list[Any]:
        return self._given


class ClusterHere(LocalBackend):
    """Keeps every statement that it was given."""

    has_cluster = True

    def __init__(self) -> None:
        super().__init__()
        self._tasks = StateTasks(_Tasks())  # type: ignore[arg-type]
        self.said: list[str] = []

    def ask(self, sql: str, tables: Mapping[str, pa.Table] | None = None) -> pa.Table:
        self.said.append(sql)
        return super().ask(sql, tables)

    def sql(self, portable: bool) -> SqlExecutor:
        return _Asked(self)

    def store(
        self, stream: Stream, sql: str, plain: bool, target: Target, tables: Mapping[str, pa.Table] | None = None
    ) -> Summary:
        here = emptied(target)
        assert here is not None
        return written(here, self.ask(sql, tables).to_reader())

    def run_over(self, steps: Sequence[ClusterStep], given: Given) -> list[Summary | pa.Table]:
        self.said += [step.sql for step in steps]
        answers = self._tasks.run([replace(step, portable=True) for step in steps], given)
        assert answers is not None, "a worker runs it"
        return answers


class _Asked:
    """Its DuckDB, over tables of the driver."""

    def __init__(self, backend: ClusterHere) -> None:
        self._backend = backend

    def ask(self, spark_sql: str, tables: Mapping[str, pa.Table], inner: tuple[Column, ...] = ()) -> pa.Table:
        self._backend.said.append(spark_sql)
        return self._backend.duckdb_executor.ask(spark_sql, tables, inner)


def on_cluster(executor: Any, rows: Segments) -> Segments:
    """The same rows in files alone."""
    moved: list[Relation] = [
        part if part.table is None else executor.persisted(part).without_table() for part in rows.parts
    ]
    return Segments(rows.layout, tuple(moved))
