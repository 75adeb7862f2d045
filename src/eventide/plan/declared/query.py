"""A continuous query and the order of its results, as declared.

A continuous query as declared: a window aggregate over one stream, or over the results of another query.

The language compiles to this.

>>> from eventide.plan.declared.window import Window
>>> Query("speeds", "traffic", Window(300, 60), groups=named_as("detector"), select=named_as(mean="avg(speed)"))
Query(name='speeds', stream='traffic', window=Window(range=300, slide=60, offset=0, empty=False), \
select=(Named(name='mean', sql='avg(speed)'),), groups=(Named(name='detector', sql='detector'),), \
where=None, having=None, retain=0, order=(), limit=None, sample=None, by_source=False, prods=None)

The order of the results within a window, as ORDER BY says it.

Law: NULL comes first in ascending order and last in descending order, as in Spark, unless said otherwise. What is equal
in all of it is in the order of the groups, ascending, so that the order of a window's results is always the same.

>>> order_by("total DESC", "sensor")
(OrderBy(sql='total', descending=True, nulls_first=False), OrderBy(sql='sensor', descending=False, nulls_first=True))
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.plan.declared.early import Prods, added_columns
from eventide.plan.declared.window import RowWindow, SameWindow, Window
from eventide.plan.expressions.columns import nearest_of
from eventide.plan.expressions.spark_dialect import SPARK


@dataclass(frozen=True)
class OrderBy:
    """One expression to order by: over the names of the results' columns, or over aggregates, in Spark SQL."""

    sql: str
    descending: bool = False
    nulls_first: bool | None = None

    def __post_init__(self) -> None:
        if self.nulls_first is None:
            object.__setattr__(self, "nulls_first", not self.descending)

    @property
    def direction(self) -> str:
        """The words after the expression.

        >>> OrderBy("n", descending=True).direction
        'DESC NULLS LAST'
        """
        return f"{'DESC' if self.descending else 'ASC'} NULLS {'FIRST' if self.nulls_first else 'LAST'}"


def order_by(*written: str) -> tuple[OrderBy, ...]:
    """Read what stands in an ORDER BY.

    >>> order_by("n NULLS LAST")
    (OrderBy(sql='n', descending=False, nulls_first=False),)
    >>> order_by("n n")
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: cannot read the order 'n n': write an expression, perhaps with DESC or ASC after \
it, and NULLS FIRST or NULLS LAST
    """
    return tuple(_read(text) for text in written)


def _read(text: str) -> OrderBy:
    try:
        order = sqlglot.parse_one(f"SELECT 1 ORDER BY {text}", read=SPARK).args.get("order")
    except sqlglot.errors.SqlglotError as error:
        raise _unreadable(text) from error
    if order is None or len(order.expressions) != 1:
        raise _unreadable(text)
    [one] = order.expressions
    assert isinstance(one, exp.Ordered)
    return OrderBy(one.this.sql(SPARK), bool(one.args.get("desc")), bool(one.args.get("nulls_first")))


def _unreadable(text: str) -> DeclarationError:
    return DeclarationError(
        f"cannot read the order {text!r}: write an expression, perhaps with DESC or ASC after it, and NULLS FIRST or "
        "NULLS LAST"
    )


RESERVED = ("query", "kind", "window_start", "window_end", "round", "rows", "heartbeat")
"""The columns that every result has beside the user's own."""


@dataclass(frozen=True)
class Named:
    """An expression in Spark SQL, and the name of the column it gives."""

    name: str
    sql: str


def named_as(*columns: str, **expressions: str) -> tuple[Named, ...]:
    """Columns under their own names, then expressions under the given ones.

    >>> named_as("device", minute="ts div 60")
    (Named(name='device', sql='device'), Named(name='minute', sql='ts div 60'))
    """
    return (*(Named(c, c) for c in columns), *(Named(name, sql) for name, sql in expressions.items()))


@dataclass(frozen=True)
class Query:
    """For every window and group: `select` over the rows that pass `where`, where `having` holds.

    `stream` names a stream or another query, whose results are then its rows (see `plan.derived`). Each of `select` is
    an expression over aggregates of the stream's columns, such as `max(price) - min(price)`; without any, the groups
    of a window are told (SELECT DISTINCT). `retain`: for how long after its end a window can still be revised by a late
    row (0: never). Of each window's results, `having` chooses, `order` orders, and the first `limit` are told.
    `sample` is the share of the rows that count; which ones, their values decide. `by_source`: each group closes on the
    heartbeat of its own source, not on that of all together (see `program_checks`). `prods`: when early answers are
    told beside the final ones.

    >>> Query("q", "s", Window(300), select=named_as(round="count(*)"))
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: query 'q': 'round' is a column of every result; choose another name for yours
    """

    name: str
    stream: str
    window: Window | RowWindow | SameWindow
    select: tuple[Named, ...]
    groups: tuple[Named, ...] = ()
    where: str | None = None
    having: str | None = None
    retain: int = 0
    order: tuple[OrderBy, ...] = ()
    limit: int | None = None
    sample: float | None = None
    by_source: bool = False
    prods: Prods | None = None

    def __post_init__(self) -> None:
        if not self.select and not self.groups:
            raise DeclarationError(f"query {self.name!r} selects nothing: give at least one aggregate or group")
        check_names(self.name, (*self.groups, *self.select))
        self._check_retention()
        if isinstance(self.window, Window) and self.window.empty and self.groups:
            raise DeclarationError(
                f"query {self.name!r}: empty windows have no groups to show: ask for them without GROUP BY"
            )
        if self.limit is not None and self.limit < 1:
            raise DeclarationError(f"query {self.name!r}: LIMIT {self.limit} shows nothing: give 1 or more")
        if self.sample is not None and not 0 < self.sample <= 1:
            raise DeclarationError(
                f"query {self.name!r}: cannot take {self.sample} of the rows: give a share above 0, at most 1"
            )

        if self.prods is not None:
            self._check_prods(self.prods)

    def _check_prods(self, prods: Prods) -> None:
        if prods.needs_slides and isinstance(self.window, RowWindow):
            raise DeclarationError(
                f"query {self.name!r}: windows over a count of rows have no points in time: prod it EVERY so often"
            )
        values = tuple(item.name for item in self.select)
        for name, _ in prods.compare:
            if name not in values:
                has = nearest_of(name, values, "it has")
                raise DeclarationError(f"query {self.name!r} has no value {name!r} to compare: {has}")
        used = {item.name.lower() for item in (*self.groups, *self.select)}
        for name in added_columns(values, values if prods.estimate else ()):
            if name.lower() in used:
                raise DeclarationError(
                    f"query {self.name!r}: {name!r} is a column of early answers; choose another name for yours"
                )

    def _check_retention(self) -> None:
        if self.retain < 0:
            raise DeclarationError(f"query {self.name!r}: cannot retain windows for {self.retain}: give 0 or more")
        if isinstance(self.window, RowWindow) and self.retain:
            raise DeclarationError(
                f"query {self.name!r}: windows over a count of rows cannot be revised; drop `retain`"
            )
        if isinstance(self.window, Window) and 0 < self.retain < self.window.range:
            raise DeclarationError(
                f"query {self.name!r}: its window of {self.window.range} is larger than what is retained "
                f"({self.retain}), so it could never be revised whole: retain {self.window.range} or more"
            )


def check_names(owner: str, outputs: Iterable[Named]) -> None:
    """Refuse columns of a result that have the name of another, or of one that every result has."""
    seen: set[str] = set()
    for item in outputs:
        if item.name.lower() in RESERVED:
            raise DeclarationError(
                f"query {owner!r}: {item.name!r} is a column of every result; choose another name for yours"
            )
        if item.name.lower() in seen:
            raise DeclarationError(f"query {owner!r}: two columns are named {item.name!r}; give one another name")
        seen.add(item.name.lower())
