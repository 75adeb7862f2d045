"""A query said twice: in SQL for an engine, and in plain Python for the oracle.

Law: `Question.query()` and the methods of its parts mean the same. Only what can be said in a line of obvious Python is
here: a few aggregates over one column, groups by columns, one condition on rows and one on the number of rows, an order
by columns of the results.

>>> from eventide.plan.declared.window import Window
>>> ask = Question("q", "s", Window(10), (Aggregate("sum", "v"),), groups=("k",), where=Condition("v", ">", 2))
>>> ask.query().where, ask.aggregates[0].sql, ask.aggregates[0].of([{"v": 3}, {"v": None}])
('v > 2', 'sum(v)', 3)
>>> ask.where.keeps({"v": None})
False
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from eventide.plan.declared.query import Named, OrderBy, Query, named_as
from eventide.plan.declared.window import AnyWindow

Row = Mapping[str, Any]
T = TypeVar("T")

FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
    "count": len,
    "count_distinct": lambda values: len(set(values)),
    "sum": lambda values: sum(values) if values else None,
    "avg": lambda values: sum(values) / len(values) if values else None,
    "min": lambda values: min(values, default=None),
    "max": lambda values: max(values, default=None),
}
"""Aggregates over the values that are not NULL."""

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "=": operator.eq,
}


@dataclass(frozen=True)
class Aggregate:
    """One of `FUNCTIONS` over a column, or `count` over `*`.

    >>> Aggregate("count_distinct", "v").sql, Aggregate("count", "*").of([{}, {}])
    ('count(DISTINCT v)', 2)
    """

    function: str
    column: str

    @property
    def name(self) -> str:
        """The name of its column in results."""
        return f"{self.function}_{'all' if self.column == '*' else self.column}"

    @property
    def sql(self) -> str:
        """The aggregate in Spark SQL."""
        if self.function == "count_distinct":
            return f"count(DISTINCT {self.column})"
        return f"{self.function}({self.column})"

    def of(self, rows: Sequence[Row]) -> Any:
        """Its value over these rows."""
        if self.column == "*":
            return len(rows)
        return FUNCTIONS[self.function]([row[self.column] for row in rows if row[self.column] is not None])


@dataclass(frozen=True)
class Condition:
    """A column compared with a number; unknown, so not kept, where the column is NULL."""

    column: str
    comparison: str
    number: int

    @property
    def sql(self) -> str:
        """The condition in Spark SQL."""
        return f"{self.column} {self.comparison} {self.number}"

    def keeps(self, row: Row) -> bool:
        """Whether a row passes the condition."""
        return row[self.column] is not None and COMPARISONS[self.comparison](row[self.column], self.number)


@dataclass(frozen=True)
class Question:
    """A window aggregate; `at_least` shows only the groups of a window that hold so many rows.

    `order` has names of groups and aggregates, each with whether it goes down; `limit` shows the first so many.

    >>> from eventide.plan.declared.window import Window
    >>> ask = Question("q", "s", Window(10), (), ("k",), order=(("k", True),))
    >>> ask.in_order([("a",), (None,), ("b",)], lambda group: group)
    [('b',), ('a',), (None,)]
    """

    name: str
    stream: str
    window: AnyWindow
    aggregates: tuple[Aggregate, ...]
    groups: tuple[str, ...] = ()
    where: Condition | None = None
    at_least: int = 0
    retain: int = 0
    order: tuple[tuple[str, bool], ...] = ()
    limit: int | None = None
    gap: str | None = None
    """The column with the gap of each row, of a question over sessions whose rows have one each."""

    def in_order(self, results: Sequence[T], values: Callable[[T], Sequence[Any]]) -> list[T]:
        """Results of one window in their order; `values` gives the groups and values of one. NULL is least."""
        names = [*self.groups, *(aggregate.name for aggregate in self.aggregates)]

        def key(place: int) -> Callable[[T], tuple[Any, ...]]:
            return lambda result: () if (value := values(result)[place]) is None else (value,)

        found = list(results)
        least_first = [*((place, False) for place in reversed(range(len(self.groups))))]
        least_first += [(names.index(name), down) for name, down in reversed(self.order)]
        for place, down in least_first:
            # A sort keeps the order of what is equal.
            found.sort(key=key(place), reverse=down)
        return found

    def query(self) -> Query:
        """The question as a query for an engine."""
        return Query(
            self.name,
            self.stream,
            self.window,
            select=tuple(Named(aggregate.name, aggregate.sql) for aggregate in self.aggregates),
            groups=named_as(*self.groups),
            where=self.where.sql if self.where else None,
            having=f"count(*) >= {self.at_least}" if self.at_least else None,
            retain=self.retain,
            order=tuple(OrderBy(name, down) for name, down in self.order),
            limit=self.limit,
        )
