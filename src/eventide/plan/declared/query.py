"""Declare a continuous query: a window aggregate over one stream or over the results of another query.

Laws of ORDER BY: NULL comes first in ascending order and last in descending order, as in Spark, unless said otherwise.
What is equal in all of it is in the order of the groups, ascending, so the order of a window's results is always the
same. Law of PROD: early answers change no final one.

>>> from eventide.plan.declared.window import Window
>>> query = Query("speeds", "traffic", Window(300, 60), groups=named_as("detector"), select=named_as(mean="avg(speed)"))
>>> query.groups, query.select, query.prods
((Named(name='detector', sql='detector'),), (Named(name='mean', sql='avg(speed)'),), None)
>>> order_by("total DESC", "sensor")
(OrderBy(sql='total', descending=True, nulls_first=False), OrderBy(sql='sensor', descending=False, nulls_first=True))
>>> Prods(points=(0.75, 0.9)).triggers(by_progress=False)
(AtPoints(points=(0.75, 0.9)),)
>>> Prods()
Traceback (most recent call last):
    ...
eventide.errors.DeclarationError: PROD needs to know when: write EVERY, AT, WITHIN or BY
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import sqlglot
from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.eventtime.early.triggers import AtPoints, ByProgress, Earliness, EarlyTrigger, Every
from eventide.plan.declared.window import AnyWindow, LifeWindow, RowWindow, SessionWindow, Window
from eventide.plan.expressions.aggregate_call import call_from
from eventide.plan.expressions.columns import nearest_of
from eventide.plan.expressions.parse import aggregates_in, parsed
from eventide.plan.expressions.spark_dialect import SPARK

POINT, COMPLETENESS = "point", "completeness"
ERROR, ESTIMATE = "_error", "_estimate"
GROWING = ("sum", "try_sum", "count", "count_if")
"""Aggregates that are as much smaller as rows are missing."""


Compare = Callable[..., Any] | str
"""How an early value is compared with the final one: a function, or the name of one that a script declares."""


@dataclass(frozen=True)
class Prods:
    """When a query is asked for early answers, and whether sums and counts are extrapolated.

    `every` is a length on the clock, `every_rows` a number of rows that come into the query, `points` are shares of the
    slide, `within` lets the point find itself. Where the times of a stream are numbers of a sequence, its own progress
    takes the place of the clock. `by` names a stream whose rows are prods; `in_stream` says that prods come among the
    rows that the query reads. With `estimate`, sums and counts are extrapolated beside their raw values. `compare` has
    functions of the user for values: of early and final ones as Arrow arrays, to errors. With `discarding`, an early
    answer is over the rows that came since the last one, for all open windows. `where` has patterns of groups as data
    (`eventtime.pattern`): no others are asked for.
    """

    every: int | None = None
    points: tuple[float, ...] = ()
    within: Earliness | None = None
    estimate: bool = False
    by: str | None = None
    in_stream: bool = False
    compare: tuple[tuple[str, Compare], ...] = ()
    every_rows: int | None = None
    discarding: bool = False
    where: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.discarding:
            self._check_discarding()
        asked = self.every is not None or bool(self.points) or self.within is not None or self.every_rows is not None
        if self.every_rows is not None and self.every_rows < 1:
            raise DeclarationError(f"PROD EVERY {self.every_rows} ROWS has no rows between two prods: give 1 or more")
        if not (asked or self.by is not None or self.in_stream):
            raise DeclarationError("PROD needs to know when: write EVERY, AT, WITHIN or BY")
        if self.where and self.within is not None:
            raise DeclarationError(
                "PROD WITHIN learns from the answers of all groups: leave PROD WHERE out, or prod AT or EVERY"
            )
        for value, how in self.compare:
            if not (isinstance(how, str) or callable(how)):
                raise DeclarationError(f"{how!r} cannot compare {value!r}: give a function of early and final values")
        self.triggers(by_progress=False)

    def _check_discarding(self) -> None:
        if self.needs_slides or self.by is not None or self.in_stream or self.where:
            raise DeclarationError(
                "DISCARDING goes with PROD EVERY alone: what asks for some windows cannot say of all what is new"
            )
        if self.estimate or self.compare:
            raise DeclarationError(
                "DISCARDING gives parts of windows, which have no errors: drop it, or ESTIMATE and COMPARE"
            )

    @property
    def needs_slides(self) -> bool:
        """Whether it speaks of points of the slide, which windows over counts of rows do not have in time."""
        return bool(self.points) or self.within is not None

    def triggers(self, by_progress: bool) -> tuple[EarlyTrigger, ...]:
        """The early triggers that it declares; `by_progress`: by the times that have arrived, not by the clock."""
        found: list[EarlyTrigger] = []
        if self.every is not None:
            found.append(Every(self.every))
        if self.points:
            found.append(AtPoints(self.points))
        return tuple(ByProgress(trigger) for trigger in found) if by_progress else tuple(found)


def added_columns(values: tuple[str, ...], estimates: tuple[str, ...]) -> tuple[str, ...]:
    """The columns that early answers have beside those of final ones, which have NULL in them.

    >>> added_columns(("total",), ("total",))
    ('point', 'completeness', 'total_error', 'total_estimate')
    """
    return (POINT, COMPLETENESS, *(f"{name}{ERROR}" for name in values), *(f"{name}{ESTIMATE}" for name in estimates))


def extrapolated(select: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Of values with their SQL, the names of those that grow with the rows: sums and counts, not of distinct values.

    >>> extrapolated([("total", "sum(v)"), ("n", "count(*)"), ("d", "count(DISTINCT v)"), ("r", "sum(v) / 2")])
    ('total', 'n')
    """
    found = []
    for name, sql in select:
        tree = parsed(sql, f"the value {name!r}")
        calls = aggregates_in(exp.Paren(this=tree))
        if len(calls) == 1 and calls[0] is tree:
            call = call_from(tree)
            if call.name in GROWING and not call.distinct:
                found.append(name)
    return tuple(found)


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

    `stream` names a stream or another query, whose results are then its rows (see `plan.declared.stream.Derived`). Each
    of `select` is an expression over aggregates of the stream's columns, such as `max(price) - min(price)`; without
    any, the groups of a window are emitted (SELECT DISTINCT). `retain`: for how long after its end a window can still
    be revised by a late row (0: never). Of each window's results, `having` chooses, `order` orders, and the first
    `limit` are emitted. `sample` is the share of the rows that count; which ones, their values decide. `by_source`:
    each group closes on the heartbeat of its own source, not on that of all together (see `plan.declared.program`).
    `prods`: when early answers are emitted beside the final ones. `changes`: every round emits the new value of each
    group that has changed, which takes the place of the group's last one (EMIT CHANGES, under a `LifeWindow`).

    >>> Query("q", "s", Window(300), select=named_as(round="count(*)"))
    Traceback (most recent call last):
        ...
    eventide.errors.DeclarationError: query 'q': 'round' is a column of every result; choose another name for yours
    """

    name: str
    stream: str
    window: AnyWindow
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
    changes: bool = False

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
        if isinstance(self.window, SessionWindow):
            self._check_session(self.window.noun)
        if self.sample is not None and not 0 < self.sample <= 1:
            raise DeclarationError(
                f"query {self.name!r}: cannot take {self.sample} of the rows: give a share above 0, at most 1"
            )

        if self.changes:
            self._check_changes()
        if self.prods is not None:
            self._check_prods(self.prods)

    @property
    def computed(self) -> tuple[Named, ...]:
        """The columns that it emits, each with what it is computed by; none are passed on."""
        return (*self.groups, *self.select)

    @property
    def passes_columns(self) -> bool:
        """Whether the columns of its inputs are among those that it emits."""
        return False

    @property
    def called(self) -> Mapping[str, str]:
        """The names by which expressions call its inputs."""
        return {self.stream: self.stream}

    @property
    def has_known_ends(self) -> bool:
        """Whether its windows end at instants that are known before any row comes."""
        return not isinstance(self.window, RowWindow | SessionWindow)

    @property
    def has_scored_prods(self) -> bool:
        """Whether early answers are of the same spans and rows as final ones, as far as these have come."""
        return not isinstance(self.window, SessionWindow) and not (self.prods is not None and self.prods.discarding)

    def _check_prods(self, prods: Prods) -> None:
        if prods.needs_slides and isinstance(self.window, RowWindow):
            raise DeclarationError(
                f"query {self.name!r}: windows over a count of rows have no points in time: prod it EVERY so often"
            )
        if prods.discarding and (not isinstance(self.window, Window) or self.window.empty or self.by_source):
            raise DeclarationError(
                f"query {self.name!r}: DISCARDING is for windows of time, all of which close together, without those "
                "that are empty: drop it"
            )
        if isinstance(self.window, SessionWindow):
            self._check_prods_of_sessions(prods, self.window.noun)
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

    def _check_changes(self) -> None:
        if not isinstance(self.window, LifeWindow):
            raise DeclarationError(
                f"query {self.name!r}: results of windows come when these are over, and do not change: EMIT CHANGES "
                "is for aggregates without a window, under STATE TTL"
            )
        if self.having is not None:
            raise DeclarationError(
                f"query {self.name!r}: a value that no longer fulfils HAVING would stay as it was shown before: drop "
                "HAVING from EMIT CHANGES, and choose where the results are read"
            )
        if self.prods is not None:
            raise DeclarationError(
                f"query {self.name!r}: EMIT CHANGES shows all that a prod could ask for: drop the one or the other"
            )

    def _check_session(self, noun: str) -> None:
        """Every session is the only result of its window."""
        if self.order or self.limit is not None:
            raise DeclarationError(
                f"query {self.name!r}: each {noun} is a window of its own with one result, so ORDER BY and LIMIT have "
                "nothing to choose from: drop them"
            )
        if isinstance(self.window, LifeWindow) and self.retain:
            raise DeclarationError(
                f"query {self.name!r}: RETAIN is for windows, and STATE TTL says here how late a row may be: drop it"
            )

    def _check_prods_of_sessions(self, prods: Prods, noun: str) -> None:
        owner = f"query {self.name!r}: a {noun} that is open has no end yet"
        if prods.needs_slides:
            raise DeclarationError(f"{owner}, so it has no points in time: prod it EVERY so often")
        if prods.estimate or prods.compare:
            raise DeclarationError(f"{owner}, so nobody knows how much of it is missing: drop ESTIMATE and COMPARE")

    def _check_retention(self) -> None:
        if self.retain < 0:
            raise DeclarationError(f"query {self.name!r}: cannot retain windows for {self.retain}: give 0 or more")
        if isinstance(self.window, RowWindow) and self.retain:
            raise DeclarationError(
                f"query {self.name!r}: windows over a count of rows cannot be revised; drop `retain`"
            )


class Selecting:
    """A step that emits what it selects, or all columns of its inputs."""

    select: tuple[Named, ...]

    @property
    def computed(self) -> tuple[Named, ...]:
        """The columns that it emits, each with what it is computed by; without any, all columns are passed on."""
        return self.select

    @property
    def passes_columns(self) -> bool:
        """Whether the columns of its inputs are among those that it emits."""
        return not self.select


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
