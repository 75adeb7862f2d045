"""The Spark engine's backend: Spark SQL over the micro-batch; only partials, late rows and rejects reach the driver.

Law: statements over slices may be asked by any number of threads at once, of any number of engines in one session. A
view is read when a statement is analysed, and means nothing afterwards; so naming and analysing are one step, and jobs
run side by side.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from eventide.duckdb.executor import DuckDBExecutor, SqlExecutor
from eventide.engine.relations.backend import ClusterStep, Given, StoredRows, Target
from eventide.engine.relations.relation import ID, SEQUENCE, Layout, Summary
from eventide.engine.spark.file_reduce import FileBatch, FileReduce
from eventide.engine.spark.state_tasks import StateTasks
from eventide.engine.spark.versions import same_everywhere
from eventide.errors import DeclarationError, first_line
from eventide.plan.bound.query import instant_sql
from eventide.plan.declared.stream import Derived, Stream
from eventide.plan.duckdb.transpile import tables_in
from eventide.plan.expressions.columns import Column, quoted, spark_type, with_type
from eventide.plan.sql.computed_columns import computed_text
from eventide.plan.sql.stream_rows import MALFORMED, batch_view
from eventide.sources.spark_errors import of_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Observation, SparkSession

T = TypeVar("T")

MOST_JOBS = 8
"""So many jobs of one round run side by side."""

NAMING = threading.Lock()
"""Held while views have the meaning of one statement."""


class SparkExecutor:
    """Spark itself over small Arrow tables: slower than DuckDB, and exact by definition."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark

    def ask(self, spark_sql: str, tables: Mapping[str, pa.Table], inner: tuple[Column, ...] = ()) -> pa.Table:
        """The answer of a statement over these tables."""
        try:
            return _analysed(self._spark, spark_sql, _frames(self._spark, tables)).toArrow()
        except Exception as error:
            raise of_spark(error, "windows cannot be closed") from error


class SparkBackend:
    """Runs SQL in a Spark session. A batch is given as DataFrames (or Arrow tables, for tests and small things)."""

    name = "spark"
    has_cluster = True

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        # A micro-batch belongs to a session of its own, a clone of the user's; views of a round are made there.
        self._session = spark
        self._streams: dict[str, Stream] = {}
        self._empty: dict[str, DataFrame] = {}
        self.by_files: dict[str, FileReduce] = {}
        self.state_tasks = StateTasks(spark)
        self._batch: Mapping[str, Any] = {}
        self._few = False
        self._viewed = True
        # The rows of a stream are for Spark to read: the driver could not if it tried.
        self.duckdb_executor = DuckDBExecutor(files=False)

    def declare(self, stream: Stream) -> None:
        """Make an empty view with the stream's columns; results of a query come with no round, twins with others."""
        if not isinstance(stream, Derived) and stream.twin_of is None:
            self._streams[stream.name] = stream
        if stream.twin_of is None and FileReduce.can(stream):
            self.by_files[stream.name] = FileReduce(self.spark, stream)
        self._empty[stream.name] = self.spark.createDataFrame([], _ddl(stream))
        self._empty[stream.name].createOrReplaceTempView(f"eventide_empty_{stream.name}")

    def type_of(self, stream: Stream, sql: str) -> str:
        """The Spark type of an expression, as Spark tells it."""
        return self.types_of(stream, [sql])[0]

    def types_of(self, stream: Stream, several: Sequence[str]) -> list[str]:
        """The Spark types of expressions, by one statement."""
        from pyspark.errors import PySparkException

        asked = ", ".join(f"{sql} AS __type{place}" for place, sql in enumerate(several))
        try:
            schema = self.spark.sql(f"SELECT {asked} FROM eventide_empty_{stream.name}").schema
        except PySparkException as error:
            raise DeclarationError(
                f"Spark does not accept {', '.join(several)!r} over stream {stream.name!r}: {first_line(error)}"
            ) from error
        kinds = [field.dataType.simpleString() for field in schema.fields]
        return [spark_type(with_type(sql, kind)) for sql, kind in zip(several, kinds, strict=True)]

    def bring(self, batch: Mapping[str, Any], few: bool = False) -> None:
        """Remember the rows of a round; few of them are read as one partition, which needs no shuffle."""
        self._batch, self._few, self._viewed = batch, few, False
        for rows in batch.values():
            frame = rows.frame if isinstance(rows, FileBatch) else rows
            if not isinstance(frame, pa.Table):
                self._session = frame.sparkSession

    def _make_views(self) -> None:
        """Name the rows of the round to SQL; a round whose files were reduced where they are needs no names."""
        with NAMING:
            for name, stream in self._streams.items() if not self._viewed else ():
                rows = self._batch.get(name)
                if isinstance(rows, FileBatch):
                    rows = rows.frame if rows.uris else None
                # Batches of a stream come in a session of their own, which knows no views of others.
                if rows is None:
                    frame = self._session.createDataFrame([], _ddl(stream))
                else:
                    frame = self._computed(stream, rows)
                frame.createOrReplaceTempView(batch_view(stream))
            self._viewed = True

    def _computed(self, stream: Stream, rows: DataFrame | pa.Table) -> DataFrame:
        """The rows as a DataFrame with all columns of the stream: those that are computed, too."""
        if isinstance(rows, pa.Table) and rows.num_rows == 0:
            return self._empty[stream.name]
        frame = self._from_arrow(stream.as_read, rows) if isinstance(rows, pa.Table) else rows
        if self._few and not isinstance(rows, pa.Table):
            frame = frame.coalesce(1)
        if not stream.computed:
            return frame
        read = f"{batch_view(stream)}_as_read"
        frame.createOrReplaceTempView(read)
        return frame.sparkSession.sql(computed_text(stream, read))

    def _from_arrow(self, stream: Stream, table: pa.Table) -> DataFrame:
        if MALFORMED not in table.column_names:
            table = table.append_column(MALFORMED, pa.nulls(table.num_rows, pa.string()))
        table = table.select([*(c.name for c in stream.columns), MALFORMED])
        return _frame(self.spark, table, _ddl(stream))

    def ask(self, sql: str, tables: Mapping[str, pa.Table] | None = None) -> pa.Table:
        """The answer of a statement, collected as Arrow."""
        self._make_views()
        try:
            return self._asked(sql, tables or {}).toArrow()
        except Exception as error:
            raise of_spark(error, "a round cannot be computed") from error

    def reduce(self, stream: Stream, sql: str, portable: bool) -> pa.Table:
        """The answer of a statement that reduces the rows of a stream: by its files, or else by Spark SQL."""
        by_file = self.by_files.get(stream.rows_of) if portable else None
        batch = self._batch.get(stream.rows_of)
        found = by_file.reduce(batch, sql) if by_file is not None and isinstance(batch, FileBatch) else None
        return self.ask(sql) if found is None else found

    def sql(self, portable: bool) -> SqlExecutor:
        """DuckDB where it gives Spark's answer, Spark itself where it does not."""
        return self.duckdb_executor if portable else SparkExecutor(self.spark)

    def store(
        self, stream: Stream, sql: str, portable: bool, target: Target, tables: Mapping[str, pa.Table] | None = None
    ) -> Summary:
        """Write the answer over the rows of a round as Parquet: by their files, or else by Spark SQL."""
        by_file = self.by_files.get(stream.rows_of) if portable else None
        batch = self._batch.get(stream.rows_of)
        if by_file is not None and isinstance(batch, FileBatch):
            found = by_file.store(batch, sql, target)
            if found is not None:
                return found
        self._make_views()
        return self._written(lambda: self._asked(sql, tables or {}), target)

    def _asked(self, sql: str, tables: Mapping[str, pa.Table]) -> DataFrame:
        """A statement over the rows of a round, in the session that they belong to."""
        return _analysed(self._session, sql, _frames(self._session, tables))

    def run_over(self, steps: Sequence[ClusterStep], given: Given) -> list[Summary | pa.Table]:
        """Run steps over files and small tables: all in one task where they are small, else each by Spark SQL."""
        found = self.state_tasks.run(steps, given)
        return self._run_by_sql(steps, dict(given)) if found is None else found

    def _run_by_sql(
        self, steps: Sequence[ClusterStep], given: dict[str, StoredRows | pa.Table]
    ) -> list[Summary | pa.Table]:
        found = dict[str, Summary | pa.Table]()
        for step in steps:
            if step.target is None:
                found[step.name] = self._collected(step.sql, given)
                continue
            layout, before = step.target.layout, [found[name] for name in step.needs]
            if before and not any(one.rows for one in before if isinstance(one, Summary)):
                wrote = Summary.of(layout, layout.empty())
            else:
                wrote = self._written(partial(self.frame_over, step.sql, given), step.target)
            uris = (step.target.folder,) if wrote.rows else ()
            given[step.name] = StoredRows(uris, layout, wrote.rows * layout.row_bytes)
            found[step.name] = wrote
        return list(found.values())

    def _collected(self, sql: str, given: Given) -> pa.Table:
        try:
            return self.frame_over(sql, given).toArrow()
        except Exception as error:
            raise of_spark(error, "a statement over state cannot be computed") from error

    def frame_over(self, sql: str, given: Given) -> DataFrame:
        """A statement over files and small tables."""
        read = tables_in(sql)
        frames = {name: _given_frame(self.spark, rows) for name, rows in given.items() if name.lower() in read}
        return _analysed(self.spark, sql, frames)

    def _written(self, made: Callable[[], DataFrame], target: Target) -> Summary:
        try:
            frame = made()
            if target.sequence is not None:
                frame = _numbered(frame, target.sequence)
            observed, observation = _observed(frame, target.layout)
            observed.write.mode("overwrite").parquet(target.folder)
            return _summary(target.layout, observation.get)
        except Exception as error:
            raise of_spark(error, f"Spark cannot write to {target.folder}") from error

    def together(self, work: Sequence[Callable[[], T]]) -> list[T]:
        """As jobs side by side: a small one leaves most of a cluster idle."""
        from pyspark import inheritable_thread_target

        if len(work) < 2:
            return [one() for one in work]
        # Whatever cancels the jobs of this thread cancels these too.
        with ThreadPoolExecutor(min(len(work), MOST_JOBS)) as threads:
            running = [threads.submit(inheritable_thread_target(self.spark)(one)) for one in work]
            return [one.result() for one in running]

    def close(self) -> None:
        """Release everything: no more statements come."""
        self.duckdb_executor.close()

    def release(self) -> None:
        """Release the batch of the round."""
        self._batch = {}


def _analysed(spark: SparkSession, sql: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    """A statement over frames, of which Spark has understood every name."""
    with NAMING:
        for name, frame in frames.items():
            frame.createOrReplaceTempView(name)
        return spark.sql(same_everywhere(sql))


def _numbered(frame: DataFrame, sequence: int) -> DataFrame:
    """Rows with an identity: the sequence comes as a table of one row, since a literal would be compiled anew."""
    from pyspark.sql import functions

    one = _frame(frame.sparkSession, pa.table({SEQUENCE: pa.array([sequence], pa.int64())}))
    numbered = frame.withColumn(ID, functions.monotonically_increasing_id())
    return numbered.crossJoin(functions.broadcast(one))


def _observed(frame: DataFrame, layout: Layout) -> tuple[DataFrame, Observation]:
    """Rows whose summary is found while they are written; columns in the order of the layout."""
    from pyspark.sql import Observation, functions

    types = {column.name: column.type for column in layout.columns}
    frame = frame.select(*(functions.col(quoted(name)).cast(kind) for name, kind in types.items()))
    summary = [functions.count(functions.lit(1)).alias("rows")]
    if layout.weight is not None:
        summary.append(functions.sum(layout.weight).alias("weight"))
    if layout.panes is not None:
        summary.append(functions.collect_set(layout.panes).alias("panes"))
    for place, name in enumerate(layout.bounded):
        value = functions.expr(instant_sql(name, types[name]))
        summary += [functions.min(value).alias(f"least{place}"), functions.max(value).alias(f"greatest{place}")]
    observation = Observation()
    return frame.observe(observation, *summary), observation


def _summary(layout: Layout, summary: Mapping[str, Any]) -> Summary:
    rows = int(summary["rows"])
    edges = {
        way: {
            name: int(summary[f"{way}{i}"]) for i, name in enumerate(layout.bounded) if summary[f"{way}{i}"] is not None
        }
        for way in ("least", "greatest")
    }
    weight = rows if layout.weight is None else int(summary["weight"] or 0)
    panes = tuple(sorted(summary["panes"])) if layout.panes is not None else ()
    return Summary(rows, 0, weight, edges["least"], edges["greatest"], panes)


def _given_frame(spark: SparkSession, rows: StoredRows | pa.Table) -> DataFrame:
    if not isinstance(rows, StoredRows):
        return _frame(spark, rows)
    ddl = rows.layout.ddl
    return spark.read.schema(ddl).parquet(*rows.uris) if rows.uris else spark.createDataFrame([], ddl)


def _frames(spark: SparkSession, tables: Mapping[str, pa.Table]) -> dict[str, DataFrame]:
    return {name: _frame(spark, table) for name, table in tables.items()}


def _frame(spark: SparkSession, table: pa.Table, ddl: str | None = None) -> DataFrame:
    """The table in Spark. PySpark loses all rows behind an empty batch, so there must be none."""
    whole = table.combine_chunks()
    return spark.createDataFrame(whole) if ddl is None else spark.createDataFrame(whole, schema=ddl)


def _ddl(stream: Stream) -> str:
    return ", ".join([*(f"{quoted(c.name)} {c.type}" for c in stream.columns), f"{MALFORMED} STRING"])
