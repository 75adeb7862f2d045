"""What an engine said when a statement failed: the fault of a row, or of something else.

Law: an error that a row's values caused is a `DataFaultError`, on Spark and on DuckDB; a statement that fails for every
row alike (no such column, no disk) is a plain `EngineError`. Only the first line of what the engine said is kept.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import duckdb

from eventide.errors import DataFaultError, EngineError

if TYPE_CHECKING:
    from pyspark.errors import PySparkException

OF_DATA = ("22", "38", "39", "P0")
"""Classes of SQLSTATE: data exceptions, functions of the user that failed (in Python or not), errors a query raises."""

STATE = re.compile(r"SQLSTATE: (\w{5})")
OF_VALUES = (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException)


def of_spark(error: PySparkException, what: str) -> EngineError:
    """The error to raise for what Spark said; `what` says what could not be done."""
    state = error.getSqlState()
    if state is None and (found := STATE.search(str(error))) is not None:
        # The failure of a job tells the state of its cause in the text alone.
        state = found[1]
    kind = DataFaultError if state is not None and state.startswith(OF_DATA) else EngineError
    return kind(f"{what}: {first_line(error)}")


def of_duckdb(error: duckdb.Error, what: str) -> EngineError:
    """The error to raise for what DuckDB said.

    >>> try:
    ...     duckdb.execute("SELECT CAST('x' AS INTEGER)")
    ... except duckdb.Error as error:
    ...     of_duckdb(error, "a round cannot be computed")
    DataFaultError("a round cannot be computed: Conversion Error: Could not convert string 'x' to INT32")
    """
    kind = DataFaultError if isinstance(error, OF_VALUES) else EngineError
    return kind(f"{what}: {first_line(error)}")


def first_line(error: Exception) -> str:
    """What it says, without its stack."""
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__).strip()
