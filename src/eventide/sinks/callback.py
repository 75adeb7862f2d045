"""Results given to a function of the user's: as Arrow batches, or as DataFrames for any batch writer of Spark.

Law: the function is called once for each query and round, also for a round without rows, and again with the same round
when the engine starts again after a crash. So it must itself be idempotent by round. The simplest way: in one
transaction remove what is there of that query and round, then insert what came.

`SparkWriter` gives a DataFrame and the round, the habit of `foreachBatch`, under the same law. For files, give each
round its own directory, and overwrite it:

    def write(results, round):
        results.write.mode("overwrite").parquet(f"s3a://bucket/speeds/round={round}")

    SparkWriter(spark, write)

In a Delta table, replace the rows of the round:

    def write(results, round):
        replacing = results.write.format("delta").mode("overwrite").option("replaceWhere", f"round = {round}")
        replacing.saveAsTable("speeds")

For a table behind JDBC, write the round into a staging table (`mode("overwrite")`); then, in one transaction of the
database, delete the rows of that round from the table and insert those of the staging table.

>>> import sqlite3
>>> from eventide.results.results import Results
>>> db = sqlite3.connect(":memory:")
>>> _ = db.execute("CREATE TABLE means (round INT, detector TEXT, mean REAL)")
>>> def store(query, round, batches):
...     rows = batches.read_all().select(["round", "detector", "mean"]).to_pylist()
...     with db:
...         db.execute("DELETE FROM means WHERE round = ?", [round])
...         db.executemany("INSERT INTO means VALUES (:round, :detector, :mean)", rows)
>>> speeds = pa.table({"round": [42], "detector": ["A"], "mean": [51.5]})
>>> for attempt in "first", "again":
...     Callback(store).emit(Results.of_table("speeds", 42, speeds))
>>> db.execute("SELECT * FROM means").fetchall()
[(42, 'A', 51.5)]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

import pyarrow as pa

from eventide.errors import EngineError, EventideError
from eventide.results.results import Results

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Receive: TypeAlias = "Callable[[str, int, pa.RecordBatchReader], object]"
Rewind: TypeAlias = Callable[[str, int], object]


class FunctionSink(ABC):
    """Calls a function of the user with the results of each round; subclasses choose its arguments."""

    def __init__(self, function: Callable[..., object], rewind: Rewind | None, empty: bool) -> None:
        self._function = function
        self._rewind = rewind
        self._empty = empty

    @abstractmethod
    def _arguments(self, results: Results) -> tuple[object, ...]: ...

    def emit(self, results: Results) -> None:
        """Call the function with the results."""
        if not (results.rows or self._empty):
            return
        what = f"failed on the results of {results.query!r} in round {results.round}"
        again = f"Round {results.round} will be given to it again when the engine starts again"
        arguments = self._arguments(results)
        with translated_errors(self._function, what, again):
            self._function(*arguments)

    def rewind(self, query: str, last: int) -> None:
        """Call the other function, if there is one."""
        if self._rewind is not None:
            with translated_errors(
                self._rewind, f"failed to forget what {query!r} gave after round {last}", "Mend it, start again"
            ):
                self._rewind(query, last)

    def close(self) -> None:  # noqa: B027 - right for every kind
        """Do nothing: a function holds nothing open, and a Spark session is not ours to stop."""


class Callback(FunctionSink):
    """Calls `function(query, round, batches)` with the results of each round.

    Law: the function must be idempotent by round. After a crash a round may come again, with other rows or none.

    `batches` is a `pyarrow.RecordBatchReader`: loop over it for record batches; `read_all()` returns a table, `.schema`
    the columns; DuckDB, Polars and ADBC accept it. Read it before the function returns.

    `rewind(query, last)`, if given, is called when the engine starts: rounds after `last` did not happen. With
    `empty=False` rounds without rows are left out; that is safe only with a `rewind` that forgets later rounds.

    >>> Callback(lambda query, round, batches: print(query, round, batches.read_all().to_pylist())).emit(
    ...     Results.of_table("speeds", 3, pa.table({"mean": [51.5]}))
    ... )
    speeds 3 [{'mean': 51.5}]
    >>> Callback(lambda query, round, batches: 1 / 0).emit(Results.of_table("q", 3, pa.table({"a": [1]})))
    Traceback (most recent call last):
        ...
    eventide.errors.EngineError: the function <lambda> failed on the results of 'q' in round 3: ZeroDivisionError: \
division by zero. Round 3 will be given to it again when the engine starts again
    """

    def __init__(self, function: Receive, *, rewind: Rewind | None = None, empty: bool = True) -> None:
        super().__init__(function, rewind, empty)

    def _arguments(self, results: Results) -> tuple[object, ...]:
        reader = pa.RecordBatchReader.from_batches(results.schema, results.batches())
        return results.query, results.round, reader


@contextmanager
def translated_errors(function: Callable[..., object], what: str, way_out: str) -> Iterator[None]:
    """An error of a user's function as one of ours that names it."""
    try:
        yield
    except EventideError:
        raise
    except Exception as error:
        name = getattr(function, "__qualname__", None) or repr(function)
        reason = ": ".join(filter(None, [type(error).__name__, str(error).strip().partition("\n")[0]]))
        raise EngineError(f"the function {name} {what}: {reason}. {way_out}") from error


class SparkWriter(FunctionSink):
    """Calls `function(results, round)` with a Spark DataFrame of the results, like `foreachBatch`.

    Law: the function must be idempotent by round, and write before it returns, since files of results are deleted after
    the round is committed.

    The DataFrame has all columns, `query` included. Results on the cluster are read from their files and do not pass
    through the driver. `rewind(query, last)`, if given, is called when the engine starts: rounds after `last` did not
    happen. With `empty=False` rounds without rows, each of which costs a Spark job, are left out; that is safe only
    with a `rewind` that removes later rounds.
    """

    def __init__(
        self,
        spark: SparkSession,
        function: Callable[[DataFrame, int], object],
        *,
        rewind: Rewind | None = None,
        empty: bool = True,
    ) -> None:
        super().__init__(function, rewind, empty)
        self._spark = spark

    def _arguments(self, results: Results) -> tuple[object, ...]:
        return (self._frame(results) if results.frame is None else results.frame()), results.round

    def _frame(self, results: Results) -> DataFrame:
        from pyspark.sql.pandas.types import from_arrow_schema

        # Spark takes an empty batch for the end of the batches, and would lose those behind it.
        table = pa.Table.from_batches([batch for batch in results.batches() if batch.num_rows], results.schema)
        try:
            # Left to itself Spark would take a timestamp without a zone for one in the zone of the session.
            return self._spark.createDataFrame(table, schema=from_arrow_schema(table.schema, prefer_timestamp_ntz=True))
        except Exception as error:
            reason = str(error).strip().partition("\n")[0] or type(error).__name__
            raise EngineError(
                f"Spark cannot take the results of {results.query!r} in round {results.round}: {reason}. Does Spark "
                "still run, and does it know the type of every column?"
            ) from error
