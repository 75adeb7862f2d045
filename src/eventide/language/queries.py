"""A SELECT, turned into a `Query`: its groups, its values, its window, every name in it checked.

Law: each column of the result is a group, or an expression over aggregates and groups. Groups come first. What is
grouped by is in the result whether it is selected or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from eventide.errors import DeclarationError, LanguageError
from eventide.language.ordering import OrderReader
from eventide.language.output_names import name_for, unused
from eventide.language.reading_from import FromReader, Level, column_of
from eventide.language.source_text import SourceText
from eventide.language.spark_window import is_part_of_window, is_spark_window, stream_window
from eventide.language.windows import Asked, WindowReader
from eventide.plan.expressions import aggregates_in
from eventide.plan.query import Named, Query
from eventide.plan.spark_grammar import SPARK
from eventide.plan.stream import Stream, TimeKind
from eventide.plan.temporal import Bucket, temporal

PAPER_NAMES = {"average": exp.Avg}
"""What the papers call an aggregate that Spark calls otherwise."""


@dataclass
class Group:
    """A group while it is read: its name, and its expression over the columns of the stream."""

    name: str
    expression: exp.Expr
    written: exp.Expr
    named: bool = False


@dataclass
class Reading:
    """A query while it is read."""

    level: Level
    groups: list[Group] = field(default_factory=list)
    values: list[Named] = field(default_factory=list)

    @property
    def taken(self) -> list[str]:
        """The names that are given."""
        return [*(group.name for group in self.groups), *(value.name for value in self.values)]


@dataclass(frozen=True)
class QueryReader:
    """Reads the SELECT of one query."""

    source: SourceText
    origin: FromReader
    aggregates: tuple[str, ...] = ()
    """Functions of the user that aggregate."""

    def read(
        self, name: str, tree: exp.Expr, above: Mapping[str, exp.Expr] | None = None
    ) -> tuple[Query, Asked, Level]:
        """The query, what its window asks of the stream, and what it reads; `above` are the WITHs around it."""
        tree = tree.transform(_in_spark_words)
        select, level = self.origin.read(tree, above)
        reading = Reading(level)
        aliases = {e.alias.lower(): e.this for e in select.expressions if isinstance(e, exp.Alias)}
        buckets = self._take_groups(select, reading, aliases)
        self._check_rows(select)
        for item in select.expressions:
            if not self._is_window(item, level):
                self._take_item(item, reading)
        having = self._having(select, reading)
        order = OrderReader(self.source).read(select, lambda e: self._over_results(e, reading))
        asked = WindowReader(self.source, level.stream, level.times).read(level.window, buckets, select)
        try:
            query = Query(
                name,
                level.stream.name,
                asked.window,
                tuple(reading.values),
                tuple(Named(group.name, group.expression.sql(SPARK)) for group in reading.groups),
                where=" AND ".join(_wrapped(e).sql(SPARK) for e in level.where) or None,
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
        return query, asked, level

    def _check_rows(self, select: exp.Select) -> None:
        for item in select.expressions:
            if (over := item.find(exp.Window)) is not None:
                raise self.source.error("OVER cannot be run yet", over, "group by a window of the stream instead")
        distinct = select.args.get("distinct")
        aggregates = any(self._aggregates(item) for item in select.expressions)
        if distinct is not None and (aggregates or distinct.args.get("on")):
            raise self.source.error(
                "DISTINCT over aggregates cannot be run yet", select, "without DISTINCT each group comes once"
            )
        if distinct is None and not aggregates and select.args.get("group") is None:
            raise self.source.error(
                "this query has no aggregate, and rows alone cannot be told yet",
                select,
                "select count(*), max(column) or another aggregate, or SELECT DISTINCT",
            )

    def _limit(self, select: exp.Select) -> int | None:
        limit = select.args.get("limit")
        if limit is None:
            return None
        number = limit.expression if isinstance(limit, exp.Limit) else None
        if not isinstance(number, exp.Literal) or not number.name.isdigit() or int(number.name) < 1:
            raise self.source.error("expected LIMIT and a number, 1 or more", limit)
        return int(number.name)

    def _take_groups(self, select: exp.Select, reading: Reading, aliases: dict[str, exp.Expr]) -> list[Bucket]:
        group = select.args.get("group")
        if group is None:
            group = exp.Group(all=select.args.get("distinct") is not None)
        for key in ("cube", "rollup", "grouping_sets", "totals"):
            if group.args.get(key):
                raise self.source.error(f"{key.upper()} cannot be run yet", group)
        written = list(group.expressions)
        if group.args.get("all"):
            written = [e for e in select.expressions if not self._aggregates(e) and not e.is_star]
        written = [e for e in written if not self._is_window(e, reading.level)]
        buckets = []
        for item in written:
            found = self._group(item, select, reading.level, aliases)
            bucket = self._bucket(found, reading.level)
            if bucket is not None:
                buckets.append(bucket)
            if any(found.expression == other.expression and found.name == other.name for other in reading.groups):
                continue
            found.name = found.name if found.named else unused(found.name, reading.taken)
            reading.groups.append(found)
        return buckets

    def _is_window(self, node: exp.Expr, level: Level) -> bool:
        """Whether this is the window or one of its ends, which are in every result; Spark's `window` is taken."""
        if is_spark_window(node):
            if level.window is None:
                level.window = stream_window(node, level.stream.time, self.source)
            return True
        called = is_part_of_window(node) and "window" not in level.columns
        return called or _is_edge(node, level)

    def _group(self, item: exp.Expr, select: exp.Select, level: Level, aliases: dict[str, exp.Expr]) -> Group:
        named = item.alias if isinstance(item, exp.Alias) else ""
        inner = item.this if isinstance(item, exp.Alias) else item
        if isinstance(inner, exp.Cube | exp.Rollup | exp.GroupingSets | exp.Tuple):
            raise self.source.error("sets of groups cannot be run yet", inner, "write one query for each")
        if isinstance(inner, exp.Literal) and not inner.is_string:
            place = int(inner.name) if inner.name.isdigit() else 0
            if not 1 <= place <= len(select.expressions):
                raise self.source.error(f"there is no column number {inner.name} in this SELECT", inner)
            chosen = select.expressions[place - 1]
            named = named or chosen.alias
            inner = chosen.this if isinstance(chosen, exp.Alias) else chosen
        elif _is_alias(inner, aliases, level):
            named, inner = named or inner.name, aliases[inner.name.lower()]
        if self._aggregates(inner):
            raise self.source.error("an aggregate cannot be a group", inner, "put its condition into HAVING")
        expression = self.origin.spelled_out(inner, level)
        return Group(
            named or (inner.name if isinstance(inner, exp.Column) else name_for(inner)), expression, inner, bool(named)
        )

    def _bucket(self, group: Group, level: Level) -> Bucket | None:
        """The stretches of time that a group is made of; Gigascope's `time/60` counts them in whole numbers.

        The groups of a query over a query are none: its windows are those below, unless it says otherwise.
        """
        stream = level.stream
        if level.below is not None:
            return None
        node = group.expression.this if isinstance(group.expression, exp.Paren) else group.expression
        if isinstance(node, exp.Div) and isinstance(node.expression, exp.Literal):
            counted = _counted(node, stream)
            if counted is not None:
                group.expression = counted
                node = exp.Floor(this=node)
                if stream.time_kind is not TimeKind.SEQUENCE:
                    seconds = exp.UnixSeconds(this=node.this.this.copy())
                    node = exp.Floor(this=exp.Div(this=seconds, expression=node.this.expression.copy()))
        found = temporal(node, stream.time, stream.time_kind)
        return found.bucket if found is not None else None

    def _take_item(self, item: exp.Expr, reading: Reading) -> None:
        named = item.alias if isinstance(item, exp.Alias) else ""
        inner = item.this if isinstance(item, exp.Alias) else item
        if isinstance(inner, exp.Star) or (isinstance(inner, exp.Column) and isinstance(inner.this, exp.Star)):
            raise self.source.error("* is every column of a row, and a window has many rows", item, "select aggregates")
        by_name = {group.name.lower(): group for group in reading.groups}
        if isinstance(inner, exp.Column) and not inner.table and inner.name.lower() in by_name:
            self._rename(by_name[inner.name.lower()], named, reading)
            return
        expression = self.origin.spelled_out(inner, reading.level, by_name)
        if not self._aggregates(expression):
            same = next((g for g in reading.groups if _same(g, expression, inner)), None)
            if same is not None:
                self._rename(same, named, reading)
                return
            self._check_single(expression, reading, inner)
            spelled = self._over_stream(expression, reading)
            name = self._free(named, reading) or unused(name_for(inner), reading.taken)
            reading.groups.append(Group(name, spelled, inner, True))
            return
        expression = self._over_groups(expression, reading)
        self._check_single(expression, reading, inner)
        name = self._free(named, reading) or unused(name_for(inner), reading.taken)
        reading.values.append(Named(name, expression.sql(SPARK)))

    def _free(self, named: str, reading: Reading) -> str:
        """The given name; a group that nobody named makes room for it."""
        for group in reading.groups:
            if named and group.name.lower() == named.lower() and not group.named:
                group.name, group.named = unused(named, reading.taken), True
        return named

    def _rename(self, group: Group, named: str, reading: Reading) -> None:
        """A group that is selected under another name has that name; a second one is a group more."""
        if not named or named == group.name:
            return
        if group.named:
            reading.groups.append(Group(named, group.expression, group.written, True))
            return
        group.name, group.named = named, True

    def _over_groups(self, expression: exp.Expr, reading: Reading) -> exp.Expr:
        """Groups outside aggregates go by their names."""
        inside = self._inside_aggregates(expression)
        root = exp.Paren(this=expression)
        for node in list(root.walk()):
            if id(node) in inside or node is root:
                continue
            group = next((g for g in reading.groups if g.expression == node), None)
            if group is not None and node.parent is not None:
                node.replace(column_of(group.name))
        result = root.this
        result.pop()
        return result  # type: ignore[no-any-return]

    def _over_stream(self, expression: exp.Expr, reading: Reading) -> exp.Expr:
        """Names of groups stand for what they name."""
        names = {group.name.lower(): group.expression for group in reading.groups}

        def spelled(node: exp.Expr) -> exp.Expr:
            known = isinstance(node, exp.Column) and not node.table and node.name.lower() not in reading.level.columns
            return _wrapped(names[node.name.lower()].copy()) if known and node.name.lower() in names else node

        return expression.transform(spelled)

    def _check_single(self, expression: exp.Expr, reading: Reading, written: exp.Expr) -> None:
        """Every column outside aggregates must be a group."""
        inside = self._inside_aggregates(expression)
        names = {group.name.lower() for group in reading.groups}
        grouped = {column.sql() for group in reading.groups for column in [group.expression]}
        for column in expression.find_all(exp.Column):
            if id(column) in inside or column.name.lower() in names or column.sql() in grouped:
                continue
            if any(
                column in list(group.expression.find_all(exp.Column)) and group.expression in list(expression.walk())
                for group in reading.groups
            ):
                continue
            raise self.source.error(
                f"{column.name!r} is neither in an aggregate nor a group",
                column,
                f"add it to GROUP BY, or take max({column.name}) or another aggregate",
            )

    def _having(self, select: exp.Select, reading: Reading) -> str | None:
        having = select.args.get("having")
        if having is None:
            return None
        names = [group.name for group in reading.groups] + [value.name for value in reading.values]
        expression = self._over_results(having.this, reading)
        inside = self._inside_aggregates(expression)
        known = {name.lower() for name in names}
        for column in expression.find_all(exp.Column):
            if id(column) not in inside and column.name.lower() not in known:
                raise self.source.error(f"{column.name!r} is neither in an aggregate nor a group", column)
        return expression.sql(SPARK)

    def _over_results(self, expression: exp.Expr, reading: Reading) -> exp.Expr:
        """An expression over aggregates and the names of the result's columns."""
        return self._over_groups(self.origin.spelled_out(expression, reading.level, reading.taken), reading)

    def _inside_aggregates(self, expression: exp.Expr) -> set[int]:
        """The nodes inside aggregates, by identity."""
        assert isinstance(expression, exp.Expression)
        return {id(node) for call in aggregates_in(expression, self.aggregates) for node in call.walk()}

    def _aggregates(self, expression: exp.Expr) -> bool:
        return isinstance(expression, exp.Expression) and bool(aggregates_in(expression, self.aggregates))


def _is_edge(node: exp.Expr, level: Level) -> bool:
    """Whether this is the start or end of the query's own window, which is in every result."""
    edge = isinstance(node, exp.Column) and not node.table and node.name.lower() in ("window_start", "window_end")
    own = level.window is None if level.below is not None else node.name.lower() not in level.columns
    return edge and own


def _is_alias(node: exp.Expr, aliases: dict[str, exp.Expr], level: Level) -> bool:
    """Whether a group is the name of a selected column; a column of the stream comes first, as in Spark."""
    name = node.name.lower() if isinstance(node, exp.Column) and not node.table else ""
    return name in aliases and name not in level.columns


def _same(group: Group, expression: exp.Expr, written: exp.Expr) -> bool:
    return bool(group.expression == expression or group.written == written)


def _counted(node: exp.Expr, stream: Stream) -> exp.Expr | None:
    """`time / n` as the whole number of a stretch, exact for every time, before 1970 too."""
    divisor = node.expression
    below = temporal(node.this, stream.time, stream.time_kind)
    if below is None or not below.increasing or not below.whole or not divisor.name.isdigit() or int(divisor.name) == 0:
        return None
    if below.micros and below.shifted != 0:
        return None
    counted = node.this.copy()
    if below.micros:
        stamped = stream.time is not None and stream.column(stream.time).type == "TIMESTAMP"
        counted = exp.UnixSeconds(this=counted if stamped else exp.cast(counted, "TIMESTAMP", dialect=SPARK))
    rest = exp.Anonymous(this="pmod", expressions=[counted.copy(), divisor.copy()])
    return exp.IntDiv(
        this=exp.Paren(this=exp.Sub(this=_wrapped(counted.copy()), expression=rest)), expression=divisor.copy()
    )


def _wrapped(expression: exp.Expr) -> exp.Expr:
    simple = isinstance(expression, exp.Column | exp.Literal | exp.Paren | exp.Func)
    return expression if simple and not isinstance(expression, exp.Connector) else exp.Paren(this=expression)


def _in_spark_words(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous) and node.name.lower() in PAPER_NAMES and len(node.expressions) == 1:
        found = PAPER_NAMES[node.name.lower()](this=node.expressions[0])
        found.meta.update(node.meta)
        return found
    return node


def _blamed(message: str, select: exp.Select) -> exp.Expr:
    """The selected column that an error speaks of, or the whole query."""
    items: Iterable[exp.Expr] = (
        *select.expressions,
        *(select.args["group"].expressions if select.args.get("group") else ()),
    )
    return next((e for e in items if e.alias_or_name and f"'{e.alias_or_name}'" in message), select)
