"""Results given to a function of the user's.

Law: the function is called once for each query and round, also for a round without rows, and again with the same round
when the engine starts again after a crash. So it must itself be idempotent by round. The simplest way: in one
transaction remove what is there of that query and round, then insert what came.

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

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import pyarrow as pa

from eventide.errors import EngineError, EventideError
from eventide.results.results import Results

Receive: TypeAlias = "Callable[[str, int, pa.RecordBatchReader], object]"
Rewind: TypeAlias = Callable[[str, int], object]


class Callback:
    """Calls `function(query, round, batches)`.

    `batches` is a `pyarrow.RecordBatchReader`: loop over it for record batches, `read_all()` gives a table, `.schema`
    the columns; DuckDB, Polars and ADBC take it as it is. It is read while the function runs, not later.

    `rewind(query, last)`, if given, is called when the engine starts: rounds after `last` have not happened. With
    `empty=False` rounds without rows are left out; that is safe only with a `rewind` that forgets later rounds.

    >>> Callback(lambda query, round, batches: 1 / 0).emit(Results.of_table("q", 3, pa.table({"a": [1]})))
    Traceback (most recent call last):
        ...
    eventide.errors.EngineError: the function <lambda> failed on the results of 'q' in round 3: ZeroDivisionError: \
division by zero. Round 3 will be given to it again when the engine starts again
    """

    def __init__(self, function: Receive, *, rewind: Rewind | None = None, empty: bool = True) -> None:
        self._function = function
        self._rewind = rewind
        self._empty = empty

    def emit(self, results: Results) -> None:
        """Call the function."""
        if not (results.rows or self._empty):
            return
        what = f"failed on the results of {results.query!r} in round {results.round}"
        again = f"Round {results.round} will be given to it again when the engine starts again"
        with translated_errors(self._function, what, again):
            reader = pa.RecordBatchReader.from_batches(results.schema, results.batches())
            self._function(results.query, results.round, reader)

    def rewind(self, query: str, last: int) -> None:
        """Call the other function, if there is one."""
        if self._rewind is not None:
            with translated_errors(
                self._rewind, f"failed to forget what {query!r} gave after round {last}", "Mend it, start again"
            ):
                self._rewind(query, last)

    def close(self) -> None:
        """Nothing is left to do."""


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
