"""What can be read in Python, streams, rows and results of queries, as the language sees it.

Law: whatever reads one of them sees what SQL would see behind FROM: its columns, those that carry time, and of results
the two ends of their windows.

>>> import pyarrow as pa
>>> from eventide.api.stream import stream
>>> cars = stream(pa.table({"t": [1, 12], "car": ["x", "y"], "speed": [50, 60]}), time="t", name="cars")
>>> counts = cars.window(10).groupBy("car").agg(n="count(*)").named("counts")
>>> list(level_of(cars).columns), list(level_of(counts).columns)
(['t', 'car', 'speed'], ['car', 'n', 'window_start', 'window_end'])
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeAlias

from sqlglot import exp

from eventide.api.query import ContinuousQuery
from eventide.api.rows import EventRows
from eventide.api.stream import EventStream
from eventide.language.aggregate_query import clock_of_results
from eventide.language.group_by import Group, with_time
from eventide.language.scope import Scope, ScopeRelation, over, over_stream
from eventide.plan.expressions.columns import Column
from eventide.plan.expressions.parse import parsed

Node: TypeAlias = EventStream | EventRows | ContinuousQuery
"""What gives rows: those of a stream, those that were chosen, merged or joined, the results of a query."""

NOWHERE = exp.Placeholder()


def name_of(node: Node) -> str:
    """The name of what is read."""
    return node.declared.name if isinstance(node, EventStream) else node.called


def alias_of(node: Node) -> str:
    """By which name its columns are called in a join: its alias, its own name, or that of the only input it has."""
    while isinstance(node, EventRows) and node.name is None and node.known_as is None and len(node.inputs) == 1:
        node = node.inputs[0]
    return (node.known_as if isinstance(node, EventRows) else None) or name_of(node)


def level_of(node: Node) -> Scope:
    """What a query over it sees."""
    if isinstance(node, EventStream):
        return over_stream(node.declared, {node.declared.name.lower()})
    known = results_of(node) if isinstance(node, ContinuousQuery) else _rows_of(node)
    return over(known, {known.query.name.lower()})


def results_of(query: ContinuousQuery) -> ScopeRelation:
    """The results of a query, for those that read them."""
    below, asked = level_of(query.stream), query.declared
    groups = [(group.name, parsed(group.sql, f"group {group.name!r}")) for group in asked.groups]
    columns = [Column(name, below.type_of(expression)) for name, expression in groups]
    columns += [Column(value.name, "") for value in asked.select]
    timed = [with_time(Group(name, expression, expression), expression, below) for name, expression in groups]
    return ScopeRelation(asked, NOWHERE, tuple(columns), clock_of_results(asked, below, timed))


def _rows_of(node: EventRows) -> ScopeRelation:
    return ScopeRelation(replace(node.declared, name=node.called), NOWHERE, node.columns, node.clock)
