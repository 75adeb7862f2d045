"""A query bound to its stream: every name checked, every aggregate split into what its slices keep.

Law: a slice holds, for one pane and one group, the partials of the rows that fell into it; where an aggregate has no
partials, the slices of the whole query keep its rows instead. Both are merged by the same words (`merge_text`).

Column names inside a slice: `__pane`, `__k0`, `__k1`, ... for the groups, `__p0_...` for partials, `__n` for the number
of rows; kept rows have the stream's own names and `__t`, the time."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.plan.bound.aggregates import of_one_row, over_rows, split_together
from eventide.plan.bound.session_gap import check_gap, gap_sql
from eventide.plan.bound.window_edges import EDGES, IN_RESULTS, edges_of, items_with_edges
from eventide.plan.declared.query import Named, Query
from eventide.plan.declared.rows import sampled
from eventide.plan.declared.stream import WINDOW_END, WINDOW_START, Derived, Least, Stream, TimeKind
from eventide.plan.declared.temporal import least_of
from eventide.plan.declared.window import RowWindow, SameWindow, SessionWindow, Window
from eventide.plan.expressions.aggregate_call import Partial, Split, call_from, order_key
from eventide.plan.expressions.columns import Column, quoted
from eventide.plan.expressions.parse import aggregates_in, check_columns, columns_in, outside_aggregates, parsed
from eventide.plan.expressions.spark_dialect import SPARK

HAVING = "__having"
ORDER = "__order"
"""What results are ordered by is computed beside them, as `__order0`, `__order1`, ..."""

EVERY_ROW = "count(*)"
OF_A_COLUMN = re.compile(r"\w+\(`?\w+`?\)")
ROWS = "__rows"
"""The number of rows that went into a result; every slice counts its rows, so COUNT(*) needs no partial."""

TypeOf = Callable[[str], str]
"""The Spark type of an expression over the columns of the stream, aggregates included."""


@dataclass(frozen=True)
class Key:
    """A group column: its name in results, its expression over the stream, its type."""

    name: str
    sql: str
    type: str


@dataclass(frozen=True)
class BoundQuery:
    """What the engine needs to know of a query.

    `values` are the output columns and, under the names `__having` and `__order0`, ..., the condition and what is
    ordered by; each over merged partials, or, with `kept` columns, each an aggregate over rows. `checks` must hold for
    a value not to be reported as lost.
    """

    query: Query
    stream: Stream
    keys: tuple[Key, ...]
    partials: tuple[Partial, ...]
    kept: tuple[Column, ...]
    values: tuple[Named, ...]
    types: tuple[str, ...]
    checks: tuple[tuple[str, str], ...]
    driver_exact: bool
    fail_safe: bool = False
    """Whether its condition leaves out rows that would break it (`broken.fail_safe`)."""
    operator: str | None = None
    """The operator whose port it is, if it is one (`plan.bound.rows.port`)."""

    @property
    def keeps_rows(self) -> bool:
        """Whether slices keep rows instead of partials."""
        return bool(self.kept)

    @property
    def windows(self) -> Window:
        """The windows that are shown: over time, or over the numbers of rows."""
        window = self.query.window
        if isinstance(window, SameWindow):
            assert isinstance(self.stream, Derived)
            return self.stream.windows
        if isinstance(window, SessionWindow):
            return window.over_instants
        return window.over_numbers if isinstance(window, RowWindow) else window

    @property
    def panes(self) -> Window:
        """The windows over what slices are cut by: time, or the numbers of rows."""
        window = self.query.window
        return window.over(self.windows) if isinstance(window, SameWindow) else self.windows

    @property
    def by_panes(self) -> bool:
        """Whether its slices hold partials of panes: no rows, and no stretches of sessions."""
        return not self.keeps_rows and not self.of_sessions

    @property
    def of_sessions(self) -> bool:
        """Whether its windows are the sessions of its groups."""
        return isinstance(self.query.window, SessionWindow)

    @property
    def has_own_gaps(self) -> bool:
        """Whether each row says for itself how long its session goes on."""
        return isinstance(self.query.window, SessionWindow) and self.query.window.by is not None

    @cached_property
    def gap(self) -> str | None:
        """For a row, how long after it its session goes on, as SQL of a whole number; None without sessions."""
        window = self.query.window
        return gap_sql(window, self.stream.time_kind) if isinstance(window, SessionWindow) else None

    @property
    def result_key(self) -> tuple[str, ...]:
        """The columns by which a result takes the place of an earlier one: of values that change, the groups alone."""
        groups = tuple(key.name for key in self.keys)
        return (groups or ("query",)) if self.query.changes else (WINDOW_START, WINDOW_END, *groups)

    @property
    def window_kind(self) -> TimeKind:
        """What the edges of its windows are: times, or numbers of rows."""
        return TimeKind.SEQUENCE if isinstance(self.query.window, RowWindow) else self.stream.time_kind

    @property
    def outputs(self) -> tuple[Column, ...]:
        """The user's columns of a result: groups, then values."""
        values = (Column(v.name, t) for v, t in zip(self.values, self.types, strict=True) if shown(v))
        return (*(Column(key.name, key.type) for key in self.keys), *values)

    @property
    def orders(self) -> tuple[Column, ...]:
        """What results are ordered by: the names of these values, and their types."""
        both = zip(self.values, self.types, strict=True)
        return tuple(Column(v.name, t) for v, t in both if v.name.startswith(ORDER))

    @property
    def results(self) -> Derived:
        """Its results as a stream for the queries that read it."""
        carries: list[tuple[str, Least | None]] = []
        if not isinstance(self.query.window, RowWindow | SessionWindow):
            # When a session began is known by no heartbeat: late rows may still come before its first one.
            window = self.windows
            carries.append((WINDOW_START, window.start_of_end))
            carries += ((name, _from_start(least, window)) for name, least in self.carried.items())
        if not isinstance(self.query.window, RowWindow):
            leasts: dict[str, Least] = {WINDOW_START: self.windows.start_of_end, WINDOW_END: lambda t: t + 1}
            carries += ((name, leasts[edge]) for name, edge in self.edges.items())
        return Derived.of(self.query.name, self.outputs, self.window_kind, self.windows, tuple(carries))

    @cached_property
    def edges(self) -> dict[str, str]:
        """The values that are an edge of the window, and which."""
        return edges_of(self.query)

    @cached_property
    def carried(self) -> dict[str, Least]:
        """The groups that carry time: what each has at least for a row of a time."""
        found = ((key.name, least_of(key.sql, self.stream)) for key in self.keys)
        return {name: least for name, least in found if least is not None}

    @property
    def display_name(self) -> str:
        """The name by which users know it: that of the operator, for a port."""
        return self.operator or self.query.name


def _from_start(least: Least, window: Window) -> Least:
    return lambda t: least(window.start_of_end(t))


def shown(value: Named) -> bool:
    """Whether a value is a column of the results."""
    return value.name != HAVING and not value.name.startswith(ORDER)


def bind(query: Query, stream: Stream, type_of: TypeOf) -> BoundQuery:
    """Check a query against its stream and split it."""
    owner = f"query {query.name!r}, stream {stream.name!r}"
    if isinstance(query.window, SessionWindow) and query.window.by is not None:
        _checked(query.window.by, f"the gap of query {query.name!r}", stream, owner)
        check_gap(query.window.by, stream, type_of, f"query {query.name!r}")
    if query.where is not None:
        condition = _checked(query.where, f"the WHERE of query {query.name!r}", stream, owner)
        if aggregates_in(condition):
            raise DeclarationError(f"query {query.name!r}: WHERE sees single rows; put {query.where!r} into HAVING")
        if (found := type_of(query.where)) not in ("BOOLEAN", "VOID"):
            raise DeclarationError(f"query {query.name!r}: WHERE {query.where!r} is {found}, not a condition")
    if query.sample is not None:
        sampled(stream, query.sample)
    keys = []
    for group in query.groups:
        expression = _checked(group.sql, f"the group {group.name!r} of query {query.name!r}", stream, owner)
        if aggregates_in(expression):
            raise DeclarationError(f"query {query.name!r} cannot group by the aggregate {group.sql!r}")
        kind = type_of(group.sql)
        if "MAP<" in kind or kind == "VARIANT":
            raise DeclarationError(f"query {query.name!r} cannot group by {group.name!r}: {kind} values do not compare")
        keys.append(Key(group.name, group.sql, kind))
    items = _items(query, stream, owner)
    groups = {f"__k{j}": key.sql for j, key in enumerate(keys)}
    known = _knowing_groups(type_of, groups | dict.fromkeys(IN_RESULTS.values(), "CAST(NULL AS BIGINT)"))
    time = time_sql(stream)
    splits = split_together("__p", [_without_groups(item.sql, query) for item in items], known, time)
    reducible = [s for s in splits if s is not None]
    if not isinstance(query.window, RowWindow) and len(reducible) == len(splits):
        bound = _reducible(query, stream, tuple(keys), items, tuple(s.type for s in reducible), reducible)
    else:
        bound = _row_keeping(query, stream, tuple(keys), items, known)
    for one, value in zip(query.order, bound.orders, strict=True):
        if order_key(value.name, value.type) is None:
            raise DeclarationError(
                f"query {query.name!r} cannot order by {one.sql!r}: values of {value.type} do not compare"
            )
    return bound


def inside_aggregates(query: Query) -> tuple[str, ...]:
    """What the aggregates of a query are given and filter by, as far as it can be read; not columns that stand alone.

    >>> from eventide.plan.declared.query import named_as
    >>> inside_aggregates(Query("q", "s", Window(1), named_as(x="sum(v + 1) FILTER (WHERE ok) / count(*)", n="max(w)")))
    ('v + 1', 'ok')
    """
    found: dict[str, None] = {}
    for sql in [*(item.sql for item in query.select), *(one.sql for one in query.order), query.having or "NULL"]:
        if OF_A_COLUMN.fullmatch(sql) is not None:
            continue
        try:
            calls = [call_from(call) for call in aggregates_in(parsed(sql, "a selected expression"))]
        except DeclarationError:
            continue
        found |= dict.fromkeys(text for call in calls for text in (*call.arguments, call.where or "*") if text != "*")
    return tuple(found)


def _knowing_groups(type_of: TypeOf, groups: dict[str, str]) -> TypeOf:
    """Types of expressions in which groups go by their names in a slice."""

    def known(sql: str) -> str:
        kind = type_of(re.sub(r"`?(__k\d+|__start|__end)`?", lambda found: f"({groups.get(found[1], found[1])})", sql))
        if kind == "VOID":
            raise DeclarationError(f"nothing tells the type of {sql}: write CAST(NULL AS INT) for a NULL")
        return kind

    return known


def _checked(sql: str, what: str, stream: Stream, owner: str) -> exp.Expression:
    expression = parsed(sql, what)
    check_columns(expression, stream.columns, owner)
    return expression


def _items(query: Query, stream: Stream, owner: str) -> tuple[Named, ...]:
    """What is selected, the condition on groups, and what is ordered by: aliases stand for what they name."""
    extra = tuple(Column(group.name, "") for group in query.groups)
    items = list(query.select)
    if query.having is not None:
        items.append(Named(HAVING, _spelled_out(query.having, f"the HAVING of query {query.name!r}", query)))
    for place, one in enumerate(query.order):
        if parsed(one.sql, f"the order of query {query.name!r}").find(exp.Column, exp.Star) is None:
            raise DeclarationError(
                f"query {query.name!r} cannot order by {one.sql!r}, which is the same for all results: "
                "name a column of them, or an aggregate"
            )
        items.append(Named(f"{ORDER}{place}", _spelled_out(one.sql, f"the order of query {query.name!r}", query)))
    items = items_with_edges(items, query, stream)
    known = {column.name.lower() for column in (*extra, *EDGES)}
    for place, item in enumerate(items):
        expression = parsed(item.sql, f"{item.name!r} of query {query.name!r}")
        check_columns(expression, (*stream.columns, *extra, *EDGES), owner)
        outside = outside_aggregates(expression)
        of_window = any(column.name in IN_RESULTS.values() for column in outside)
        if not aggregates_in(expression) and place < len(query.select) and not of_window:
            raise DeclarationError(f"query {query.name!r}: {item.sql!r} is no aggregate; put it into the groups")
        for column in outside:
            if column.name.lower() not in known:
                raise DeclarationError(
                    f"query {query.name!r}: {column.name!r} in {item.sql!r} is neither in an aggregate nor a group"
                )
    return tuple(items)


def _spelled_out(sql: str, what: str, query: Query) -> str:
    """The expression with the selected expressions in the place of their names."""
    aliases = {item.name.lower(): item.sql for item in query.select}
    whole = exp.Paren(this=parsed(sql, what))
    for column in outside_aggregates(whole):
        known = None if column.table else aliases.get(column.name.lower())
        if known is not None:
            column.replace(exp.paren(parsed(known, "an alias")))
    return str(whole.this.sql(SPARK))


def _without_groups(sql: str, query: Query) -> str:
    """The expression with group names outside aggregates replaced by the columns of a slice."""
    places = {group.name.lower(): i for i, group in enumerate(query.groups)}
    expression = parsed(sql, "a selected expression")
    whole = exp.Paren(this=expression)
    for column in outside_aggregates(whole):
        if column.name.lower() in places:
            column.replace(exp.column(f"__k{places[column.name.lower()]}"))
    return str(whole.this.sql(SPARK))


def _reducible(
    query: Query,
    stream: Stream,
    keys: tuple[Key, ...],
    items: tuple[Named, ...],
    types: tuple[str, ...],
    splits: list[Split],
) -> BoundQuery:
    """Partials that several values share are kept once."""
    partials: list[Partial] = []
    values: list[Named] = []
    checks: list[tuple[str, str]] = []
    known: dict[tuple[str, str], str] = {}
    for item, part in zip(items, splits, strict=True):
        renamed: dict[str, str] = {}
        kept: list[Partial] = []
        for partial in part.partials:
            identity = (partial.reduce, _renamed(partial.merge, {partial.name: "_"}))
            if partial.reduce == EVERY_ROW:
                renamed[partial.name] = ROWS
            elif not partial.over and identity in known:
                renamed[partial.name] = known[identity]
            else:
                known.setdefault(identity, partial.name)
                kept.append(partial)
        # A partial that is kept may speak of one of its own value that is shared.
        partials += (replace(p, merge=_renamed(p.merge, renamed), over=_renamed_over(p, renamed)) for p in kept)
        values.append(Named(item.name, _renamed(part.value, renamed)))
        checks.extend((_renamed(condition, renamed), reason) for condition, reason in part.checks)
    exact = all(part.driver_exact for part in splits)
    return BoundQuery(query, stream, keys, tuple(partials), (), tuple(values), types, tuple(checks), exact)


def _renamed(sql: str, names: dict[str, str]) -> str:
    return re.sub(r"__p\w+", lambda found: names.get(found.group(), found.group()), sql)


def _renamed_over(partial: Partial, names: dict[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple((name, _renamed(sql, names)) for name, sql in partial.over)


def _row_keeping(
    query: Query, stream: Stream, keys: tuple[Key, ...], items: tuple[Named, ...], type_of: TypeOf
) -> BoundQuery:
    wanted = {name.lower() for item in items for name in columns_in(parsed(item.sql, "a selected expression"))}
    wanted -= {group.name.lower() for group in query.groups} - {column.name.lower() for column in stream.columns}
    kept = tuple(column for column in stream.columns if column.name.lower() in wanted) or stream.columns[:1]
    spelled = [_without_groups(item.sql, query) for item in items]
    splits = of_one_row(lambda chosen: [over_rows(sql, type_of, "__t", stream.columns, chosen) for sql in spelled])
    values = tuple(Named(item.name, one.value) for item, one in zip(items, splits, strict=True))
    checks = tuple(dict.fromkeys(check for one in splits for check in one.checks))
    exact = all(one.driver_exact for one in splits)
    return BoundQuery(query, stream, keys, (), kept, values, tuple(one.type for one in splits), checks, exact)


def time_sql(stream: Stream) -> str:
    """The time of a row as int64, in Spark SQL; internal and latent times are the round's, so 0 is as good as any."""
    if stream.time is None:
        return "CAST(0 AS BIGINT)"
    instant = instant_sql(stream.time, stream.column(stream.time).type)
    # Windows are half-open: the last instant of a window is the one before its end.
    return f"({instant} - 1)" if isinstance(stream, Derived) else instant


def instant_sql(name: str, kind: str) -> str:
    """A column that tells a time, as int64.

    >>> instant_sql("ts", "TIMESTAMP"), instant_sql("n", "INT")
    ('unix_micros(`ts`)', 'CAST(`n` AS BIGINT)')
    """
    return instant_of(quoted(name), kind)


def instant_of(sql: str, kind: str) -> str:
    """An expression that tells a time, or a whole number, as int64.

    >>> instant_of("day", "DATE")
    '(CAST(unix_date(day) AS BIGINT) * 86400000000)'
    """
    if kind == "TIMESTAMP":
        return f"unix_micros({sql})"
    if kind == "TIMESTAMP_NTZ":
        return f"unix_micros(CAST({sql} AS TIMESTAMP))"
    if kind == "DATE":
        return f"(CAST(unix_date({sql}) AS BIGINT) * 86400000000)"
    return f"CAST({sql} AS BIGINT)"
