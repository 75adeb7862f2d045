"""What a SELECT reads: a stream, the results of another query, or a sub-query or WITH over one of them.

Law: a query below that only computes columns and leaves rows out is the same as its expressions and conditions put into
the query above; so nothing runs twice, and the stream's own time stays the time. One with aggregates, DISTINCT, ORDER
BY or LIMIT becomes a query of its own, which the one above reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

from sqlglot import exp

from eventide.language.nearest import meant
from eventide.language.nodes import StreamWindow
from eventide.language.source_text import SourceText, offset_of
from eventide.language.streams import Declared, name_of
from eventide.plan.columns import Column
from eventide.plan.derived import Derived
from eventide.plan.expressions import aggregates_in
from eventide.plan.query import Query
from eventide.plan.spark_grammar import SPARK, Spark4
from eventide.plan.stream import Stream, TimeKind
from eventide.plan.temporal import Temporal, carried
from eventide.plan.window import Window

PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MEANING_SOMETHING = {
    "ALL",
    "CASE",
    "DESCRIBE",
    "FALSE",
    "INTERVAL",
    "NULL",
    "TRUE",
    *Spark4.Parser.NO_PAREN_FUNCTION_PARSERS,
}
RESERVED_WORDS = MEANING_SOMETHING | {
    word for word, token in Spark4.Tokenizer.KEYWORDS.items() if token not in Spark4.Parser.ID_VAR_TOKENS
}
"""Words such as FROM, which name a column only in backticks."""

NOT_YET = {
    "joins": "a join",
    "laterals": "LATERAL VIEW",
    "offset": "OFFSET",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "qualify": "QUALIFY",
    "pivots": "PIVOT",
    "match": "MATCH_RECOGNIZE",
    "into": "SELECT INTO",
    "kind": "SELECT AS STRUCT",
}
"""Parts of a SELECT that are read but cannot be run yet."""


@dataclass(frozen=True)
class Known:
    """A query that others may read, and the kind of its stream's time."""

    query: Query
    kind: TimeKind
    tree: exp.Expr
    hidden: bool = False

    @property
    def results(self) -> Derived:
        """The stream of its results; their types are found when it runs."""
        names = [item.name for item in (*self.query.groups, *self.query.select)]
        return Derived.of(self.query.name, tuple(Column(name, "") for name in names), self.kind, Window(1))


@dataclass
class Level:
    """What a SELECT sees: named expressions over the columns of a stream, and the rows that pass."""

    stream: Stream
    columns: dict[str, tuple[str, exp.Expr]]
    aliases: set[str]
    where: list[exp.Expr] = field(default_factory=list)
    window: StreamWindow | None = None
    sample: float | None = None
    below: Known | None = None
    """The query that is read; None where it is a stream."""

    called: exp.Expr | None = None
    """The call of Spark's `window` that the window was taken from."""

    @property
    def times(self) -> dict[str, Temporal]:
        """The columns that carry time."""
        return carried(self.columns.values(), self.stream.time, self.stream.time_kind)


@dataclass(frozen=True)
class FromReader:
    """Finds what a SELECT reads."""

    source: SourceText
    streams: Mapping[str, Declared]
    queries: Mapping[str, Known]
    made: Callable[[exp.Expr, Mapping[str, exp.Expr]], Known]
    """Makes a query of its own of a sub-query."""

    def read(self, select: exp.Expr | None, above: Mapping[str, exp.Expr] | None = None) -> tuple[exp.Select, Level]:
        """The SELECT without its parentheses, and what it reads."""
        while isinstance(select, exp.Subquery | exp.Paren):
            select = select.this
        if isinstance(select, exp.SetOperation):
            raise self.source.error(f"{select.key.upper()} cannot be run yet", select, "write two queries")
        if not isinstance(select, exp.Select):
            raise self.source.error("expected SELECT", select)
        ctes = dict(above or {})
        if (with_ := select.args.get("with_")) is not None:
            if with_.args.get("recursive"):
                raise self.source.error("WITH RECURSIVE cannot be run: a stream has no end to recur to", with_)
            ctes.update((cte.alias.lower(), cte.this) for cte in with_.expressions)
        self._only_known(select)
        origin = select.args.get("from_")
        if origin is None:
            raise self.source.error("this SELECT reads nothing", select, "add FROM and a stream")
        level = self._level(origin.this, ctes)
        for window in select.args.get("windows") or ():
            if not isinstance(window, StreamWindow):
                raise self.source.error("a WINDOW clause of rows cannot be run yet", window, "write WINDOW [RANGE ..]")
            level.window = self._one_window(level.window, window)
        if (where := select.args.get("where")) is not None:
            for aggregate in aggregates_in(where.this):
                raise self.source.error("WHERE sees single rows, not aggregates", aggregate, "put this into HAVING")
            level.where.append(self.spelled_out(where.this, level))
        return select, level

    def spelled_out(self, expression: exp.Expr, level: Level, also: Iterable[str] = ()) -> exp.Expr:
        """The expression over the columns of the stream; names in `also` stay."""
        for query in expression.find_all(exp.Query):
            raise self.source.error("a query inside an expression cannot be run yet", query)
        names = {name.lower() for name in also}
        found = expression.copy()
        root = exp.Paren(this=found)
        for column in list(root.find_all(exp.Column)):
            if not isinstance(column.this, exp.Star) and not _is_lambda_name(column):
                column.replace(self._resolved(column, level, names))
        result = root.this
        result.pop()
        return result  # type: ignore[no-any-return]

    def _resolved(self, column: exp.Column, level: Level, also: set[str]) -> exp.Expr:
        parts = list(column.parts)
        owned = len(parts) > 1 and parts[0].name.lower() in level.aliases
        if owned and (parts[1].name.lower() in level.columns or parts[0].name.lower() not in level.columns):
            parts = parts[1:]
        elif len(parts) > 2 and f"{parts[0].name}_{parts[1].name}".lower() in level.aliases:
            parts = parts[2:]
        name = parts[0].name.lower()
        if name not in level.columns:
            if len(parts) == 1 and name in also:
                return exp.column(parts[0].copy())
            known = [spelled for spelled, _ in level.columns.values()]
            raise self.source.error(f"there is no column {parts[0].name!r}", parts[0], meant(parts[0].name, known))
        place = offset_of(parts[0])
        inner = wrapped(level.columns[name][1].copy())
        inner.meta["start"] = place
        if len(parts) == 1:
            return inner
        for part in parts[1:]:
            inner = exp.Dot(this=inner, expression=part.copy())
        return inner

    def _only_known(self, select: exp.Select) -> None:
        for key, words in NOT_YET.items():
            if part := select.args.get(key):
                at = part[0] if isinstance(part, list) else part
                raise self.source.error(f"{words} cannot be run yet", at if isinstance(at, exp.Expr) else select)

    def _level(self, origin: exp.Expr, ctes: Mapping[str, exp.Expr]) -> Level:
        for key in ("pivots", "joins", "laterals", "when", "version", "only", "rows_from"):
            if part := origin.args.get(key):
                at = part[0] if isinstance(part, list) else part
                words = NOT_YET.get(key, key.upper())
                raise self.source.error(f"{words} cannot be run yet", at if isinstance(at, exp.Expr) else origin)
        if isinstance(origin, exp.Subquery):
            level = self._projected(origin.this, ctes)
            level.aliases = {origin.alias.lower()} - {""}
        elif isinstance(origin, exp.Table) and isinstance(origin.this, exp.Identifier):
            level = self._named(origin, ctes)
        else:
            raise self.source.error(
                "expected a stream", origin, meant("", [d.stream.name for d in self.streams.values()])
            )
        if (window := origin.args.get("stream_window")) is not None:
            level.window = self._one_window(level.window, window)
        if (sample := origin.args.get("sample")) is not None:
            level.sample = self._share(sample) * (level.sample or 1.0)
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

    def _named(self, table: exp.Table, ctes: Mapping[str, exp.Expr]) -> Level:
        name = name_of(table)
        aliases = {table.alias.lower()} if table.alias else {name.lower(), table.name.lower()}
        if not table.args.get("db") and name.lower() in ctes:
            below = {key: value for key, value in ctes.items() if key != name.lower()}
            level = self._projected(ctes[name.lower()], below)
            level.aliases = aliases
            return level
        if name.lower() in self.streams:
            declared = self.streams[name.lower()]
            columns: dict[str, tuple[str, exp.Expr]] = {}
            for column in declared.stream.columns:
                columns[column.name.lower()] = (column.name, column_of(column.name))
            return Level(declared.stream, columns, aliases)
        if name.lower() in self.queries:
            return _over(self.queries[name.lower()], aliases)
        known = [declared.stream.name for declared in self.streams.values()]
        known += [known.query.name for known in self.queries.values() if not known.hidden]
        way = meant(name, known) if known else f"declare it before: CREATE STREAM {name} (ts TIMESTAMP, ...)"
        raise self.source.error(f"there is no stream {name!r}", table, way)

    def _projected(self, below: exp.Expr, ctes: Mapping[str, exp.Expr]) -> Level:
        """A query that only computes columns and leaves rows out, put into the one above; any other by itself."""
        while isinstance(below, exp.Subquery | exp.Paren):
            below = below.this
        if isinstance(below, exp.Select) and (
            any(below.args.get(key) for key in ("group", "having", "distinct", "order", "limit"))
            or any(aggregates_in(e) for e in below.expressions)
        ):
            return _over(self.made(below, ctes), set())
        select, level = self.read(below, ctes)
        columns: dict[str, tuple[str, exp.Expr]] = {}
        for item in select.expressions:
            if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
                if any(item.args.get(key) for key in ("except_", "replace", "rename")):
                    raise self.source.error("* with EXCEPT cannot be run yet", item, "name the columns")
                columns.update(level.columns)
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


def _over(known: Known, aliases: set[str]) -> Level:
    """The results of a query, as the query above sees them."""
    results = known.results
    columns: dict[str, tuple[str, exp.Expr]] = {}
    for column in results.columns:
        columns[column.name.lower()] = (column.name, column_of(column.name))
    return Level(results, columns, aliases, below=known)


def spark_text(expression: exp.Expr) -> str:
    """The expression in Spark's SQL, without its comments: they are no part of what is computed."""
    return str(expression.sql(SPARK, comments=False))


def wrapped(expression: exp.Expr) -> exp.Expr:
    """The expression in parentheses, where others might be put beside it."""
    simple = isinstance(expression, exp.Column | exp.Literal | exp.Paren | exp.Func)
    return expression if simple and not isinstance(expression, exp.Connector) else exp.Paren(this=expression)


def column_of(name: str) -> exp.Column:
    """A column under its declared name, quoted where it must be."""
    plain = PLAIN.fullmatch(name) and name.upper() not in RESERVED_WORDS
    return exp.column(exp.to_identifier(name, quoted=not plain))


def _is_lambda_name(column: exp.Column) -> bool:
    around = column.find_ancestor(exp.Lambda)
    while around is not None:
        if column.parts[0].name.lower() in {parameter.name.lower() for parameter in around.expressions}:
            return True
        around = around.find_ancestor(exp.Lambda)
    return False
