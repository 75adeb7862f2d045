"""GROUP BY and the window of a query: from brackets, from Spark's `window(...)`, or from a stretch of time.

Laws. *Groups*: a group is a column, an expression, `expression AS name`, or a selected column by its name or number.
DISTINCT and ALL group by everything that is selected and no aggregate. Gigascope's `time/60` counts stretches in whole
numbers. *Window*: a query closes. It has a window over time or over a count of rows, or a group that is one stretch of
time after the other (`time/60 AS tb`, `date_trunc('minute', ts)`), or it reads a query and takes over its windows. An
aggregate with none of them is refused, because no heartbeat could ever say that it is complete. `GROUP BY window(ts,
'5 minutes', '1 minute')` means the same as `[RANGE 5 minutes SLIDE 1 minute]` behind the stream; `window.start` and
`window.end` are `window_start` and `window_end`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.errors import DeclarationError
from eventide.language.expression_text import has_aggregate, name_for, spark_text, unused
from eventide.language.from_clause import FromReader
from eventide.language.grammar.nodes import IN_WINDOWS, Amount, Amounts, Clause, StreamWindow
from eventide.language.grammar.source_text import SourceText
from eventide.language.grammar.spelling import instead_of, meant, nearest, window_function_in
from eventide.language.scope import Scope
from eventide.language.time_buckets import rounded_down
from eventide.language.window_calls import called_window, is_part_of_window, is_window_call
from eventide.plan.bound.session_gap import gap_number
from eventide.plan.declared.join import Join
from eventide.plan.declared.program import Step
from eventide.plan.declared.query import Query
from eventide.plan.declared.stream import Stream, Timestamps
from eventide.plan.declared.temporal import FIXED, Bucket, Temporal, truncated
from eventide.plan.declared.window import TUMBLING, AnyWindow, RowWindow, SameWindow, SessionWindow, Window
from eventide.plan.expressions.parse import WINDOWS, refused_call


@dataclass
class Group:
    """A group while it is read: its name, and its expression over the columns of the stream."""

    name: str
    expression: exp.Expr
    written: exp.Expr
    """As it was written, over the columns of the stream: it may be selected in these words."""

    named: bool = False
    """Whether somebody gave the name."""

    carries: exp.Expr | None = None
    """How it is computed from time, in words whose way with time is known; None where something else is in it."""

    follows: exp.Expr | None = None
    """The same where it follows time, and is not computed from that of the row itself."""

    bucket: Bucket | None = None
    """The stretches of time that it is made of, where they are all equally long."""

    def is_same(self, expression: exp.Expr) -> bool:
        """Whether an expression over the columns of the stream is this group."""
        return bool(expression == self.expression or expression == self.written)


@dataclass
class Groups:
    """The groups of a query, and those of their stretches of time that are all equally long."""

    found: list[Group] = field(default_factory=list)
    buckets: list[Bucket] = field(default_factory=list)


@dataclass(frozen=True)
class GroupReader:
    """Reads the groups of a query from GROUP BY."""

    source: SourceText
    origin: FromReader

    def read(self, select: exp.Select, level: Scope) -> Groups:
        """The groups of a SELECT."""
        groups = Groups()
        for item in self._written(select):
            if self.is_window(item, level):
                continue
            group = self._group(item, select, level)
            # The groups of a query over a query make no windows: those are the ones below, unless it says otherwise.
            if group.bucket is not None and level.over_query is None:
                groups.buckets.append(group.bucket)
            if any(group.expression == other.expression and group.name == other.name for other in groups.found):
                continue
            used = [other.name for other in groups.found]
            group.name = group.name if group.named else unused(group.name, used)
            groups.found.append(group)
        return groups

    def is_window(self, node: exp.Expr, level: Scope) -> bool:
        """Whether this is the window or one of its ends, which are in every result; Spark's `window` is taken."""
        call = node.this if isinstance(node, exp.Alias) else node
        if isinstance(call, exp.Column) and not call.table and call.name.lower() not in level.columns:
            select = node.find_ancestor(exp.Select)
            named = {item.alias.lower(): item.this for item in select.expressions} if select is not None else {}
            call = named.get(call.name.lower(), call)
        if is_window_call(call):
            if level.called is None and level.window is None:
                level.window, level.called = called_window(call, level, self.origin, self.source), call
            if call != level.called:
                raise self.source.error("a query has one window, and this is its second", call)
            return True
        return is_part_of_window(node, level.columns) or _is_edge(node, level)

    def _written(self, select: exp.Select) -> list[exp.Expr]:
        group = select.args.get("group") or exp.Group(all=select.args.get("distinct") is not None)
        for key in ("cube", "rollup", "grouping_sets", "totals"):
            if group.args.get(key):
                raise self.source.error(f"{key.upper()} cannot be run yet", group, "write one query for each")
        if group.args.get("all"):
            return [item for item in select.expressions if not has_aggregate(item) and not item.is_star]
        return list(group.expressions)

    def _group(self, item: exp.Expr, select: exp.Select, level: Scope) -> Group:
        named = item.alias if isinstance(item, exp.Alias) else ""
        inner = item.this if isinstance(item, exp.Alias) else item
        aliases = {e.alias.lower(): e.this for e in select.expressions if isinstance(e, exp.Alias)}
        if isinstance(inner, exp.Cube | exp.Rollup | exp.GroupingSets | exp.Tuple):
            raise self.source.error("sets of groups cannot be run yet", inner, "write one query for each")
        if isinstance(inner, exp.Literal) and not inner.is_string:
            chosen = self._numbered(inner, select)
            named = named or chosen.alias
            inner = chosen.this if isinstance(chosen, exp.Alias) else chosen
        elif _is_alias(inner, aliases, level):
            named, inner = named or inner.name, aliases[inner.name.lower()]
        if has_aggregate(inner):
            raise self.source.error("an aggregate cannot be a group", inner, "put its condition into HAVING")
        written = self.origin.spelled_out(inner, level)
        name = named or (inner.name if isinstance(inner, exp.Column) else name_for(inner))
        return _in_stretches(Group(name, written, written, bool(named)), level)

    def _numbered(self, number: exp.Literal, select: exp.Select) -> exp.Expr:
        place = int(number.name) if number.name.isdigit() else 0
        if not 1 <= place <= len(select.expressions):
            raise self.source.error(f"there is no column number {number.name} in this SELECT", number)
        chosen: exp.Expr = select.expressions[place - 1]
        return chosen


def _is_edge(node: exp.Expr, level: Scope) -> bool:
    """Whether this is the start or end of the query's own window, which is in every result."""
    edge = isinstance(node, exp.Column) and not node.table and node.name.lower() in ("window_start", "window_end")
    if level.over_query is not None:
        return edge and level.window is None
    return edge and (level.below is not None or node.name.lower() not in level.columns)


def _is_alias(node: exp.Expr, aliases: dict[str, exp.Expr], level: Scope) -> bool:
    """Whether a group is the name of a selected column; a column of the stream comes first, as in Spark."""
    name = node.name.lower() if isinstance(node, exp.Column) and not node.table else ""
    return name in aliases and name not in level.columns


def _in_stretches(group: Group, level: Scope) -> Group:
    """The group as it is computed, and what it has to do with time."""
    node = group.written.unnest()
    if level.over_query is None:
        group.expression = node = rounded_down(node, level)
    return with_time(group, node, level)


def with_time(group: Group, node: exp.Expr, level: Scope) -> Group:
    """The group, which knows now how `node`, by which it is computed, depends on time."""
    found = level.clock.of(node)
    if found is not None:
        group.carries, group.bucket = level.clock.over_time(node), found.bucket
    elif level.clock.of(node, following=True) is not None:
        group.follows = level.clock.over_time(node, following=True)
    return group


COUNTED = ("ROWS", "TUPLES", "COUNT")
"""What WATTR may name for a window over a count of rows."""


@dataclass
class WindowRequest:
    """What a query asks of its window."""

    window: AnyWindow
    retain: int = 0
    policy: dict[str, Clause] = field(default_factory=dict)
    """SLACK and DRATIO, which are the stream's."""


@dataclass(frozen=True)
class WindowReader:
    """Reads the window of one query over one stream; `times` are the outputs below that carry time, by name."""

    source: SourceText
    stream: Stream
    times: dict[str, Temporal]
    below: Step | None = None
    """The query or operator that is read; None where it is a stream."""

    spelled_out: Callable[[exp.Expr], exp.Expr] = exp.Expr.copy
    """An expression over the columns that the query sees, over those of the stream."""

    def read(self, written: StreamWindow | None, buckets: list[Bucket], select: exp.Expr) -> WindowRequest:
        """The window that is written, or that the groups make."""
        clauses = {str(clause.this): clause for clause in written.expressions} if written is not None else {}
        amounts = Amounts(self.source, self.stream.time_kind)
        shift = self._shift(clauses.get("WATTR"))
        window = self._window(clauses, buckets, amounts, shift)
        if window is None:
            raise self._never_closes(select)
        retain = amounts.length(clauses["RETAIN"].expressions[0], "RETAIN") if "RETAIN" in clauses else 0
        policy = {name: clause for name, clause in clauses.items() if name in IN_WINDOWS}
        return WindowRequest(window, retain, policy)

    def _window(
        self, clauses: dict[str, Clause], buckets: list[Bucket], amounts: Amounts, shift: int | None
    ) -> AnyWindow | None:
        if "SESSION" in clauses:
            return self._sessions(clauses, amounts, shift)
        empty = "EMPTY WINDOWS" in clauses
        if "RANGE" not in clauses:
            for name in ("SLIDE", "OFFSET"):
                if name in clauses:
                    raise self.source.error(f"{name} without RANGE", clauses[name], "say how long a window is: RANGE")
            finest = min(buckets, key=lambda bucket: bucket.width, default=None)
            if finest is not None:
                return Window(finest.width, offset=finest.offset, empty=empty)
            return SameWindow() if isinstance(self.below, Query) else None
        length = clauses["RANGE"].expressions[0]
        slide = clauses["SLIDE"].expressions[0] if "SLIDE" in clauses else None
        try:
            if shift is None or amounts.says_rows(length):
                for name in ("OFFSET", "EMPTY WINDOWS"):
                    if name in clauses:
                        raise self.source.error(f"{name} does not go with a window over a count of rows", clauses[name])
                step = amounts.rows(slide, "SLIDE") if slide is not None else TUMBLING
                return RowWindow(amounts.rows(length, "RANGE"), step)
            step = amounts.length(slide, "SLIDE") if slide is not None else TUMBLING
            offset = amounts.length(clauses["OFFSET"].expressions[0], "OFFSET") if "OFFSET" in clauses else 0
            longer = amounts.length(length, "RANGE")
            for amount, size, name in ((length, longer, "RANGE"), (slide, step, "SLIDE")):
                if amount is not None and size <= 0:
                    raise self.source.error(f"{name} {amount.sql()} is no length: give more than 0", amount)
            return Window(longer, step, offset - shift, empty)
        except DeclarationError as error:
            if hasattr(error, "line"):
                raise
            at = slide if "SLIDE" in str(error) and slide is not None else length
            raise self.source.error(str(error), at) from error

    def _sessions(self, clauses: dict[str, Clause], amounts: Amounts, shift: int | None) -> SessionWindow:
        for name in ("RANGE", "SLIDE", "OFFSET", "EMPTY WINDOWS"):
            if name in clauses:
                raise self.source.error(
                    f"{name} does not go with SESSION", clauses[name], "a session is as long as rows come: drop it"
                )
        gap = clauses["SESSION"].expressions[0]
        if shift is None or (isinstance(gap, Amount) and amounts.says_rows(gap)):
            raise self.source.error("the gap of a session is a length of time", gap, "such as SESSION 10 minutes")
        if shift:
            raise self.source.error(
                "sessions go by the time of what is read", clauses.get("WATTR", gap), "leave WATTR out"
            )
        try:
            if isinstance(gap, Amount):
                return SessionWindow(amounts.length(gap, "SESSION"))
            by = spark_text(self.spelled_out(gap))
            gap_number(by, self.stream.time_kind)
            return SessionWindow(by=by)
        except DeclarationError as error:
            if hasattr(error, "line"):
                raise
            raise self.source.error(str(error), gap) from error

    def _shift(self, wattr: Clause | None) -> int | None:
        """By how much the attribute that windows go by is ahead of time; None for a count of rows."""
        if wattr is None:
            return min((t.shifted for t in self.times.values() if t.shifted is not None), key=abs, default=0)
        name = wattr.expressions[0].name
        found = next((t for known, t in self.times.items() if known.lower() == name.lower()), None)
        if found is not None and found.shifted is not None:
            return found.shifted
        if name.upper() in COUNTED:
            return None
        if found is not None:
            raise self.source.error(f"a window over {name!r}, which is computed from time, cannot be run yet", wattr)
        time = self.stream.time
        way = meant(name, self.times) or "WATTR names the column that tells the time, or ROWS"
        raise self.source.error(
            f"{name!r} does not tell the time of stream {self.stream.name!r}: {time} does", wattr, way
        )

    def _never_closes(self, select: exp.Expr) -> Exception:
        if isinstance(self.below, Join):
            return self.source.error(
                "this aggregate could never close: it has no window",
                select,
                "add one behind the joins: WINDOW [RANGE 5 minutes SLIDE 1 minute]",
            )
        carrying = [name for name, one in self.times.items() if one.shifted == 0]
        time = self.stream.time if self.below is None else next(iter(carrying), None)
        group = f", or group by its time: GROUP BY {time}/60 AS tb" if time is not None else ""
        if self.stream.timestamps is Timestamps.EXTERNAL and not self.times:
            return self.source.error(
                f"this aggregate could never close: what it reads no longer has the time of the stream, {time!r}",
                select,
                f"select {time} below it, too",
            )
        if (cut := next(select.find_all(exp.TimestampTrunc, exp.DateTrunc), None)) is not None:
            unit = cut.text("unit").upper()
            close = nearest(unit, FIXED)
            if truncated(unit) is None:
                return self.source.error(
                    f"date_trunc knows no {unit.lower()!r}", cut, f"did you mean {close.lower()!r}?" if close else None
                )
            if unit not in FIXED:
                way = f"group by day or week, or add a window: FROM {self._spoken} [RANGE 30 days]"
                return self.source.error(f"stretches of a {unit.lower()} are not equally long", cut, way)
        foreign = window_function_in(select.parent_select or select)
        if foreign is not None:
            hint = instead_of(foreign, self._spoken, time)
            return self.source.error("this aggregate could never close: it has no window", select, hint)
        return self.source.error(
            "this aggregate could never close: it has no window",
            select,
            f"add one behind the stream: FROM {self._spoken} [RANGE 5 minutes SLIDE 1 minute]{group}",
        )

    @property
    def _spoken(self) -> str:
        """What is read, as the user would write it; a merge that was put in is any stream."""
        return "(..)" if self.below is not None and self.stream.name.endswith("_below") else self.stream.name


def refuse_over(select: exp.Expr, source: SourceText, apart_from: frozenset[str] = WINDOWS) -> None:
    """An error for an OVER where there can be none, or a function that looks across rows without one."""
    for key in ("where", "group", "having", "order"):
        part = select.args.get(key)
        if part is not None and (over := part.find(exp.Window)) is not None:
            words = "ORDER BY" if key == "order" else "GROUP BY" if key == "group" else key.upper()
            raise source.error(
                f"{words} sees no OVER",
                over,
                "choose by it in QUALIFY, behind the SELECT"
                if key in ("where", "having")
                else "select it in a sub-query",
            )
    if (refused := refused_call(select, apart_from, over=True)) is not None:
        at, wrong, instead = refused
        raise source.error(wrong, at, instead)
