"""A trial of a program before it runs: its statements, over rows that are made up, in this process.

Law: nothing of the user's is read, run or written. The rows have a time and the names of their sources, and NULL
everywhere else, so what fails is a statement, never a value. What only the statement of a later step would refuse is
found here, before a start that may take a minute.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime

import pyarrow as pa

from eventide.commands.functions import local_backend
from eventide.engine.local.engine import LocalEngine
from eventide.errors import EventideError
from eventide.language.script import Function
from eventide.plan.declared.program import Program
from eventide.plan.declared.stream import Stream
from eventide.sinks.memory import Memory
from eventide.sources.batches import Batches
from eventide.sources.schema import arrow_type

MOST_PARTS = 60
"""Programs with more streams, queries and operators are not tried: a round over many of them takes long."""

INSTANT = datetime(2024, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Refusal:
    """Why a query or operator does not run, and its name."""

    step: str
    error: EventideError


def refusal_of(program: Program, outputs: Collection[str], functions: Sequence[Function]) -> Refusal | None:
    """The first query or operator that the local engine would stop at; None where all of it runs."""
    if (
        not program.steps
        or len(program.streams) + len(program.steps) > MOST_PARTS
        or _tried(program, outputs, functions) is None
    ):
        return None
    names: list[str] = []
    for step in program.steps:
        names.append(step.name)
        part = replace(
            program,
            queries=tuple(query for query in program.queries if query.name in names),
            operators=tuple(operator for operator in program.operators if operator.name in names),
        )
        error = _tried(part, [name for name in outputs if name in names], functions)
        if error is not None:
            return Refusal(step.name, error)
    return None


def _tried(program: Program, outputs: Collection[str], functions: Sequence[Function]) -> EventideError | None:
    """Run a program over a row of each stream; the error that ends it."""
    backend = local_backend(functions, run=False)
    with tempfile.TemporaryDirectory(prefix="eventide-check-") as folder:
        try:
            inputs = {stream.name: Batches(stream, [_row(stream)]) for stream in program.streams}
            engine = LocalEngine(program, folder, {name: Memory() for name in outputs}, inputs, backend=backend)
            engine.run(bounded=True)
        except EventideError as error:
            return error
        finally:
            backend.close()
    return None


def _row(stream: Stream) -> pa.Table:
    """One row with nothing in it but a time and a source."""
    told_by = {name.lower() for name in (stream.time, stream.arrival) if name is not None}
    columns = {}
    for column in stream.columns:
        kind = arrow_type(column.type)
        value: object = _value(kind) if column.name.lower() in told_by else None
        if column.name.lower() in {name.lower() for name in stream.source} and pa.types.is_string(kind):
            value = "a"
        columns[column.name] = pa.array([value], kind)
    return pa.table(columns)


def _value(kind: pa.DataType) -> datetime | date | int:
    if pa.types.is_timestamp(kind):
        return INSTANT if kind.tz is not None else INSTANT.replace(tzinfo=None)
    return INSTANT.date() if pa.types.is_date(kind) else 1
