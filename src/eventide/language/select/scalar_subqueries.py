"""Read a query inside an expression as a join by windows: `HAVING max(v) > (SELECT avg(v) FROM s [RANGE 10])`.

Laws. *Value*: such a query has one aggregate and no groups, so it has one value in each window; what stands around it
has the same windows, and reads the value of its own one. *Empty*: where no row is in the window, the value is what the
aggregate says of no rows: NULL, of a count 0. *Correlated*: `WHERE b.k = a.k` of both makes it one value for each k.

What is around is an aggregate, the results of one, or the rows of a stream with a window, each row in every window that
it is in (Nexmark's queries 5 and 7 as the Linear Road group wrote them). `x >= ALL (SELECT ..)` is x >= the greatest.

>>> import sqlglot
>>> sql = "SELECT k FROM (SELECT k, max(v) AS m FROM s GROUP BY k) AS a WHERE m > (SELECT avg(v) FROM s)"
>>> print(ScalarReader(SourceText(sql), {}).read(sqlglot.parse_one(sql, read="spark")).sql("spark"))
SELECT k FROM (SELECT k, MAX(v) AS m FROM s GROUP BY k) AS a LEFT JOIN (SELECT AVG(v) AS value_1 FROM s) AS subquery \
ON a.window_start = subquery.window_start AND a.window_end = subquery.window_end WHERE m > subquery.value_1
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.language.ddl.create_stream import DeclaredStream, name_of
from eventide.language.from_clause.join_forms import BY_WINDOW
from eventide.language.from_clause.subqueries import has_scalars, scalars_in
from eventide.language.from_clause.window_calls import is_part_of_window, is_window_call
from eventide.language.grammar.nodes import StreamWindow
from eventide.language.grammar.source_text import SourceText, offset_of
from eventide.language.scope.expression_text import column_of, conjuncts, has_aggregate, name_for, unused, wrapped
from eventide.language.select.row_query import gives_rows
from eventide.plan.declared.stream import WINDOW_END, WINDOW_START

NAME, RESULTS = "subquery", "results"
EDGES = (WINDOW_START, WINDOW_END)
PLAIN = ("expressions", "from_", "where", "windows", "joins", "with_", "group")
"""What a query inside an expression may have; of it, groups only below ALL."""

REGULAR = ("RANGE", "SLIDE", "OFFSET")
NOTHING = (exp.Count, exp.CountIf, exp.ApproxDistinct)
"""Aggregates that say 0 of no rows; the others say NULL."""


@dataclass
class Shared:
    """The queries of one SELECT, which read the same rows, as one that has a value for each of them."""

    select: exp.Select
    read: exp.Select
    """What they all read, without their values."""

    keys: list[exp.Expr]
    """What stands around, for each group of it that must be equal."""

    is_never_empty: bool
    values: list[exp.Expr] = field(default_factory=list)

    def value(self, aggregate: exp.Expr) -> exp.Expr:
        """The value of an aggregate in the join."""
        if aggregate not in self.values:
            self.values.append(aggregate)
            name = f"value_{len(self.values)}"
            self.select.append("expressions", exp.alias_(aggregate.copy(), name))
        read = column_of(f"value_{self.values.index(aggregate) + 1}", NAME)
        empty = aggregate.copy().transform(_of_nothing)
        if isinstance(empty, exp.Null) or self.is_never_empty:
            return read
        absent = exp.Is(this=column_of(WINDOW_END, NAME), expression=exp.Null())
        return exp.Paren(this=exp.Case().when(absent, empty).else_(read))


def _of_nothing(node: exp.Expr) -> exp.Expr:
    if isinstance(node, NOTHING):
        return exp.Literal.number(0)
    return exp.Null() if isinstance(node, exp.Expression) and isinstance(node, exp.AggFunc) else node


@dataclass(frozen=True)
class ScalarReader:
    """Rewrites a SELECT whose expressions have queries in them."""

    source: SourceText
    streams: Mapping[str, DeclaredStream]

    def read(self, select: exp.Select) -> exp.Select:
        """The SELECT with a join in the place of these queries; itself where it has none."""
        if not has_scalars(select):
            return select
        if (order := select.args.get("order")) is not None and next(scalars_in(order), None) is not None:
            raise self.source.error("ORDER BY sees no queries", order, "select the value, and order around it")
        around = select.copy()
        shared = self._shared(around)
        return self._over_rows(around, shared) if gives_rows(around) else self._over_aggregates(around, shared)

    # The queries inside

    def _shared(self, around: exp.Select) -> Shared:
        """All queries inside as one, each replaced by its value there."""
        aliases = self._aliases(around)
        found: Shared | None = None
        where = around.args.get("where")
        parts = [*around.expressions, around.args.get("having"), *(conjuncts(where.this) if where is not None else [])]
        for node in [one for part in parts if part is not None for one in scalars_in(part)]:
            inner, aggregate, keys = self._inner(node, aliases)
            if found is None:
                found = Shared(inner, inner.copy(), keys, self._is_never_empty(inner, around))
            elif inner != found.read or keys != found.keys:
                raise self.source.error(
                    "queries inside one SELECT that read different rows cannot be run yet",
                    node,
                    "put one of them into a sub-query in FROM",
                )
            value = found.value(aggregate)
            for column in value.find_all(exp.Column):
                column.meta["start"] = offset_of(node)
            node.replace(value)
        assert found is not None
        return found

    def _inner(self, node: exp.Expr, aliases: set[str]) -> tuple[exp.Select, exp.Expr, list[exp.Expr]]:
        """A query without its value; the value; and what stands around that its groups are equal to."""
        below = node.this
        while isinstance(below, exp.Subquery | exp.Paren):
            below = below.this
        if not isinstance(below, exp.Select) or below.args.get("from_") is None:
            raise self.source.error("a query inside an expression reads a stream", below, "write SELECT .. FROM ..")
        more = next((part for key, part in below.args.items() if part and key not in PLAIN), None)
        if more is not None or (below.args.get("group") is not None and not isinstance(node, exp.All)):
            raise self.source.error(
                "a query inside an expression has FROM and WHERE, and one value in each window",
                below,
                "write it as a query, and join it by window_end",
            )
        if len(below.expressions) != 1 or not has_aggregate(below.expressions[0]):
            raise self.source.error(
                "a query inside an expression has one aggregate, so one value in each window",
                below,
                "select one aggregate, such as max(..)",
            )
        inner = below.copy()
        value = inner.expressions[0].unalias()
        if isinstance(node, exp.All):
            inner, value = self._greatest(node, inner, value)
        inner.set("expressions", [])
        return inner, value, self._correlated(inner, aliases)

    def _greatest(self, node: exp.All, inner: exp.Select, value: exp.Expr) -> tuple[exp.Select, exp.Expr]:
        """`>= ALL (..)` compares with the greatest, `<= ALL (..)` with the least."""
        above = node.parent
        call: type[exp.Max] | type[exp.Min] | None = None
        if isinstance(above, exp.GTE | exp.GT) and above.expression is node:
            call = exp.Max
        elif isinstance(above, exp.LTE | exp.LT) and above.expression is node:
            call = exp.Min
        if call is None or not isinstance(value, exp.Count):
            raise self.source.error(
                "ALL stands behind a comparison of counts", node, "compare with (SELECT max(..) FROM ..) instead"
            )
        inner.set("expressions", [exp.alias_(value, "one")])
        outer = exp.Select(from_=exp.From(this=exp.Subquery(this=inner)))
        return outer, call(this=column_of("one"))

    def _correlated(self, inner: exp.Select, aliases: set[str]) -> list[exp.Expr]:
        """Take equalities with what stands around out of WHERE: they are groups of the query inside."""
        where, keys = inner.args.get("where"), list[exp.Expr]()
        own = self._aliases(inner)
        foreign = aliases - own
        rest = []
        for one in conjuncts(where.this) if where is not None else []:
            names = {column.table.lower() for column in one.find_all(exp.Column)}
            if not names & foreign:
                rest.append(one)
                continue
            equal = one.unnest()
            sides = [equal.this, equal.expression] if isinstance(equal, exp.EQ) else []
            mine = [side for side in sides if not _tables(side) & foreign]
            theirs = [side for side in sides if _tables(side) and _tables(side) <= foreign]
            if len(mine) != 1 or len(theirs) != 1:
                raise self.source.error(
                    "this relates the query inside to what stands around it, and is no equality", one, "join them"
                )
            keys.append(theirs[0].copy())
            group = inner.args.get("group") or exp.Group(expressions=[])
            group.append("expressions", mine[0].copy())
            inner.set("group", group)
            inner.append("expressions", exp.alias_(mine[0].copy(), f"key_{len(keys)}"))
        inner.set("where", exp.Where(this=exp.and_(*(one.copy() for one in rest), copy=False)) if rest else None)
        return keys

    def _aliases(self, select: exp.Select) -> set[str]:
        tables = [select.args["from_"].this, *(join.this for join in select.args.get("joins") or ())]
        return {one.alias_or_name.lower() for one in tables if isinstance(one, exp.Expr) and one.alias_or_name}

    def _is_never_empty(self, inner: exp.Select, around: exp.Select) -> bool:
        """Whether the query inside reads all that is read around it, so that it has a value wherever there is one."""
        origin, other = inner.args["from_"].this, around.args["from_"].this
        same = isinstance(origin, exp.Table) and isinstance(other, exp.Table) and _bare(origin) == _bare(other)
        return same and not any(inner.args.get(key) for key in ("where", "group", "joins"))

    # What stands around

    def _over_aggregates(self, around: exp.Select, shared: Shared) -> exp.Select:
        """Around an aggregate there is a SELECT of rows: of its results, each with the value of its window."""
        for key in ("order", "limit", "distinct", "qualify"):
            if (part := around.args.get(key)) is not None:
                raise self.source.error(
                    f"{key.upper()} beside a query inside an expression cannot be run yet", part, "put it around"
                )
        outer = exp.Select()
        below: list[exp.Expr] = []
        used = [item.alias_or_name for item in around.expressions]
        selected: list[exp.Expr] = []
        later: list[tuple[int, exp.Expr]] = []
        for item in around.expressions:
            bare = item.unalias()
            if _reads(bare):
                later.append((len(selected), item))
                selected.append(item)
            elif is_window_call(bare) or is_part_of_window(item) or _is_edge(item):
                below.append(item)
            else:
                name = item.alias_or_name or unused(name_for(bare), used)
                used.append(name)
                below.append(item if item.alias_or_name else exp.alias_(bare, name))
                selected.append(column_of(name, RESULTS))
        for place, item in later:
            bare = item.unalias()
            name = item.alias or unused(name_for(bare), used)
            selected[place] = exp.alias_(self._hoisted(bare, below, used), name)
        having = around.args.pop("having", None)
        conditions = conjuncts(having.this) if having is not None else []
        kept = [one for one in conditions if not _reads(one)]
        if kept:
            around.set("having", exp.Having(this=exp.and_(*kept, copy=False)))
        chosen = [self._hoisted(one, below, used) for one in conditions if _reads(one)]
        if (where := around.args.get("where")) is not None and _reads(where):
            at = next(column for column in where.find_all(exp.Column) if column.table == NAME)
            raise self.source.error(
                "WHERE chooses rows before their windows are known", at, "put this into HAVING, or aggregate around"
            )
        keys = [self._hoisted(key, below, used) for key in shared.keys]
        around.set("expressions", below)
        outer.set("expressions", selected)
        outer.set("from_", exp.From(this=_named_subquery(around, RESULTS)))
        outer.set("joins", [self._join(RESULTS, shared, keys)])
        if chosen:
            outer.set("where", exp.Where(this=exp.and_(*chosen, copy=False)))
        if (ctes := around.args.pop("with_", None)) is not None:
            outer.set("with_", ctes)
        return outer

    def _hoisted(self, node: exp.Expr, below: list[exp.Expr], used: list[str]) -> exp.Expr:
        """The expression over results: what it has of groups and aggregates is selected below."""
        if not _reads(node):
            if not any(isinstance(one, exp.Column) or has_aggregate(one) for one in node.walk()):
                return node.copy()
            # A group by two names would be two groups.
            same = (one for one in below if _bare(node) in (_bare(one.unalias()), _named(one)))
            name = next((one.alias_or_name for one in same), None)
            if name is None:
                name = unused(name_for(node), used)
                used.append(name)
                below.append(exp.alias_(node.copy(), name))
            return column_of(name, RESULTS)
        if isinstance(node, exp.Column):
            return node.copy()
        found = node.copy()
        for child, copied in zip(list(node.iter_expressions()), list(found.iter_expressions()), strict=True):
            copied.replace(self._hoisted(child, below, used))
        return found

    def _over_rows(self, around: exp.Select, shared: Shared) -> exp.Select:
        """Rows with the value of their window: results have it, rows of a stream are in those of their times."""
        origin = around.args["from_"].this
        if around.args.get("joins"):
            raise self.source.error("a query inside a SELECT of a join cannot be run yet", around, "join what it gives")
        window = origin.args.get("stream_window")
        windows = [one for one in around.args.get("windows") or () if isinstance(one, StreamWindow)]
        window = window or (windows[0] if windows else None)
        if not origin.alias_or_name:
            origin.set("alias", exp.TableAlias(this=exp.to_identifier(RESULTS)))
        name = origin.alias_or_name
        join = self._join(name, shared, shared.keys)
        if window is not None:
            join = self._by_time(origin, window, shared, name)
            origin.set("stream_window", None)
            around.set("windows", [one for one in around.args.get("windows") or () if one is not window])
        for item in list(around.expressions):
            if isinstance(item, exp.Star):
                item.replace(exp.Column(this=exp.Star(), table=exp.to_identifier(name)))
        for column in around.find_all(exp.Column):
            if not column.table and column.name.lower() in EDGES:
                column.set("table", exp.to_identifier(NAME if window is not None else name))
        around.set("joins", [join])
        return around

    def _by_time(self, origin: exp.Expr, window: StreamWindow, shared: Shared, name: str) -> exp.Join:
        """Each row of a stream with the value of every window that it is in."""
        declared = self.streams.get(name_of(origin).lower()) if isinstance(origin, exp.Table) else None
        time = declared.stream.time if declared is not None else None
        inner = shared.select.args["from_"].this
        other = inner.args.get("stream_window")
        if time is None:
            raise self.source.error("rows of a window are those of a stream with a time column", origin, "name one")
        is_regular = all(str(one.this) in REGULAR for one in window.expressions)
        if other is None or other.sql() != window.sql() or not is_regular:
            raise self.source.error(
                "the query inside must have the same window, a RANGE of time",
                inner,
                f"write {inner.name or 'FROM stream'} {window.sql()}",
            )
        if not shared.is_never_empty and any(value.find(*NOTHING) for value in shared.values):
            raise self.source.error(
                "a count inside an expression reads all rows of the window here", inner, "leave its WHERE out"
            )
        at = column_of(time, name)
        since = exp.GTE(this=at, expression=column_of(WINDOW_START, NAME))
        until = exp.LT(this=at.copy(), expression=column_of(WINDOW_END, NAME))
        equal = [exp.EQ(this=wrapped(key), expression=column_of(f"key_{n}", NAME)) for n, key in _numbered(shared)]
        return exp.Join(this=_named_subquery(shared.select), on=exp.and_(since, until, *equal, copy=False))

    def _join(self, name: str, shared: Shared, keys: list[exp.Expr]) -> exp.Join:
        equal = [exp.EQ(this=column_of(edge, name), expression=column_of(edge, NAME)) for edge in EDGES]
        for number, key in enumerate(keys, 1):
            equal.append(exp.EQ(this=wrapped(key), expression=column_of(f"key_{number}", NAME)))
        side = {} if shared.is_never_empty else {"side": "LEFT"}
        join = exp.Join(this=_named_subquery(shared.select), on=exp.and_(*equal, copy=False), **side)
        join.meta[BY_WINDOW] = True
        return join


def _numbered(shared: Shared) -> Iterator[tuple[int, exp.Expr]]:
    return enumerate(shared.keys, 1)


def _named_subquery(select: exp.Select, name: str = NAME) -> exp.Subquery:
    return exp.Subquery(this=select, alias=exp.TableAlias(this=exp.to_identifier(name)))


def _tables(node: exp.Expr) -> set[str]:
    return {column.table.lower() for column in node.find_all(exp.Column)}


def _reads(node: exp.Expr) -> bool:
    """Whether an expression has the value of a query that stood inside it."""
    return any(column.table == NAME for column in node.find_all(exp.Column))


def _named(item: exp.Expr) -> exp.Expr | None:
    return exp.column(item.alias_or_name) if item.alias_or_name else None


def _is_edge(item: exp.Expr) -> bool:
    return isinstance(item, exp.Column) and item.name.lower() in EDGES


def _bare(node: exp.Expr) -> exp.Expr:
    """The expression without the names of inputs, or the input without its own."""
    found = node.copy()
    for column in found.find_all(exp.Column):
        column.set("table", None)
    if isinstance(found, exp.Table):
        found.set("alias", None)
    return found
