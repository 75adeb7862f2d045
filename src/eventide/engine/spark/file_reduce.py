"""The reduce of Parquet files, done by DuckDB where Spark's tasks would run.

Law: an answer is that of the same statement asked of Spark SQL, but for how often a group comes: every task tells the
groups of its own files, and rows of one pane and group merge as those of two rounds do. Whenever that is not
certain beforehand, nothing is answered and Spark SQL is asked: a statement that is not plain (`plan.plain`), a session
in another time zone, files that do not have the declared columns in the declared types, a row that makes an expression
fail, a worker without DuckDB.

Spark still decides what a round is and which files are in it, and each of its tasks reduces some of them, in its Python
worker, on every master: the driver opens no file of a stream. What Spark is spared is turning columns into rows and
shuffling partials: see docs/decisions/0008. Rows that are to stay on the cluster are written there by the task, under a
name that a second try of it writes again.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from eventide.duckdb.executor import OF_VALUES, DuckDBExecutor
from eventide.engine.relations.backend import Target
from eventide.engine.relations.relation import Summary
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
from eventide.errors import first_line
from eventide.plan.declared.stream import Stream
from eventide.plan.duckdb.transpile import to_duckdb
from eventide.plan.expressions.columns import Column
from eventide.plan.sql.portable import has_portable_sources
from eventide.plan.sql.stream_rows import MALFORMED, batch_view

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

HARMLESS_OPTIONS = frozenset(
    ["cleansource", "filenameonly", "latestfirst", "maxcachedfiles", "maxfileage", "pathglobfilter"]
)
"""Options that choose files but do not change what is read from one."""

TIME_ZONE, CALENDAR = "spark.sql.session.timeZone", "spark.sql.parquet.datetimeRebaseModeInRead"

SPLIT_BYTES = 128 * 2**20
"""A larger file Spark cuts among several tasks, and is better at it."""


@dataclass(frozen=True)
class FileBatch:
    """The rows of a stream in a micro-batch, and the files that they are the rows of."""

    frame: DataFrame
    uris: tuple[str, ...]


@dataclass(frozen=True)
class FileTask:
    """The work of one Spark task: a statement in DuckDB's dialect over the view of these files."""

    view: str
    sql: str
    columns: tuple[Column, ...]
    paths: tuple[str, ...]
    number: int = 0
    target: Target | None = None


@dataclass(frozen=True)
class TaskAnswer:
    """Partials as an Arrow stream, the summary of what was written, or the reason why Spark has to be asked."""

    partials: bytes = b""
    written: Summary | None = None
    declined: str | None = None


class FileReduce:
    """Reduces the Parquet files of one stream's micro-batches; `reduce` gives None where Spark SQL has to.

    `answered` counts the times that it did not.
    """

    def __init__(self, spark: SparkSession, stream: Stream) -> None:
        self._spark = spark
        self._stream = stream
        self._columns = (*stream.columns, Column(MALFORMED, "STRING"))
        self._cores = spark.sparkContext.defaultParallelism
        self._attempts = Attempts()
        self.answered = 0

    @staticmethod
    def can(stream: Stream) -> bool:
        """Whether the input of a stream is of the kind that can be reduced here."""
        given = stream.input
        if given is None or given.format != "parquet" or stream.computed or not has_portable_sources(stream):
            return False
        if any(sign in column.name for column in stream.columns for sign in '`"'):
            return False
        return all(name.lower() in HARMLESS_OPTIONS for name, _ in given.options)

    def reduce(self, batch: FileBatch, spark_sql: str) -> pa.Table | None:
        """The small answer over the files of a micro-batch, of a plain statement."""
        answers = self._answers(batch, spark_sql, None)
        if answers is None:
            return None
        return pa.concat_tables([from_bytes(answer.partials) for answer in answers])

    def store(self, batch: FileBatch, spark_sql: str, target: Target) -> Summary | None:
        """Write the answer of a plain statement over the files of a micro-batch; nothing is brought to the driver."""
        here = emptied(target)
        if here is None:
            return None
        answers = self._answers(batch, spark_sql, here)
        if answers is None:
            return None
        return Summary.of_all([answer.written for answer in answers if answer.written is not None])

    def _answers(self, batch: FileBatch, spark_sql: str, target: Target | None) -> list[TaskAnswer] | None:
        if self._attempts.are_over or not self._reads_as_we_do():
            return None
        paths = local_paths(batch.uris)
        if not paths:
            return None
        job = partial(self._by_tasks, to_duckdb(spark_sql, self._columns), paths, target)
        answers = self._attempts.answer(job, f"files of {self._stream.name!r} are")
        if answers is None:
            return None
        declined = next((answer.declined for answer in answers if answer.declined is not None), None)
        if declined is not None:
            log.info(
                "files of %r are left to Spark SQL this round: %s",
                self._stream.name,
                declined,
                extra={"event": "left to Spark SQL"},
            )
            return None
        self.answered += 1
        return answers

    def _reads_as_we_do(self) -> bool:
        """Whether the session, which may be the user's and change, reads times as files hold them."""
        zone, calendar = (self._spark.conf.get(name) for name in (TIME_ZONE, CALENDAR))
        return str(zone) in ("UTC", "Etc/UTC", "Z") and str(calendar).upper() != "LEGACY"

    def _by_tasks(self, sql: str, paths: Sequence[str], target: Target | None) -> list[TaskAnswer]:
        if any(os.path.getsize(path) > SPLIT_BYTES for path in paths):
            return [TaskAnswer(declined="a file is larger than what Spark gives to one task")]
        view, columns = batch_view(self._stream), self._stream.columns
        tasks = [
            FileTask(view, sql, columns, share, number, target)
            for number, share in enumerate(shared_out(paths, self._cores))
        ]
        return self._spark.sparkContext.parallelize(tasks, len(tasks)).map(_reduced_by_worker).collect()


def reduced(task: FileTask, executor: DuckDBExecutor) -> TaskAnswer:
    """What a task does: the statement over its files."""
    for path in task.paths:
        if (reason := unlike(path, task.columns)) is not None:
            return TaskAnswer(declined=reason)
    connection = executor.connection
    names = ", ".join(f'"{column.name}"' for column in task.columns)
    connection.execute(
        f'CREATE OR REPLACE TEMP VIEW "{task.view}" AS SELECT {names}, NULL::VARCHAR AS {MALFORMED} '
        f"FROM {parquet(task.paths)}"
    )
    try:
        partials = connection.sql(executor.ready(task.sql))
        if task.target is not None:
            return TaskAnswer(written=written(task.target, partials.to_arrow_reader(BATCH_ROWS), task.number))
        return TaskAnswer(as_bytes(partials.to_arrow_table()))
    except OF_VALUES as error:
        return TaskAnswer(declined=first_line(error))


def shared_out(paths: Sequence[str], tasks: int) -> list[tuple[str, ...]]:
    """Split files into at most so many shares of about the same size, the largest files first."""
    sizes = sorted(((os.path.getsize(path), path) for path in paths), reverse=True)
    shares: list[tuple[int, list[str]]] = [(0, []) for _ in range(min(tasks, len(sizes)))]
    for size, path in sizes:
        least = min(range(len(shares)), key=lambda i: shares[i][0])
        shares[least] = (shares[least][0] + size, [*shares[least][1], path])
    return [tuple(share) for _, share in shares]


def _reduced_by_worker(task: FileTask) -> TaskAnswer:
    return reduced(task, worker_executor())
