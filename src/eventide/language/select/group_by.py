"""GROUP BY, and Spark's `window(...)` in it.

GROUP BY: the groups of a query, and the stretches of time that some of them are.

Law: a group is a column, an expression, `expression AS name`, or a selected column by its name or number. DISTINCT and
ALL group by everything that is selected and no aggregate. Gigascope's `time/60` counts stretches in whole numbers.

Spark's own way to write a window: `GROUP BY window(ts, '5 minutes', '1 minute')`.

Law: it means the same as `[RANGE 5 minutes SLIDE 1 minute]` behind the stream. `window.start` and `window.end` are
`window_start` and `window_end`, which are in every result.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from eventide.language.from_clause.read import FromReader
from eventide.language.grammar.nodes import Amount, Clause, StreamWindow
from eventide.language.grammar.source_text import SourceText, offset_of
from eventide.language.scope.expression_text import has_aggregate, name_for, unused
from eventide.language.scope.relations import Scope
from eventide.language.scope.time_buckets import rounded_down
from eventide.plan.declared.temporal import Bucket

CLAUSES = ("RANGE", "SLIDE", "OFFSET")


def is_spark_window(node: exp.Expr) -> bool:
    """Whether this is a call of `window`."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == "window"


def is_part_of_window(node: exp.Expr) -> bool:
    """Whether this is `window`, `window.start` or `window.end`."""
    if not isinstance(node, exp.Column):
        return False
    parts = [part.name.lower() for part in node.parts]
    return parts[0] == "window" and (len(parts) == 1 or parts[1:] in (["start"], ["end"]))


def stream_window(call: exp.Expr, level: Scope, origin: FromReader, source: SourceText) -> StreamWindow:
    """The call as a window behind a stream."""
    column, *lengths = call.expressions
    time = level.clock.of(origin.spelled_out(column, level)) if isinstance(column, exp.Column) else None
    if time is None or time.shifted != 0:
        names = [name for name, one in level.times.items() if one.shifted == 0]
        way = f"its time is {names[0]}" if names else "write WINDOW [RANGE ..] instead"
        raise source.error("window() goes by the time of the stream", call, way)
    if not 1 <= len(lengths) <= len(CLAUSES) or not all(isinstance(e, exp.Literal) and e.is_string for e in lengths):
        raise source.error("expected window(time, '5 minutes' [, '1 minute' [, '30 seconds']])", call)
    clauses = []
    for name, written in zip(CLAUSES, lengths, strict=False):
        number, _, unit = written.name.strip().partition(" ")
        amount = Amount(this=number, unit=unit.strip().lower() or None)
        amount.meta["start"] = offset_of(written)
        clauses.append(Clause(this=name, expressions=[amount]))
    return StreamWindow(expressions=clauses)


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
    """Reads GROUP BY."""

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
        if is_spark_window(call):
            if level.called is None and level.window is None:
                level.window, level.called = stream_window(call, level, self.origin, self.source), call
            if call != level.called:
                raise self.source.error("a query has one window, and this is its second", call)
            return True
        called = is_part_of_window(node) and "window" not in level.columns
        return called or _is_edge(node, level)

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
    """The group with what it has to do with time, where `node` says how it is computed."""
    found = level.clock.of(node)
    if found is not None:
        group.carries, group.bucket = level.clock.over_time(node), found.bucket
    elif level.clock.of(node, following=True) is not None:
        group.follows = level.clock.over_time(node, following=True)
    return group
