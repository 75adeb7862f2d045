"""A query in the making: a stream, conditions, a window, groups. `agg` makes it a query.

Law: a builder never changes; every method gives a new one, in any order. What is wrong is an error of the method that
was given it, not when the query starts.

>>> import pyarrow as pa
>>> from eventide.api.stream import stream
>>> rows = pa.table({"t": [1, 12], "detector": ["A", "B"], "speed": [50, -1]})
>>> traffic = stream(rows, time="t", name="traffic")
>>> asked = traffic.where("speed > 0").window(50, 10).groupBy("detector").agg("avg(speed) AS mean", n="count(*)")
>>> query = asked.plan.queries[0]
>>> query.select, query.where
((Named(name='mean', sql='avg(speed)'), Named(name='n', sql='count(*)')), 'speed > 0')
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import TYPE_CHECKING

import pyarrow as pa

from eventide.api.arguments import Expression, Length, condition_text, length, value_named
from eventide.api.column_text import quoted
from eventide.api.query import ContinuousQuery
from eventide.api.rows import UNNAMED, EventRows, GivenSink, Node, ReadableRows
from eventide.errors import DeclarationError
from eventide.language.select.row_query import clock_of
from eventide.plan.declared.over import Over
from eventide.plan.declared.query import Named, Query
from eventide.plan.declared.rows import Rows, sampled
from eventide.plan.declared.stream import WINDOW_END, WINDOW_START, Derived, TimeKind
from eventide.plan.declared.window import LifeWindow, RowWindow, SameWindow, SessionWindow, Window
from eventide.plan.expressions.columns import Column, named
from eventide.plan.expressions.parse import check_columns, parsed
from eventide.profile.amounts import spoken

if TYPE_CHECKING:
    from eventide.api.running_query import RunningQuery


@dataclass(frozen=True)
class QueryBuilder(ReadableRows):
    """A query that is not complete yet: a stream, conditions, a window, groups.

    Law: it is immutable, and its methods may come in any order. `agg` and `distinct` make a query, `select` makes rows.
    Read as rows, it gives those that fulfil its conditions.
    """

    stream: Node
    conditions: tuple[str, ...] = ()
    windows: Window | RowWindow | SessionWindow | None = None
    groups: tuple[Named, ...] = ()
    on_groups: tuple[str, ...] = ()
    retain: int = 0
    closes_by_source: bool = False
    share: float | None = None

    def __repr__(self) -> str:
        said = [f".where({condition!r})" for condition in (*self.conditions, *self.on_groups)]
        said += [] if self.share is None else [f".sample({self.share:g})"]
        if self.windows is not None:
            said.append(f" in {_spoken(self.windows, self.stream.time_kind is TimeKind.SEQUENCE)}")
        said += [f" by {', '.join(group.name for group in self.groups)}"] if self.groups else []
        return f"<not whole yet: {self.stream!r}{''.join(said)}; .agg(...) makes it a query, .select() rows>"

    def _over(self, windows: Window | RowWindow | SessionWindow, retain: int) -> QueryBuilder:
        """A copy with these windows; a second window is refused."""
        if self.windows is not None:
            raise DeclarationError(f"this query already has windows, {self.windows}: give them once")
        return replace(self, windows=windows, retain=retain)

    def closeBySource(self) -> QueryBuilder:  # noqa: N802
        """Let each group close with its own source, not with the slowest; the groups must tell the source.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> rows = pa.table({"t": [1, 12], "detector": ["A", "B"], "speed": [50, 60]})
        >>> asked = stream(rows, time="t", source="detector").window(10).groupBy("detector").closeBySource()
        >>> asked.agg(n="count(*)").plan.queries[0].by_source
        True
        """
        return replace(self, closes_by_source=True)

    def having(self, condition: Expression) -> QueryBuilder:
        """Keep only groups that fulfil a condition on aggregates, groups, and the names given in `agg`."""
        return replace(self, on_groups=(*self.on_groups, condition_text(condition, None, self._owner)))

    def agg(self, *aggregates: Expression | Mapping[str, str], **named: Expression) -> ContinuousQuery:
        """Compute aggregates: Columns, SQL text with or without AS, text under a name, or PySpark's `{"speed": "avg"}`.

        Without a name, a value is named by its own text, such as `avg(speed)`, as in PySpark.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> cars = stream(pa.table({"t": [1, 2], "speed": [50, 60]}), time="t")
        >>> found = cars.window(10).agg("max(speed) AS top", n="count(*)").run().to_pylist()
        >>> [(row["top"], row["n"]) for row in found]
        [(60, 2)]
        """
        windows = SameWindow() if self.windows is None and isinstance(self.stream, ContinuousQuery) else self.windows
        if windows is None:
            raise DeclarationError(
                "an aggregate over a stream never ends without a window: add .window('5 minutes', '1 minute'), "
                ".sessions('10 minutes') or .rows(100); or say how long its state lives, .stateTtl('1 day')"
            )
        edges = (WINDOW_START, WINDOW_END)
        columns = (*self._known, *(Column(name, "") for name in (*(group.name for group in self.groups), *edges)))
        select = [value for each in aggregates for value in self._values(each, columns)]
        select += [value_named(each, columns, self._owner, name) for name, each in named.items()]
        for condition in self.on_groups:
            known = (*columns, *(Column(value.name, "") for value in select))
            check_columns(parsed(condition, self._owner), known, self._owner)
        query = Query(
            UNNAMED,
            self.stream._name,
            windows,
            tuple(select),
            self.groups,
            _all_of(self.conditions),
            _all_of(self.on_groups),
            self.retain,
            sample=self.share,
            by_source=self.closes_by_source,
        )
        return ContinuousQuery(self.stream, query)

    def distinct(self) -> ContinuousQuery:
        """Give every group of a window once, without aggregates, like SELECT DISTINCT.

        >>> import pyarrow as pa
        >>> from eventide.api.stream import stream
        >>> doors = stream(pa.table({"t": [1, 2, 3], "door": ["A", "B", "A"]}), time="t")
        >>> sorted(doors.window(10).groupBy("door").distinct().run().column("door").to_pylist())
        ['A', 'B']
        """
        if not self.groups:
            raise DeclarationError("what is to be distinct? Name it: .groupBy('door').distinct()")
        return self.agg()

    def select(self, *columns: Expression, **expressions: Expression) -> EventRows:
        """Give rows with these columns: names, Columns, SQL text with AS or under a name; without any, all columns.

        Law: each row keeps its own time, and rows come in the order of time.
        """
        if self.windows is not None or self.groups or self.on_groups:
            raise DeclarationError("rows have no windows and no groups: leave them out, or ask for .agg(...)")
        select = [value_named(each, self._known, self._owner) for each in columns]
        select += [value_named(each, self._known, self._owner, name) for name, each in expressions.items()]
        level = self.stream._scope()
        chosen = None if self.share is None else sampled(level.stream, self.share)
        conditions = self.conditions if chosen is None else (*self.conditions, chosen)
        rows = Rows("", (self.stream._name,), tuple(select), _all_of(conditions))
        outputs = [(item.name, parsed(item.sql, self._owner)) for item in select] or level.all_columns
        shown = tuple(Column(name, level.type_of(expression)) for name, expression in outputs)
        return EventRows(rows, (self.stream,), shown, clock_of(list(outputs), level))

    def over(self, **values: str) -> EventRows:
        """Give rows with all their columns and, beside them, window functions: SQL text with OVER, by name."""
        if self.windows is not None or self.groups or self.on_groups or self.share is not None:
            raise DeclarationError("rows that meet others have no windows, groups and samples: leave them out")
        level = self.stream._scope()
        given = tuple(Named(name, sql) for name, sql in values.items())
        over = Over("", (self.stream._name,), (), _all_of(self.conditions), values=given)
        outputs = level.all_columns
        shown = tuple(Column(name, level.type_of(expression)) for name, expression in outputs)
        more = tuple(Column(name, "") for name in values)
        rows = EventRows(over, (self.stream,), (*shown, *more), clock_of(list(outputs), level))
        # Rows that wait for others of their group are put in the order of time again.
        return rows.select(*(column.name for column in rows.columns)) if over.awaits_rows else rows

    def dropDuplicates(self, *columns: str, within: Length | None = None) -> EventRows:  # noqa: N802
        """Give the first row of each value of these columns."""
        if not columns:
            raise DeclarationError("what makes rows duplicates? Name the columns: .dropDuplicates('id')")
        level = self.stream._scope()
        time = WINDOW_END if isinstance(level.stream, Derived) else level.stream.time
        if time is None:
            raise DeclarationError("duplicates are told in the order of time, and these rows have none yet")
        frame = ""
        if within is not None:
            long = length(within, level.stream.time_kind, "within") - 1
            numbers = level.stream.time_kind is TimeKind.SEQUENCE
            edge = str(long) if numbers else f"INTERVAL '{long}' MICROSECOND"
            frame = f" RANGE BETWEEN {edge} PRECEDING AND CURRENT ROW"
        groups = ", ".join(quoted(named(name, self._known, self._owner).name) for name in columns)
        number = f"row_number() OVER (PARTITION BY {groups} ORDER BY {quoted(time)}{frame})"
        kept = [name for name, _ in level.all_columns]
        return self.over(eventide_place=number).where("eventide_place = 1").select(*kept)

    def start(self, sink: GivenSink = None, checkpoint: str | PathLike[str] | None = None) -> RunningQuery:
        """Start a query that gives these rows, with all their columns."""
        return self.select().start(sink, checkpoint)

    def run(self) -> pa.Table:
        """Return these rows, of all that are there now."""
        return self.select().run()

    def _values(self, given: Expression | Mapping[str, str], columns: tuple[Column, ...]) -> list[Named]:
        if not isinstance(given, Mapping):
            return [value_named(given, columns, self._owner)]
        texts = [f"{function}({name if name == '*' else quoted(name)})" for name, function in given.items()]
        return [value_named(text, columns, self._owner) for text in texts]

    @property
    def _builder(self) -> QueryBuilder:
        return self

    @property
    def _read(self) -> EventRows:
        return self.select()

    @property
    def _known(self) -> tuple[Column, ...]:
        """The columns that conditions and groups may speak of."""
        return self.stream._scope().stream.columns

    @property
    def _owner(self) -> str:
        """Whose columns they are, in errors."""
        return f"{'query' if isinstance(self.stream, ContinuousQuery) else 'stream'} {self.stream._name!r}"


def _spoken(windows: Window | RowWindow | SessionWindow, unitless: bool) -> str:
    """Windows as one says them."""
    if isinstance(windows, LifeWindow):
        return f"no windows, state lives {'for ever' if windows.endless else spoken(windows.gap, unitless)}"
    if isinstance(windows, SessionWindow):
        return f"sessions with a gap of {windows.by or spoken(windows.gap, unitless)}"
    unitless = unitless or isinstance(windows, RowWindow)
    return f"windows of {spoken(windows.range, unitless)} every {spoken(windows.slide, unitless)}"


def _all_of(conditions: tuple[str, ...]) -> str | None:
    """One condition as it was written; several, joined."""
    if len(conditions) < 2:
        return conditions[0] if conditions else None
    return " AND ".join(f"({condition})" for condition in conditions)
