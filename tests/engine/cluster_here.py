"""A cluster in this process: state is in Parquet files, and statements over it run as a worker of Spark runs them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pyarrow as pa

from eventide.engine.local.backend import LocalBackend
from eventide.engine.relations.backend import ClusterStep, Given
from eventide.engine.relations.relation import Relation, Summary
from eventide.engine.relations.segments import Segments
from eventide.engine.spark.state_tasks import StateTasks


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
    """Keeps every statement over state that it was given."""

    has_cluster = True

    def __init__(self) -> None:
        super().__init__()
        self._tasks = StateTasks(_Tasks())  # type: ignore[arg-type]
        self.said: list[str] = []

    def run_over(self, steps: Sequence[ClusterStep], given: Given) -> list[Summary | pa.Table]:
        self.said += [step.sql for step in steps]
        answers = self._tasks.run(steps, given)
        assert answers is not None, "a worker runs it"
        return answers


def on_cluster(executor: Any, rows: Segments) -> Segments:
    """The same rows in files alone."""
    moved: list[Relation] = [
        part if part.table is None else executor.persisted(part).without_table() for part in rows.parts
    ]
    return Segments(rows.layout, tuple(moved))
