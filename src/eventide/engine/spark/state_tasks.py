"""Statements over small state on the cluster: all steps in one task of Spark, by DuckDB in its Python worker.

Law: an answer is the one that the driver's DuckDB gives over the same rows. Nothing is answered here, and Spark SQL is
asked, where a statement is not portable, where the rows are too many for one task, where files are not on a disk that
this machine and the workers share, or where a task fails for a reason other than the values of a row.

Why: of a statement over files Spark SQL spends some hundred milliseconds on planning, shuffling and committing, however
few the rows are; a round of a join has ten such statements, and one job of one task does them all
(docs/decisions/0025).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from eventide.duckdb.executor import OF_VALUES, DuckDBExecutor, columns_read
from eventide.engine.relations.backend import ClusterStep, Given, StoredRows, Target
from eventide.engine.relations.relation import Layout, Summary
from eventide.engine.spark.worker import (
    BATCH_ROWS,
    Attempts,
    as_bytes,
    emptied,
    from_bytes,
    local_paths,
    parquet,
    unlike,
    worker_executor,
    written,
)
from eventide.errors import DataFaultError, first_line
from eventide.plan.duckdb.transpile import to_duckdb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TASK_BYTES = 128 * 2**20
"""What the rows that one task reads may take in memory, about; more of them Spark SQL shares out among several."""


@dataclass(frozen=True)
class StateFiles:
    """The files of an input, on a disk of the worker's machine."""

    paths: tuple[str, ...]
    layout: Layout


@dataclass(frozen=True)
class TaskStep:
    """A step in DuckDB's dialect."""

    name: str
    sql: str
    target: Target | None
    needs: tuple[str, ...]


@dataclass(frozen=True)
class StateTask:
    """Steps, and what they read; `tables` are Arrow streams."""

    steps: tuple[TaskStep, ...]
    files: Mapping[str, StateFiles]
    tables: Mapping[str, bytes]


@dataclass(frozen=True)
class StepAnswer:
    """The summary of what a step wrote, or its small answer as an Arrow stream, or the value that broke it."""

    wrote: Summary | None = None
    small: bytes = b""
    fault: str | None = None


class StateTasks:
    """Runs the steps of an engine; `run` gives None where Spark SQL has to."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._attempts = Attempts()

    def run(self, steps: Sequence[ClusterStep], given: Given) -> list[Summary | pa.Table] | None:
        """The answers of steps over state; a `DataFaultError` where the values of a row break one."""
        task = self._task(steps, given)
        if task is None:
            return None
        job = self._spark.sparkContext.parallelize([task], 1).map(_run_by_worker).collect
        found = self._attempts.answer(job, "statements over state are")
        if found is None:
            return None
        [answers] = found
        fault = next((answer.fault for answer in answers if answer.fault is not None), None)
        if fault is not None:
            raise DataFaultError(f"a statement over state cannot be computed: {fault}")
        return [answer.wrote if answer.wrote is not None else from_bytes(answer.small) for answer in answers]

    def _task(self, steps: Sequence[ClusterStep], given: Given) -> StateTask | None:
        stored = {name: rows for name, rows in given.items() if isinstance(rows, StoredRows)}
        tables = {name: table for name, table in given.items() if not isinstance(table, StoredRows)}
        few = sum(rows.bytes for rows in stored.values()) <= TASK_BYTES
        if not few or self._attempts.are_over or not all(step.portable for step in steps):
            return None
        files = {}
        for name, rows in stored.items():
            paths = local_paths(rows.uris)
            if paths is None:
                return None
            files[name] = StateFiles(paths, rows.layout)
        schemas = {name: one.layout.schema for name, one in files.items()}
        schemas |= {name: table.schema for name, table in tables.items()}
        steps_of = []
        for step in steps:
            target = None if step.target is None else emptied(step.target)
            if step.target is not None:
                if target is None:
                    return None
                schemas[step.name] = step.target.layout.schema
            sql = to_duckdb(step.sql, (*columns_read(step.sql, schemas), *step.inner))
            steps_of.append(TaskStep(step.name, sql, target, step.needs))
        return StateTask(tuple(steps_of), files, {name: as_bytes(table) for name, table in tables.items()})


def run(task: StateTask, executor: DuckDBExecutor) -> list[StepAnswer]:
    """What the task does; a value that breaks a step ends it."""
    connection, answers = executor.connection, dict[str, StepAnswer]()
    try:
        for name, table in task.tables.items():
            connection.register(name, from_bytes(table))
        for name, files in task.files.items():
            _view(executor, name, files.layout, files.paths)
        for step in task.steps:
            answers[step.name] = _answer(executor, step, answers)
            if step.target is not None:
                _view(executor, step.name, step.target.layout, _paths(step.target, answers[step.name]))
    except OF_VALUES as error:
        return [StepAnswer(fault=first_line(error))]
    finally:
        for name in (*task.tables, *task.files, *answers):
            connection.unregister(name)
            connection.execute(f'DROP VIEW IF EXISTS "{name}"')
    return list(answers.values())


def _answer(executor: DuckDBExecutor, step: TaskStep, earlier: Mapping[str, StepAnswer]) -> StepAnswer:
    if step.target is None:
        return StepAnswer(small=as_bytes(executor.connection.sql(executor.ready(step.sql)).to_arrow_table()))
    wrote = [earlier[name].wrote for name in step.needs]
    if wrote and not any(one.rows for one in wrote if one is not None):
        return StepAnswer(Summary.of(step.target.layout, step.target.layout.empty()))
    rows = executor.connection.sql(executor.ready(step.sql))
    return StepAnswer(written(step.target, rows.to_arrow_reader(BATCH_ROWS)))


def _paths(target: Target, answer: StepAnswer) -> tuple[str, ...]:
    return (f"{target.folder}/part-00000.parquet",) if answer.wrote is not None and answer.wrote.rows else ()


def _view(executor: DuckDBExecutor, name: str, layout: Layout, paths: Sequence[str]) -> None:
    """Name the rows of files; DuckDB reads them itself where they are written as it expects."""
    connection = executor.connection
    if not paths:
        connection.register(name, layout.empty())
    elif all(unlike(path, layout.columns) is None for path in paths):
        names = ", ".join(f'"{column.name}"' for column in layout.columns)
        connection.execute(f'CREATE OR REPLACE TEMP VIEW "{name}" AS SELECT {names} FROM {parquet(paths)}')
    else:
        tables = (pq.ParquetFile(path, coerce_int96_timestamp_unit="us").read() for path in paths)
        schema = layout.schema
        connection.register(name, pa.concat_tables([table.select(schema.names).cast(schema) for table in tables]))


def _run_by_worker(task: StateTask) -> list[StepAnswer]:
    return run(task, worker_executor())
