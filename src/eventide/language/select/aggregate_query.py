"""Read a SELECT with aggregates as a `Query`, with its ORDER BY.

Law: each column of the result is a group, or an expression over aggregates and groups. Groups come first. What is
grouped by is in the result whether it is selected or not. An expression over groups alone is one more group: it has one
value in each.

*ORDER BY* orders the results within a window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.errors import DeclarationError, LanguageError
from eventide.language.from_clause.from_clause import FromReader
from eventide.language.from_clause.window_calls import MARKS, marked_edges, unmarked
from eventide.language.grammar.source_text import SourceText
from eventide.language.scope.expression_text import (
    all_of,
    column_of,
    has_aggregate,
    inside_aggregates,
    meant_aggregate,
    name_for,
    spark_text,
    unused,
    wrapped,
)
from eventide.language.scope.scope import TIME, Clock, Scope
from eventide.language.select.group_by import Group, GroupReader, refuse_over
from eventide.language.select.query_windows import WindowReader
from eventide.plan.bound.window_edges import edges_of
from eventide.plan.declared.query import Named, OrderBy, Query
from eventide.plan.declared.stream import WINDOW_END, WINDOW_START, TimeKind
from eventide.plan.declared.window import AnyWindow, GrowingWindow, RowWindow, SameWindow, SessionWindow, Window
from eventide.plan.expressions.columns import Column


@dataclass(frozen=True)
class OrderReader:
    """Reads ORDER BY; numbers in it are places of the SELECT, as in Spark."""

    source: SourceText

    def read(self, select: exp.Select, over_results: Callable[[exp.Expr], exp.Expr]) -> tuple[OrderBy, ...]:
        """What to order by; `over_results` gives an expression over the result's columns and aggregates."""
        order = select.args.get("order")
        if order is None:
            return ()
        # All results of a window have its ends, and windows are emitted one after the other anyway.
        resolved = [ordered for ordered in order.expressions if not _is_end(ordered.this, ordered)]
        return tuple(self._one(ordered, select, over_results) for ordered in resolved)

    def _one(self, ordered: exp.Expr, select: exp.Select, over_results: Callable[[exp.Expr], exp.Expr]) -> OrderBy:
        if not isinstance(ordered, exp.Ordered) or ordered.args.get("with_fill"):
            raise self.source.error("this order cannot be read", ordered)
        inner = ordered.this
        if isinstance(inner, exp.Literal) and inner.name.isdigit():
            if not 1 <= int(inner.name) <= len(select.expressions):
                raise self.source.error(f"there is no column number {inner.name} in this SELECT", inner)
            chosen = select.expressions[int(inner.name) - 1]
            inner = chosen.this if isinstance(chosen, exp.Alias) else chosen
        down = bool(ordered.args.get("desc"))
        return OrderBy(spark_text(over_results(inner)), down, bool(ordered.args.get("nulls_first")))


def _is_end(node: exp.Expr, ordered: exp.Expr) -> bool:
    """Whether this is an end of the window, in the order in which windows are emitted."""
    named = isinstance(node, exp.Column) and len(node.parts) == 1 and node.name.lower() in (WINDOW_START, WINDOW_END)
    return named and not ordered.args.get("desc")


@dataclass
class QueryDraft:
    """A query while it is read."""

    level: Scope
    groups: list[Group]
    values: list[Named] = field(default_factory=list)

    @property
    def used(self) -> list[str]:
        """The names that are given."""
        return [*(group.name for group in self.groups), *(value.name for value in self.values)]

    def name(self, named: str, expression: exp.Expr) -> str:
        """The given name, for which a group that nobody named makes room; without one, a name that is free."""
        for group in self.groups:
            if named and group.name.lower() == named.lower() and not group.named:
                group.name, group.named = unused(named, self.used), True
        return named or unused(name_for(expression), self.used)

    def select_group(self, group: Group, named: str) -> None:
        """A group that is selected under another name has that name; a second one is a group more."""
        if not named or named == group.name:
            return
        if group.named:
            self.groups.append(Group(named, group.expression, group.written, True))
        else:
            group.name, group.named = named, True


@dataclass(frozen=True)
class QueryReader:
    """Reads the SELECT of one query."""

    source: SourceText
    origin: FromReader

    def read(self, name: str, select: exp.Select, level: Scope) -> tuple[Query, tuple[Column, ...], Clock]:
        """The query, its columns, and which of them carry time."""
        self._check_rows(select)
        by = GroupReader(self.source, self.origin)
        groups = by.read(select, level)
        reading = QueryDraft(level, groups.found)
        for item in select.expressions:
            if not by.is_window(item, level):
                self._take_item(item, reading)
        having = self._having(select, reading)
        order = OrderReader(self.source).read(select, lambda e: self._over_results(e, reading))
        below = level.below.query if level.below is not None else None
        asked = WindowReader(
            self.source,
            level.stream,
            level.times,
            self.origin.state,
            below,
            lambda e: self.origin.spelled_out(e, level),
            tuple(group.expression for group in groups.found),
        ).read(level.window, groups.buckets, select)
        try:
            query = Query(
                name,
                level.stream.name,
                asked.window,
                tuple(reading.values),
                tuple(Named(group.name, spark_text(group.expression)) for group in reading.groups),
                where=all_of(level.where),
                having=having,
                retain=asked.retain,
                order=order,
                limit=self._limit(select),
                sample=level.sample,
            )
        except LanguageError:
            raise
        except DeclarationError as error:
            raise self.source.error(str(error), _blamed(str(error), select)) from error
        columns = [Column(group.name, level.type_of(group.expression)) for group in reading.groups]
        columns += [Column(value.name, "") for value in reading.values]
        return query, tuple(columns), clock_of_results(query, level, reading.groups)

    def _check_rows(self, select: exp.Select) -> None:
        refuse_over(select, self.source)
        for item in select.expressions:
            if item.is_star:
                raise self.source.error(
                    "* is every column of a row, and a window has many rows", item, "select aggregates"
                )
        distinct = select.args.get("distinct")
        aggregates = any(has_aggregate(item) for item in select.expressions)
        if distinct is not None and (aggregates or distinct.args.get("on")):
            raise self.source.error(
                "DISTINCT over aggregates cannot be run yet", select, "without DISTINCT each group comes once"
            )

    def _limit(self, select: exp.Select) -> int | None:
        limit = select.args.get("limit")
        if limit is None:
            return None
        number = limit.expression if isinstance(limit, exp.Limit) else None
        if not isinstance(number, exp.Literal) or not number.name.isdigit() or int(number.name) < 1:
            raise self.source.error("expected LIMIT and a number, 1 or more", limit)
        return int(number.name)

    def _take_item(self, item: exp.Expr, reading: QueryDraft) -> None:
        """A selected column: a group, an expression over groups, or one over aggregates."""
        named = item.alias if isinstance(item, exp.Alias) else ""
        inner = item.this if isinstance(item, exp.Alias) else item
        names = {group.name.lower(): group for group in reading.groups}
        if isinstance(inner, exp.Column) and not inner.table and inner.name.lower() in names:
            reading.select_group(names[inner.name.lower()], named)
            return
        marked = marked_edges(inner, reading.level)
        expression = self.origin.spelled_out(marked, reading.level, (*names, *MARKS))
        of_window = any(column.name in MARKS for column in expression.find_all(exp.Column))
        if (same := next((group for group in reading.groups if group.is_same(expression)), None)) is not None:
            reading.select_group(same, named)
            return
        resolved = self._over_groups(expression.copy(), reading)
        self._check_grouped(resolved, [*names, *MARKS])
        if has_aggregate(expression) or of_window:
            reading.values.append(Named(reading.name(named, inner), spark_text(unmarked(resolved))))
        else:
            spelled = _over_stream(resolved, reading)
            reading.groups.append(Group(reading.name(named, inner), spelled, spelled, True))

    def _over_groups(self, expression: exp.Expr, reading: QueryDraft) -> exp.Expr:
        """Groups outside aggregates go by their names."""
        inside = inside_aggregates(expression)
        root = exp.Paren(this=expression)
        for node in list(root.walk()):
            if id(node) in inside or node is root:
                continue
            group = next((group for group in reading.groups if group.is_same(node)), None)
            if group is not None and node.parent is not None:
                name = column_of(group.name)
                name.meta.update(node.meta)
                node.replace(name)
        result = root.this
        result.pop()
        return result  # type: ignore[no-any-return]

    def _check_grouped(self, resolved: exp.Expr, names: list[str]) -> None:
        """Outside aggregates there are only names of groups."""
        inside = inside_aggregates(resolved)
        for column in resolved.find_all(exp.Column):
            if id(column) in inside or column.name.lower() in names:
                continue
            call = column.find_ancestor(exp.Anonymous)
            close = meant_aggregate(call.name) if call is not None else None
            raise self.source.error(
                f"{column.name!r} is neither in an aggregate nor a group",
                column,
                f"{call.name} is no aggregate: did you mean {close}?"
                if call is not None and close is not None
                else f"add it to GROUP BY, or take max({column.name}) or another aggregate",
            )

    def _having(self, select: exp.Select, reading: QueryDraft) -> str | None:
        having = select.args.get("having")
        if having is None:
            return None
        return spark_text(self._over_results(having.this, reading))

    def _over_results(self, expression: exp.Expr, reading: QueryDraft) -> exp.Expr:
        """An expression over aggregates and the names of the result's columns."""
        marked, known = marked_edges(expression, reading.level), (*reading.used, *MARKS)
        resolved = self._over_groups(self.origin.spelled_out(marked, reading.level, known), reading)
        self._check_grouped(resolved, [name.lower() for name in known])
        return unmarked(resolved)


def clock_of_results(query: Query, level: Scope, groups: list[Group]) -> Clock:
    """Which columns of the results carry time: the ends of windows, and groups that are the same all through a window.

    The time of a result is the last instant of its window.
    """
    window = query.window
    kind = TimeKind.SEQUENCE if isinstance(window, RowWindow) else level.clock.kind
    carried: dict[str, exp.Expr] = {WINDOW_END: exp.column(TIME)}
    renamed = edges_of(query)
    if isinstance(window, SessionWindow):
        return Clock(kind, carried | {name.lower(): exp.column(TIME) for name in renamed})
    if isinstance(window, SameWindow):
        carried |= {e: resolved for e, resolved in level.clock.carried.items() if e == WINDOW_START}
    else:
        # Of windows that grow only the ends are regular.
        length = None if isinstance(window, GrowingWindow) else _length(window.range, kind)
        carried |= {} if length is None else {WINDOW_START: exp.Sub(this=exp.column(TIME), expression=length)}
    carried |= {name.lower(): carried[edge].copy() for name, edge in renamed.items() if edge in carried}
    follow: dict[str, exp.Expr] = {}
    for group in groups:
        resolved = group.carries or group.follows
        if resolved is not None and not isinstance(window, RowWindow):
            exact = group.carries is not None and _is_same_all_through(window, group)
            (carried if exact else follow)[group.name.lower()] = resolved
    return Clock(kind, carried, follow)


def _is_same_all_through(window: AnyWindow, group: Group) -> bool:
    if isinstance(window, SameWindow):
        return True
    if not isinstance(window, Window) or group.bucket is None or window.slide < window.range:
        return False
    # Windows with gaps between them are all the shorter.
    width, offset = group.bucket.width, group.bucket.offset
    return width % window.slide == 0 and (offset - window.offset) % window.slide == 0


def _length(length: int, kind: TimeKind) -> exp.Expr:
    if kind is TimeKind.SEQUENCE:
        return exp.Literal.number(length)
    return exp.Interval(this=exp.Literal.string(str(length)), unit=exp.Var(this="MICROSECOND"))


def _over_stream(resolved: exp.Expr, reading: QueryDraft) -> exp.Expr:
    """An expression over names of groups, over the columns of the stream instead."""
    names = {group.name.lower(): group.expression for group in reading.groups}

    def spelled(node: exp.Expr) -> exp.Expr:
        known = names.get(node.name.lower()) if isinstance(node, exp.Column) and not node.table else None
        return wrapped(known.copy()) if known is not None else node

    return resolved.transform(spelled)


def _blamed(message: str, select: exp.Select) -> exp.Expr:
    """The selected column that an error speaks of, or the whole query."""
    group = select.args.get("group")
    items = (*select.expressions, *(group.expressions if group is not None else ()))
    return next((e for e in items if e.alias_or_name and f"'{e.alias_or_name}'" in message), select)
