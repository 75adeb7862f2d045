"""Which columns of which streams each column of a query is computed of.

Law: a column that is named in the expression of another is among those that this one is computed of, however many
queries lie between; filters, keys of joins and the order of rows choose rows, and are left out. What a query says of
its windows is computed of no column.

>>> from eventide.plan.declared.program import Program
>>> from eventide.plan.declared.query import Query, named_as
>>> from eventide.plan.declared.stream import Stream, columns
>>> from eventide.plan.declared.window import Window
>>> cars = Stream("cars", columns("ts TIMESTAMP, road STRING, speed INT, n INT"), time="ts")
>>> mean = Query("means", "cars", Window(60), named_as(mean="sum(speed * n) / sum(n)"), named_as(road="road"))
>>> least = Query("least", "means", Window(600), named_as(least="min(mean)"))
>>> sorted(lineage(Program((cars,), (mean, least)))["least"]["least"])
[('cars', 'n'), ('cars', 'speed')]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from eventide.plan.declared.program import Program, Step
from eventide.plan.expressions.parse import parsed

Origins = frozenset[tuple[str, str]]
"""Streams and columns of theirs."""
Columns = Mapping[str, Origins]


def lineage(program: Program) -> dict[str, Columns]:
    """Of each stream, query and operator the columns, and what each is computed of."""
    found: dict[str, Columns] = {
        stream.name: {column.name: frozenset({(stream.name, column.name)}) for column in stream.columns}
        for stream in program.streams
    }
    for step in program.steps:
        found[step.name] = _of_step(step, found)
    return found


def _of_step(step: Step, known: Mapping[str, Columns]) -> Columns:
    below = {alias.lower(): _small(known[name]) for alias, name in step.called.items()}
    passed: dict[str, Origins] = {}
    if step.passes_columns:
        for name in step.called.values():
            for column, origins in known[name].items():
                passed[column] = passed.get(column, frozenset()) | origins
    for item in step.computed:
        passed[item.name] = frozenset(one for column in _named_in(item.sql) for one in _origins(column, below))
    return passed


def _named_in(sql: str) -> Iterator[exp.Column]:
    yield from parsed(sql, "a column").find_all(exp.Column)


def _origins(column: exp.Column, below: Mapping[str, Columns]) -> Origins:
    """What a name in an expression stands for: in the input that it names, or in any that has it."""
    name, alias = column.name.lower(), column.table.lower()
    inputs = [below[alias]] if alias in below else below.values()
    return frozenset(one for columns in inputs for one in columns.get(name, ()))


def _small(columns: Columns) -> Columns:
    return {name.lower(): origins for name, origins in columns.items()}
