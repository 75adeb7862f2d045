"""Read FROM: streams, interfaces, results of queries, sub-queries, joins.

Law: a query below that only computes columns and leaves rows out is the same as its expressions and conditions put into
the query above; so nothing runs twice, and the stream's own time stays the time. One with aggregates, DISTINCT, ORDER
BY or LIMIT, a UNION or a join becomes a query of its own, which the one above reads.

*Interfaces.* One protocol seen in several places, merged by the planner (Gigascope paper, section 3).
`main1.DataProtocol` is one stream. `[both].DataProtocol`, with `CREATE INTERFACE SET both AS main0, main1`, is the
merge of those of the interfaces that have it; `DataProtocol` alone, where no stream has just that name, is the merge of
all that are declared so far. The streams of a merge have the same columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from sqlglot import exp

from eventide.language.ddl.create_stream import DeclaredStream, name_of
from eventide.language.from_clause.joins import JoinReader
from eventide.language.from_clause.subqueries import as_semi_join, has_scalars
from eventide.language.grammar.nodes import StreamWindow
from eventide.language.grammar.source_text import SourceText
from eventide.language.grammar.spelling import meant
from eventide.language.scope.scope import (
    Clock,
    Hide,
    Resolver,
    Scope,
    ScopeRelation,
    common_clock,
    over,
    over_stream,
    stars_in,
)
from eventide.language.scope.state_clauses import StateRequest
from eventide.plan.declared.rows import Rows, sampled
from eventide.plan.expressions.parse import aggregates_in


@dataclass
class Interfaces:
    """The sets of interfaces that were declared: their names, and their members in small letters."""

    sets: dict[str, tuple[str, tuple[str, ...]]] = field(default_factory=dict)

    def declare(self, tree: exp.Expr, streams: Mapping[str, DeclaredStream], source: SourceText) -> str:
        """Take in `CREATE INTERFACE SET name AS a, b`."""
        name, members = tree.this, tree.expressions
        if name.name.lower() in self.sets:
            raise source.error(f"there is already an interface set {name.name!r}", name, "choose another name")
        known = {interface for one in streams.values() if (interface := interface_of(one)) is not None}
        if name.name.lower() in known:
            raise source.error(f"there is already an interface {name.name!r}", name, "choose another name")
        found: list[str] = []
        for member in members:
            for one in (
                self.sets[member.name.lower()][1] if member.name.lower() in self.sets else (member.name.lower(),)
            ):
                if member.name.lower() not in self.sets and one not in known:
                    raise source.error(
                        f"there is no interface {member.name!r}",
                        member,
                        meant(member.name, sorted(known))
                        or f"declare a stream of it before: CREATE STREAM {member.name}.P",
                    )
                if one not in found:
                    found.append(one)
        self.sets[name.name.lower()] = (name.name, tuple(found))
        return str(name.name)

    def members(
        self, table: exp.Table, streams: Mapping[str, DeclaredStream], source: SourceText
    ) -> list[DeclaredStream]:
        """The streams that a name stands for, beside one of just that name."""
        protocol, interface = table.name.lower(), table.db.lower()
        if interface and interface not in self.sets:
            return []
        wanted = self.sets[interface][1] if interface else None
        found = [
            one
            for one in streams.values()
            if one.tree is not None
            and one.tree.this.name.lower() == protocol
            and (mine := interface_of(one)) is not None
            and (wanted is None or mine in wanted)
        ]
        if interface and not found:
            raise source.error(
                f"no interface of {self.sets[interface][0]!r} has a stream {table.name!r}",
                table,
                f"its interfaces are {', '.join(self.sets[interface][1])}",
            )
        return found

    def merged(
        self,
        table: exp.Table,
        members: list[DeclaredStream],
        queries: Mapping[str, ScopeRelation],
        hide: Hide,
        source: SourceText,
    ) -> ScopeRelation:
        """The merge of these streams, made once for all queries that read it."""
        names = tuple(one.stream.name for one in members)
        for known in queries.values():
            if (
                known.hidden
                and isinstance(known.query, Rows)
                and known.query.passes_through
                and known.query.inputs == names
            ):
                return known
        first = members[0].stream
        for other in members[1:]:
            for mine, theirs in zip(first.columns, other.stream.columns, strict=False):
                if (mine.name.lower(), mine.type) != (theirs.name.lower(), theirs.type):
                    raise source.error(
                        f"{spoken(other)} has {theirs.name} {theirs.type} where {spoken(members[0])} has "
                        f"{mine.name} {mine.type}, so they cannot be merged",
                        table,
                        "declare the same columns for every interface, or name the one you mean",
                    )
            if len(first.columns) != len(other.stream.columns):
                raise source.error(
                    f"{spoken(other)} has {len(other.stream.columns)} columns and {spoken(members[0])} has "
                    f"{len(first.columns)}, so they cannot be merged",
                    table,
                    "declare the same columns for every interface, or name the one you mean",
                )
        clock = common_clock([Clock.of_stream(one.stream) for one in members], table, source)
        return hide(Rows(name_of(table), names, ordered=False), first.columns, clock, table)


def interface_of(declared: DeclaredStream) -> str | None:
    """The interface that a stream was declared for, in small letters."""
    return declared.tree.this.db.lower() or None if declared.tree is not None else None


def spoken(declared: DeclaredStream) -> str:
    """The name of a stream as it was declared."""
    if declared.tree is None or not declared.tree.this.db:
        return declared.stream.name
    return f"{declared.tree.this.db}.{declared.tree.this.name}"


NOT_YET = {
    "laterals": "LATERAL VIEW",
    "offset": "OFFSET",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "pivots": "PIVOT",
    "match": "MATCH_RECOGNIZE",
    "into": "SELECT INTO",
    "kind": "SELECT AS STRUCT",
}
"""Parts of a SELECT that are read but cannot be run yet."""

OWN = ("group", "having", "distinct", "order", "limit", "joins", "qualify")
"""What makes a sub-query one of its own."""


@dataclass(frozen=True)
class FromReader:
    """Finds what a SELECT reads."""

    source: SourceText
    streams: Mapping[str, DeclaredStream]
    queries: Mapping[str, ScopeRelation]
    made: Callable[[exp.Expr, Mapping[str, exp.Expr]], ScopeRelation]
    """Makes a query of its own of a sub-query."""

    hide: Hide
    interfaces: Interfaces
    state: StateRequest

    def read(self, select: exp.Expr | None, above: Mapping[str, exp.Expr] | None = None) -> tuple[exp.Select, Scope]:
        """The SELECT without its parentheses, and what it reads."""
        while isinstance(select, exp.Subquery | exp.Paren):
            select = select.this
        if not isinstance(select, exp.Select):
            raise self.source.error("expected SELECT", select)
        ctes = with_queries(select, above, self.source)
        self._only_known(select)
        origin = select.args.get("from_")
        if origin is None:
            raise self.source.error("this SELECT reads nothing", select, "add FROM and a stream")
        select = as_semi_join(select, self.source, lambda table: self._columns(table, ctes))
        if select.args.get("joins"):
            self._refuse_window_tables(select)
            level = self._joins(lambda table, computed: self._side(table, ctes, computed)).read(select)
            self._add_window(select, level)
            return select, level
        if (word := origin.args.get("join_kind")) is not None:
            raise self.source.error(f"{word} joins two streams", origin, "write FROM a, b WHERE a.time = b.time")
        level = self._level(origin.this, ctes)
        if level.stream.table is not None:
            raise self.source.error(
                f"{level.stream.name!r} is a table, and a query reads a stream",
                origin.this,
                f"join it to one: FROM stream AS s JOIN {level.stream.name} AS t ON s.key = t.key",
            )
        self._add_window(select, level)
        if (where := select.args.get("where")) is not None:
            condition = self.spelled_out(where.this, level)
            for aggregate in aggregates_in(where.this):
                raise self.source.error("WHERE sees single rows, not aggregates", aggregate, "put this into HAVING")
            level.where.append(condition)
        return select, level

    def _refuse_window_tables(self, select: exp.Select) -> None:
        """In a join a window behind a stream is how far back its rows are met, which no function of windows means."""
        origin = select.args["from_"].this
        for table in (origin, *(join.this for join in select.args["joins"])):
            window = table.args.get("stream_window")
            if isinstance(window, StreamWindow) and (function := window.meta.get("function")):
                raise self.source.error(
                    f"{function} in a join cannot be run yet",
                    window,
                    "aggregate in a query of its own, FROM (SELECT .. GROUP BY ..) AS a JOIN .. ON a.window_start = ..",
                )

    def _columns(self, table: exp.Expr, ctes: Mapping[str, exp.Expr]) -> set[str]:
        """The columns of what a name stands for; of sub-queries nothing is known yet."""
        named = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier)
        return set(self.table(table, ctes).columns) if isinstance(table, exp.Table) and named else set()

    def settled(self, level: Scope, tree: exp.Expr) -> Scope:
        """Make an operator of a join, so that an aggregate can read it; anything else unchanged."""
        if level.pending is None:
            return level
        return self._joins(lambda table, computed: self._level(table, {})).settled(level, tree)

    def _joins(self, level_of: Callable[[exp.Expr, bool], Scope]) -> JoinReader:
        return JoinReader(self.source, level_of, self.hide, self.state, self.queries)

    def spelled_out(self, expression: exp.Expr, level: Scope, also: Iterable[str] = ()) -> exp.Expr:
        """The expression over the columns of the stream; names in `also` stay."""
        return Resolver(self.source).spelled_out(expression, level, also)

    def _add_window(self, select: exp.Select, level: Scope) -> None:
        for window in select.args.get("windows") or ():
            # Others are named for OVER.
            if isinstance(window, StreamWindow):
                level.window = self._one_window(level.window, window)

    def _only_known(self, select: exp.Select) -> None:
        for key, words in NOT_YET.items():
            if part := select.args.get(key):
                at = part[0] if isinstance(part, list) else part
                raise self.source.error(f"{words} cannot be run yet", at if isinstance(at, exp.Expr) else select)

    def _level(self, origin: exp.Expr, ctes: Mapping[str, exp.Expr]) -> Scope:
        if origin.args.get("joins"):
            raise self.source.error(
                "a join in parentheses cannot be run yet", origin, "write FROM a JOIN b ON .. JOIN c ON .."
            )
        for key in ("pivots", "laterals", "when", "version", "only", "rows_from"):
            if part := origin.args.get(key):
                at = part[0] if isinstance(part, list) else part
                if key == "version":
                    raise self.source.error(
                        "AS OF is for the right side of a join",
                        part,
                        "write FROM rows AS r JOIN table FOR SYSTEM_TIME AS OF r.time AS t ON r.key = t.key",
                    )
                words = NOT_YET.get(key, key.upper())
                raise self.source.error(f"{words} cannot be run yet", at if isinstance(at, exp.Expr) else origin)
        if isinstance(origin, exp.Subquery):
            level = self._projected(origin.this, ctes)
            level.aliases = {origin.alias.lower()} - {""}
        elif isinstance(origin, exp.Table) and isinstance(origin.this, exp.Identifier):
            level = self.table(origin, ctes)
        else:
            raise self.source.error(
                "expected a stream", origin, meant("", [d.stream.name for d in self.streams.values()])
            )
        if (window := origin.args.get("stream_window")) is not None:
            level.window = self._one_window(level.window, window)
        if (sample := origin.args.get("sample")) is not None:
            level.sample = self._share(sample) * (level.sample or 1.0)
        return level

    def _side(self, origin: exp.Expr, ctes: Mapping[str, exp.Expr], computed: bool) -> Scope:
        """An input of a join. `computed`: its columns may be missing from a result, so NULL, whatever computes them."""
        if origin.args.get("version") is not None:
            # Which version is meant, the join says.
            origin = origin.copy()
            origin.set("version", None)
        level = self._level(origin, ctes)
        are_columns = all(isinstance(expression.unnest(), exp.Column) for _, expression in level.columns.values())
        if computed and not are_columns:
            below = origin.this if isinstance(origin, exp.Subquery) else ctes[origin.name.lower()]
            level, window = over(self.made(below, ctes), level.aliases), level.window
            level.window = window
        if level.sample is not None:
            if level.below is not None:
                raise self.source.error("a sample of results cannot be joined yet", origin)
            if (share := sampled(level.stream, level.sample)) is not None:
                level.where.append(exp.maybe_parse(share, dialect="spark"))
            level.sample = None
        return level

    def _share(self, sample: exp.Expr) -> float:
        """`TABLESAMPLE (10 PERCENT)`: the share of the rows, chosen by what is in them."""
        percent = sample.args.get("percent")
        try:
            share = float(Fraction(percent.name) / 100) if percent is not None else 0.0
        except (ValueError, ZeroDivisionError):
            share = 0.0
        if not 0 < share <= 1 or sample.args.get("seed"):
            raise self.source.error("this sample cannot be taken", sample, "write TABLESAMPLE (10 PERCENT)")
        return share

    def table(self, table: exp.Table, ctes: Mapping[str, exp.Expr]) -> Scope:
        """What a name in FROM stands for."""
        name = name_of(table)
        aliases = {table.alias.lower()} if table.alias else {name.lower(), table.name.lower()}
        if not table.args.get("db") and name.lower() in ctes:
            below = {key: value for key, value in ctes.items() if key != name.lower()}
            level = self._projected(ctes[name.lower()], below)
            level.aliases = aliases
            return level
        if name.lower() in self.streams:
            return over_stream(self.streams[name.lower()].stream, aliases)
        if name.lower() in self.queries and not self.queries[name.lower()].hidden:
            return over(self.queries[name.lower()], aliases)
        if members := self.interfaces.members(table, self.streams, self.source):
            if len(members) == 1:
                return over_stream(members[0].stream, aliases)
            return over(self.interfaces.merged(table, members, self.queries, self.hide, self.source), aliases)
        known = [declared.stream.name for declared in self.streams.values()]
        known += [known.query.name for known in self.queries.values() if not known.hidden]
        way = meant(name, known) if known else f"declare it before: CREATE STREAM {name} (ts TIMESTAMP, ...)"
        raise self.source.error(f"there is no stream {name!r}", table, way)

    def _projected(self, below: exp.Expr, ctes: Mapping[str, exp.Expr]) -> Scope:
        """A query that only computes columns and leaves rows out, put into the one above; any other by itself."""
        while isinstance(below, exp.Subquery | exp.Paren):
            below = below.this
        if isinstance(below, exp.SetOperation) or (
            isinstance(below, exp.Select)
            and (
                any(below.args.get(key) for key in OWN)
                or has_scalars(below)
                or any(aggregates_in(e) or e.find(exp.Window) is not None for e in below.expressions)
            )
        ):
            return over(self.made(below, ctes), set())
        select, level = self.read(below, ctes)
        columns: dict[str, tuple[str, exp.Expr]] = {}
        for item in select.expressions:
            if (stars := stars_in(item, level, self.source)) is not None:
                columns.update(level.columns if level.below is not None else {n.lower(): (n, e) for n, e in stars})
                continue
            name = item.alias_or_name
            if not name:
                raise self.source.error("this column needs a name", item, "add AS name")
            inner = item.this if isinstance(item, exp.Alias) else item
            columns[name.lower()] = (name, self.spelled_out(inner, level))
        level.columns = columns
        return level

    def _one_window(self, before: StreamWindow | None, window: StreamWindow) -> StreamWindow:
        if before is not None:
            raise self.source.error("a query has one window, and this is its second", window)
        return window


def with_queries(tree: exp.Expr, above: Mapping[str, exp.Expr] | None, source: SourceText) -> dict[str, exp.Expr]:
    """The queries of WITH, and those of the WITHs around."""
    ctes = dict(above or {})
    if (with_ := tree.args.get("with_")) is not None:
        if with_.args.get("recursive"):
            raise source.error("WITH RECURSIVE cannot be run: a stream has no end to recur to", with_)
        ctes.update((cte.alias.lower(), cte.this) for cte in with_.expressions)
    return ctes
