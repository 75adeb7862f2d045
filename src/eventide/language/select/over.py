"""Read SELECTs with OVER, QUALIFY and DISTINCT ON as rows that meet the other rows of their groups.

Laws. *Of rows*: OVER is what SQL says, over the rows that the SELECT reads; QUALIFY chooses among rows by it, as a
WHERE around the SELECT would. *Of results*: in a SELECT with aggregates OVER looks at the results of one window, after
HAVING, so `window_end` is in its PARTITION BY, written or not. *DISTINCT ON (k)* gives the first row of each k in the
order of time; with `[RANGE d]` behind the stream, those with no row of their k less than d before them.

Functions over different groups are computed one after the other, each by an operator of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot import exp

from eventide.errors import DeclarationError, LanguageError
from eventide.language.from_clause.from_clause import FromReader
from eventide.language.grammar.nodes import Amounts, StreamWindow
from eventide.language.grammar.source_text import SourceText
from eventide.language.scope.expression_text import column_of, name_for, spark_text, unused
from eventide.language.scope.scope import Clock, Scope
from eventide.language.scope.time_buckets import rounded_down
from eventide.language.select.row_query import RowsReader, blamed, clock_of
from eventide.plan.declared.over import Over, WindowCall
from eventide.plan.declared.program import Operator
from eventide.plan.declared.query import Named
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import WINDOW_END, WINDOW_START, Derived, TimeKind
from eventide.plan.expressions.columns import Column, quoted
from eventide.plan.expressions.parse import aggregates_in, call_of

EDGES = (WINDOW_START, WINDOW_END)


def windows_of(select: exp.Expr) -> list[exp.Window]:
    """The functions with OVER that a SELECT has itself, not those of the queries in it."""
    found = [*select.expressions, select.args.get("qualify")]
    return [over for part in found if isinstance(part, exp.Expr) for over in part.find_all(exp.Window)]


def looks_around(select: exp.Expr) -> bool:
    """Whether a SELECT gives rows that meet others: by OVER, QUALIFY or DISTINCT ON.

    >>> import sqlglot
    >>> [looks_around(sqlglot.parse_one(f"SELECT {sql}")) for sql in ("max(v) OVER ()", "DISTINCT ON (k) v", "max(v)")]
    [True, True, False]
    """
    return bool(windows_of(select)) or select.args.get("qualify") is not None or distinct_on(select) is not None


def distinct_on(select: exp.Expr) -> exp.Expr | None:
    """What DISTINCT ON names."""
    distinct = select.args.get("distinct")
    return None if distinct is None else distinct.args.get("on")


def over_results(select: exp.Select, source: SourceText) -> exp.Select:
    """A SELECT with aggregates and OVER, as one with OVER alone around one with the aggregates."""
    for key in ("order", "limit"):
        if (part := select.args.get(key)) is not None:
            raise source.error(
                f"{key.upper()} and OVER in one SELECT cannot be run yet", part, "put one of them into a query around"
            )
    inner, outer = select.copy(), exp.Select()
    used = [item.alias_or_name for item in inner.expressions]
    below: list[exp.Expr] = []
    around: dict[int, exp.Expr] = {}
    plain = [item.find(exp.Window) is None for item in inner.expressions]
    for place in sorted(range(len(plain)), key=lambda one: not plain[one]):
        item = inner.expressions[place]
        bare = item.this if isinstance(item, exp.Alias) else item
        name = item.alias_or_name or unused(name_for(_named_by(bare)), used)
        used.append(name)
        if plain[place]:
            below.append(item if item.alias_or_name else exp.alias_(item, name))
            around[place] = item if name.lower() in EDGES else column_of(name)
        else:
            around[place] = exp.alias_(_hoisted(bare, below, used), name)
    if (qualify := inner.args.pop("qualify", None)) is not None:
        outer.set("qualify", exp.Qualify(this=_hoisted(qualify.this, below, used)))
    windows = inner.args.pop("windows", None) or []
    inner.set("windows", [one for one in windows if isinstance(one, StreamWindow)])
    outer.set("windows", [one for one in windows if not isinstance(one, StreamWindow)])
    inner.set("expressions", below)
    outer.set("expressions", [around[place] for place in range(len(plain))])
    outer.set("from_", exp.From(this=exp.Subquery(this=inner)))
    for over in (*(one for one in windows_of(outer) if not one.args.get("alias")), *outer.args["windows"]):
        over.set("partition_by", [*(over.args.get("partition_by") or ()), exp.column(WINDOW_END)])
    return outer


def _named_by(item: exp.Expr) -> exp.Expr:
    """What gives a column its name: of a function with OVER, the function."""
    return item.this if isinstance(item, exp.Window) else item


def _hoisted(item: exp.Expr, below: list[exp.Expr], used: list[str]) -> exp.Expr:
    """The expression with names in the place of its aggregates, which are selected below."""
    root = exp.Paren(this=item.copy())
    parts: list[exp.Expr] = [root]
    for over in root.find_all(exp.Window):
        # The function with OVER is no aggregate of the query below; what it is given may be one.
        order = over.args.get("order")
        parts += call_of(over.this).iter_expressions()
        parts += [*(over.args.get("partition_by") or ()), *(order.expressions if order is not None else ())]
    for part in parts:
        for call in aggregates_in(part):  # type: ignore[arg-type]
            name = next((one.alias for one in below if isinstance(one, exp.Alias) and one.this == call), None)
            if name is None:
                name = unused(name_for(call), used)
                below.append(exp.alias_(call.copy(), name))
                used.append(name)
            call.replace(column_of(name))
    return root.this  # type: ignore[no-any-return]


Output = tuple[str, exp.Expr]
"""A column's name, and its expression over what is read."""


@dataclass(frozen=True)
class OverReader:
    """Reads a SELECT of rows that look around."""

    source: SourceText
    origin: FromReader

    def read(
        self, name: str, select: exp.Select, level: Scope, ordered: bool
    ) -> tuple[Operator, tuple[Column, ...], Clock]:
        """The last operator, its columns, and which of them carry time; those below it are taken in."""
        level = self.origin.settled(level, select)
        select = self._with_named_windows(select)
        if (on := distinct_on(select)) is not None:
            select = self._first_of_each(on, select, level)
        rows = RowsReader(self.source, self.origin)
        rows.check(select, level)
        outputs = [(named, self._in_time(e, level)) for named, e in rows.outputs(select, level)]
        qualify = select.args.get("qualify")
        chosen = None if qualify is None else self._in_time(self._chosen(qualify, outputs, level), level)
        columns = tuple(Column(n, level.type_of(e)) for n, e in outputs)
        try:
            operator = self._operator(name, level, outputs, chosen, rows.where(level), ordered, select)
        except LanguageError:
            raise
        except DeclarationError as error:
            raise self.source.error(str(error), blamed(str(error), select)) from error
        return operator, columns, clock_of(outputs, level)

    def _operator(
        self,
        name: str,
        level: Scope,
        outputs: list[Output],
        chosen: exp.Expr | None,
        where: str | None,
        ordered: bool,
        at: exp.Select,
    ) -> Operator:
        """One operator where its columns are what is asked for; else a projection above as many as are needed."""
        every = [*(e for _, e in outputs), *([chosen] if chosen is not None else [])]
        together = _together((over for e in every for over in _overs_in(e)), level)
        own = [(n, e) for n, e in outputs if not isinstance(e, exp.Window)]
        values = [(n, e) for n, e in outputs if isinstance(e, exp.Window)]
        is_plain = own and outputs == [*own, *values] and not any(_overs_in(e) for _, e in own)
        if len(together) == 1 and is_plain and chosen is None:
            over = Over(name, (level.stream.name,), _named(own), where, ordered, _named(values))
            if not (ordered and over.awaits_rows):
                return over
        spoken = {column.name.lower() for e in every for column in e.find_all(exp.Column)}
        kept = [c.name for c in level.stream.columns if c.name.lower() in spoken and c.name.lower() not in EDGES]
        kept = kept or [level.stream.columns[0].name]
        read, names = level.stream.name, dict[str, str]()
        for some in together:
            mine = {spark_text(over): unused(f"over_{len(names) + 1 + n}", kept) for n, over in enumerate(some)}
            over = Over(
                f"{name}_over",
                (read,),
                tuple(Named(one, quoted(one)) for one in (*kept, *names.values())),
                where if not names else None,
                ordered=False,
                values=_named((mine[spark_text(one)], _of_results(one, level) if names else one) for one in some),
            )
            names |= mine
            shown = tuple(Column(one, "") for one in (*kept, *names.values()))
            read = self.origin.hide(over, shown, clock_of([(c, column_of(c)) for c in kept], level), at).query.name
        last = None if chosen is None else spark_text(_by_names(chosen, names))
        return Rows(name, (read,), _named((n, _by_names(e, names)) for n, e in outputs), last, ordered)

    def _with_named_windows(self, select: exp.Select) -> exp.Select:
        """The SELECT with what WINDOW w AS (..) says in the place of each OVER w."""
        select = select.copy()
        known = {one.this.name.lower(): one for one in select.args.get("windows") or () if isinstance(one, exp.Window)}
        for over in windows_of(select):
            if (alias := over.args.get("alias")) is None:
                continue
            if alias.name.lower() not in known:
                raise self.source.error(f"there is no window {alias.name!r}", over, "write WINDOW w AS (..)")
            named = known[alias.name.lower()]
            over.set("alias", None)
            for key in ("partition_by", "order", "spec"):
                over.set(key, _copied(named.args.get(key)))
        return select

    def _first_of_each(self, on: exp.Expr, select: exp.Select, level: Scope) -> exp.Select:
        """DISTINCT ON as QUALIFY row_number() = 1, in the order of time."""
        if select.args.get("qualify") is not None:
            raise self.source.error("DISTINCT ON and QUALIFY in one SELECT cannot be run yet", on, "leave one out")
        clauses = {str(clause.this): clause for clause in level.window.expressions} if level.window is not None else {}
        if clauses.keys() - {"RANGE"}:
            raise self.source.error("DISTINCT ON looks back over a RANGE and nothing else", level.window)
        spec = None
        if "RANGE" in clauses:
            kind = level.stream.time_kind
            amount = clauses["RANGE"].expressions[0]
            if Amounts(self.source, kind).says_rows(amount):
                raise self.source.error("DISTINCT ON looks back over a length of time", amount, "write [RANGE 1 hour]")
            long = Amounts(self.source, kind).length(amount, "RANGE") - 1
            edge: exp.Expr = exp.Literal.number(long)
            if kind is not TimeKind.SEQUENCE:
                edge = exp.Interval(this=exp.Literal.string(str(long)), unit=exp.Var(this="MICROSECOND"))
            spec = exp.WindowSpec(kind="RANGE", start=edge, start_side="PRECEDING", end="CURRENT ROW")
        level.window = None
        time = exp.Order(expressions=[exp.Ordered(this=exp.column(_time_of(level) or WINDOW_END), nulls_first=True)])
        groups = on.expressions if isinstance(on, exp.Tuple) else [on]
        number = exp.Window(
            this=exp.RowNumber(), partition_by=[one.copy() for one in groups], order=time, spec=spec, over="OVER"
        )
        select.set("distinct", None)
        select.set("qualify", exp.Qualify(this=exp.EQ(this=number, expression=exp.Literal.number(1))))
        return select

    def _chosen(self, qualify: exp.Expr, outputs: list[Output], level: Scope) -> exp.Expr:
        """The condition of QUALIFY; the names of selected columns stand for what they name."""
        if not any(_overs_in(e) for e in (qualify, *(e for _, e in outputs))):
            raise self.source.error("QUALIFY chooses by a function with OVER; there is none", qualify, "write WHERE")
        known = {named.lower(): e for named, e in outputs if named.lower() not in level.columns}
        condition = self.origin.spelled_out(qualify.this, level, known)
        root = exp.Paren(this=condition)
        for column in list(root.find_all(exp.Column)):
            if len(column.parts) == 1 and column.name.lower() in known:
                column.replace(known[column.name.lower()].copy())
        return root.this  # type: ignore[no-any-return]

    def _in_time(self, expression: exp.Expr, level: Scope) -> exp.Expr:
        """The same, where OVER speaks of the time of rows by the column that has it."""
        time = _time_of(level)
        for over in _overs_in(expression):
            if time is None:
                raise self.source.error("OVER looks at rows in the order of time, and these have none yet", over)
            partition = [
                one if level.below else rounded_down(one, level) for one in over.args.get("partition_by") or ()
            ]
            found = {spark_text(one): one for one in (self._as_time(part, time, level) for part in partition)}
            over.set("partition_by", [one.copy() for one in found.values()])
            if (order := over.args.get("order")) is not None:
                first = order.expressions[0]
                first.set("this", self._as_time(first.this, time, level).copy())
            self._check(over, time, level)
        return expression

    def _check(self, over: exp.Window, time: str, level: Scope) -> None:
        """Refuse what the rows that are read cannot tell; the engine would refuse it too, without a place."""
        try:
            call = WindowCall.of(spark_text(over), "OVER")
        except DeclarationError as error:
            raise self.source.error(str(error).removeprefix("OVER: "), over) from error
        whole, sequence = _is_whole(over, time, level), level.stream.time_kind is TimeKind.SEQUENCE
        wrong = None if whole else call.wrong_in_time(time)
        if (wrong := wrong or call.wrong_range(whole, sequence)) is not None:
            message, _, hint = wrong.partition(": ")
            raise self.source.error(message, over, hint or None)

    def _as_time(self, part: exp.Expr, time: str, level: Scope) -> exp.Expr:
        found = level.clock.of(part)
        return column_of(time) if found is not None and found.shifted is not None and found.increasing else part


def _time_of(level: Scope) -> str | None:
    """The column that tells the very time of each row that is read."""
    return WINDOW_END if isinstance(level.stream, Derived) else level.stream.time


def _overs_in(expression: exp.Expr) -> list[exp.Window]:
    return list(expression.find_all(exp.Window))


def _together(overs: Iterable[exp.Window], level: Scope) -> list[list[exp.Window]]:
    """The functions that one operator can compute, each once: over the same groups, and in one order of time.

    Those over stretches of time come first, as only the rows of a stream tell what they are.
    """
    found: dict[tuple[bool, str, str], dict[str, exp.Window]] = {}
    time = _time_of(level) or WINDOW_END
    for over in overs:
        partition, order = over.args.get("partition_by") or [], over.args.get("order")
        by = "" if order is None or _is_whole(over, time, level) else _texts(order.expressions)
        found.setdefault((not _in_stretches(over, time, level), _texts(partition), by), {})[spark_text(over)] = over
    return [list(found[key].values()) for key in sorted(found, key=lambda key: key[0])]


def _in_stretches(over: exp.Window, time: str, level: Scope) -> bool:
    """Whether groups lie in stretches of the time of a stream's rows."""
    buckets = [level.clock.of(part) for part in over.args.get("partition_by") or ()]
    return time not in EDGES and any(one is not None and one.bucket is not None for one in buckets)


def _is_whole(over: exp.Window, time: str, level: Scope) -> bool:
    """Whether the rows of a group are all there some time."""
    partition = over.args.get("partition_by") or ()
    return _in_stretches(over, time, level) or any(part == column_of(time) for part in partition)


def _texts(parts: Iterable[exp.Expr]) -> str:
    return ", ".join(spark_text(part) for part in parts)


def _named(columns: Iterable[Output]) -> tuple[Named, ...]:
    return tuple(Named(name, spark_text(expression)) for name, expression in columns)


def _of_results(over: exp.Window, level: Scope) -> exp.Window:
    """The same over the results of an operator, whose time has another name."""
    found, time = over.copy(), _time_of(level)
    order = found.args.get("order")
    parts = [*(found.args.get("partition_by") or ()), *([order.expressions[0].this] if order is not None else [])]
    for part in parts:
        if isinstance(part, exp.Column) and part.name == time:
            part.replace(exp.column(WINDOW_END))
    return found


def _by_names(expression: exp.Expr, names: dict[str, str]) -> exp.Expr:
    """The expression with columns in the place of functions with OVER."""
    root = exp.Paren(this=expression.copy())
    for over in list(root.find_all(exp.Window)):
        over.replace(column_of(names[spark_text(over)]))
    return root.this  # type: ignore[no-any-return]


def _copied(part: object) -> object:
    if isinstance(part, list):
        return [one.copy() for one in part]
    return part.copy() if isinstance(part, exp.Expr) else part
