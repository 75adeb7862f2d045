"""What Spark said when a statement failed: the fault of a row, or of something else.

Law: an error that a row's values caused is a `DataFaultError`, here as on DuckDB; a statement that fails for every row
alike (no such column, no disk) is a plain `EngineError`. Only the first line of what Spark said is kept.
"""

from __future__ import annotations

import re

from eventide.duckdb.executor import first_line
from eventide.errors import DataFaultError, EngineError
from eventide.plan.declared.secrets import masked_text
from eventide.sources.spark_errors import gone, is_gone

OF_DATA = ("22", "38", "39", "P0")
"""Classes of SQLSTATE: data exceptions, functions of the user that failed (in Python or not), errors a query raises."""

STATE = re.compile(r"SQLSTATE: (\w{5})")
CAUSE = re.compile(r"^(?:Caused by)?: [\w.$]+: (?!Exception thrown in await)(.+)$", re.MULTILINE)
HEADER = re.compile(r"CSV header does not conform to the schema\.\s+Header: (.*)\s+Schema: (.*)")
NOT_A_VALUE = "net.razorvine.pickle.PickleException"
"""What Spark's reader of Python values says of an object of a class that it does not know."""

NO_ROOM = ("No space left on device", "Disk quota exceeded", "File too large")


def of_spark(error: BaseException, what: str) -> EngineError:
    """The error to raise for what Spark said; `what` says what could not be done.

    >>> failure = '''An error occurred while calling o134.getResult.
    ... : org.apache.spark.SparkException: Exception thrown in awaitResult:
    ... Caused by: org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Error while reading file a.parquet.'''
    >>> print(of_spark(RuntimeError(failure), "a round cannot be computed"))
    a round cannot be computed: [FAILED_READ_FILE.NO_HINT] Error while reading file a.parquet. Put a good file of that \
name in its place, and start again
    >>> message = "Lost task 0.0: net.razorvine.pickle.PickleException: expected zero arguments for construction of X"
    >>> of_spark(RuntimeError(message), "a round cannot be computed")
    DataFaultError('a round cannot be computed: a function of yours gave an object that is no value of a column')
    """
    if is_gone(error):
        return EngineError(f"{what}: {gone()}")
    message = str(error)
    # Some errors keep the cause of all to themselves.
    if any(words in f"{message} {getattr(error, '_stackTrace', '')}" for words in NO_ROOM):
        return EngineError(
            f"{what}: there is no room left on a disk. Every committed round is safe: free some space, or copy the "
            "checkpoint to a larger disk, and start again"
        )
    state = error.getSqlState() if hasattr(error, "getSqlState") else None
    if state is None and (found := STATE.search(message)) is not None:
        # The failure of a job tells the state of its cause in the text alone.
        state = found[1]
    if NOT_A_VALUE in message:
        return DataFaultError(f"{what}: a function of yours gave an object that is no value of a column")
    kind = DataFaultError if state is not None and state.startswith(OF_DATA) else EngineError
    cause = cause_of(error)
    if cause.startswith("[FAILED_READ_FILE"):
        if (header := HEADER.search(message)) is not None:
            cause += f" Its first line names {header[1]}, that of the first file {header[2]}."
        # Spark has promised itself to read that file in that batch.
        cause += " Put a good file of that name in its place, and start again"
    return kind(f"{what}: {cause}")


def cause_of(error: BaseException) -> str:
    """The sentence in what Spark raised that says what happened.

    >>> text = "An error occurred while calling None.JavaSparkContext.\\n: org.apache.spark.SparkException: No threads"
    >>> cause_of(RuntimeError(text))
    'No threads'
    """
    message = str(error)
    cause = CAUSE.search(message) if message.startswith("An error occurred while calling") else None
    return masked_text(cause[1].strip() if cause else first_line(error))
