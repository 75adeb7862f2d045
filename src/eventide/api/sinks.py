"""What a user gives for a sink, as one.

>>> given_sink("out", "csv").format
'csv'
>>> type(given_sink(None)).__name__
'Memory'
>>> given_sink(42)
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: 42 is no sink: give a directory, a function that takes an Arrow table, a sink of \
eventide.sinks, or nothing to keep results in memory
"""

from __future__ import annotations

import os
from collections.abc import Callable

import pyarrow as pa

from eventide.api.query import GivenSink
from eventide.errors import DeclarationError
from eventide.sinks.callback import Callback
from eventide.sinks.directory import Directory
from eventide.sinks.memory import Memory
from eventide.sinks.sink import Sink


def given_sink(given: GivenSink, format: str = "parquet") -> Sink:
    """The sink; a function is called with the results of every round that has any."""
    if given is None:
        return Memory()
    if isinstance(given, str | os.PathLike):
        return Directory(given, format)
    if isinstance(given, Sink):
        return given
    if callable(given):
        return Callback(_with_table(given), empty=False)
    raise DeclarationError(
        f"{given!r} is no sink: give a directory, a function that takes an Arrow table, a sink of eventide.sinks, or "
        "nothing to keep results in memory"
    )


def _with_table(function: Callable[[pa.Table], object]) -> Callable[[str, int, pa.RecordBatchReader], object]:
    def receive(query: str, round: int, batches: pa.RecordBatchReader) -> object:
        return function(batches.read_all())

    # An error names the user's function, not ours.
    receive.__qualname__ = getattr(function, "__qualname__", None) or repr(function)
    return receive
