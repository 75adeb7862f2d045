"""Statements as they were written: what each is about, where it stands, and its own text.

>>> DropStatement(Place(3, 1), "DROP QUERY q", "query", "q").place.line
3
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Place:
    """A line and a column of a text, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True)
class Statement:
    """Where a statement stands, and its text without the semicolon."""

    place: Place
    text: str


@dataclass(frozen=True)
class StreamStatement(Statement):
    """`CREATE STREAM name ...`; `name` is the stream's name in the program."""

    name: str


@dataclass(frozen=True)
class QueryStatement(Statement):
    """`CREATE QUERY name AS SELECT ...`, `Query name: SELECT ...`, or a SELECT alone (`named` is then false)."""

    name: str
    named: bool = True


@dataclass(frozen=True)
class InterfaceStatement(Statement):
    """`CREATE INTERFACE SET name AS a, b`."""

    name: str


@dataclass(frozen=True)
class FunctionStatement(Statement):
    """`CREATE FUNCTION name FROM 'file.py' [RETURNS type] [EXPENSIVE]`."""

    name: str


@dataclass(frozen=True)
class DropStatement(Statement):
    """`DROP QUERY name` or `DROP STREAM name`; `kind` is `query` or `stream`."""

    kind: str
    name: str


@dataclass(frozen=True)
class ShowStatement(Statement):
    """`SHOW STREAMS` or `SHOW QUERIES`; `kind` is `streams` or `queries`."""

    kind: str


@dataclass(frozen=True)
class ExplainStatement(Statement):
    """`EXPLAIN name`, or `EXPLAIN SELECT ...`, whose query runs as well."""

    name: str


@dataclass(frozen=True)
class SetStatement(Statement):
    """`SET key = value`."""

    key: str
    value: str
