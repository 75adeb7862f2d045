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

from dataclasses import dataclass, field

from sqlglot import exp

from eventide.language.from_clause.from_clause import FromReader
from eventide.language.from_clause.window_calls import called_window, is_own_edge, is_part_of_window, is_window_call
from eventide.language.grammar.source_text import SourceText
from eventide.language.scope.expression_text import has_aggregate, name_for, unused
from eventide.language.scope.scope import Scope
from eventide.language.scope.time_buckets import rounded_down
from eventide.plan.declared.temporal import Bucket
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
        named_edge = isinstance(node, exp.Alias)
        return is_part_of_window(node, level.columns) or (not named_edge and is_own_edge(call, level))

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
