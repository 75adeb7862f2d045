"""What DuckDB said when a statement failed: the fault of a row, or of something else.

Law: an error that a row's values caused is a `DataFaultError`; a statement that fails for every row alike (no such
column, no disk) is a plain `EngineError`. Only the first line of what the engine said is kept.
"""

from __future__ import annotations

import duckdb

from eventide.errors import DataFaultError, EngineError

OF_VALUES = (duckdb.ConversionException, duckdb.OutOfRangeException, duckdb.InvalidInputException)


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


def first_line(error: BaseException) -> str:
    """What it says, without its stack; what a function of the user raised stands in the last line.

    >>> first_line(Exception("a worker failed:\\nTraceback\\n  in f\\nValueError: no number"))
    'a worker failed: ValueError: no number'
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    return f"{lines[0]} {lines[-1]}" if lines[0].endswith(":") and len(lines) > 1 else lines[0]
