"""A SELECT without aggregates: rows, chosen and computed one by one; and UNION ALL of several.

Laws. Each row that is read gives one row, with its own time, in the order of time, simultaneous ones in the order of
their values; with EMIT IN ORDER OF TIME in the order of time alone, with EMIT IMMEDIATELY as it comes.
`window_start` and `window_end` are in every result, so they need no columns of their own. *UNION ALL* has the rows of
several SELECTs, each once. Columns belong together by their places, and go by the names of the first SELECT. A SELECT
of all columns of a stream or query, as they are, is that stream or query itself; any other is an operator or query of
its own. A column carries time where it does in every SELECT, in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlglot import exp

from eventide.errors import DeclarationError, LanguageError
from eventide.language.from_clause.from_clause import FromReader, with_queries
from eventide.language.from_clause.join_scope import joined_output
from eventide.language.grammar.nodes import IN_WINDOWS, Clause
from eventide.language.grammar.source_text import SourceText
from eventide.language.grammar.spelling import aggregate_meant
from eventide.language.scope.expression_text import all_of, column_of, has_aggregate, name_for, spark_text, unused
from eventide.language.scope.scope import TIME, Clock, Scope, common_clock, stars_in
from eventide.language.select.group_by import refuse_over
from eventide.plan.declared.program import Operator, Step
from eventide.plan.declared.query import RESERVED, Named, Query
from eventide.plan.declared.rows import Rows, sampled
from eventide.plan.declared.stream import WINDOW_END, WINDOW_START, Derived
from eventide.plan.expressions.columns import Column

EDGES = (WINDOW_START, WINDOW_END)


BY_TIME = "EMIT IN ORDER OF TIME"
"""Rows in the order of time alone: simultaneous ones go as they come, and do not wait for each other."""


def by_time_alone(step: Step, clause: Clause, source: SourceText) -> Rows:
    """The same rows in the order of time alone."""
    if type(step) is not Rows:
        what = "windows" if isinstance(step, Query) else "what is computed of several rows"
        raise source.error(f"{BY_TIME} is for rows that are merged or chosen, and this gives {what}", clause, "drop it")
    if not step.ordered:
        raise source.error(f"{BY_TIME} and EMIT IMMEDIATELY say different things", clause, "keep one of them")
    return replace(step, simultaneous=True)


def gives_rows(select: exp.Select) -> bool:
    """Whether a SELECT tells rows, not windows.

    >>> from sqlglot import parse_one
    >>> [gives_rows(parse_one(sql)) for sql in ("SELECT a FROM s", "SELECT max(a) FROM s", "SELECT DISTINCT a FROM s")]
    [True, False, False]
    """
    distinct = select.args.get("distinct")
    grouped = (distinct is not None and distinct.args.get("on") is None) or select.args.get("group") is not None
    return not grouped and not any(has_aggregate(item) for item in select.expressions)


@dataclass(frozen=True)
class RowsReader:
    """Reads a SELECT without aggregates as rows."""

    source: SourceText
    origin: FromReader

    def read(
        self, name: str, select: exp.Select, level: Scope, ordered: bool
    ) -> tuple[Operator, tuple[Column, ...], Clock]:
        """The operator, its columns, and which of them carry time."""
        self.check(select, level)
        outputs = self.outputs(select, level)
        try:
            if level.pending is not None:
                named_join = replace(level.pending, join=replace(level.pending.join, name=name))
                return joined_output(named_join, outputs)
            everything = len(select.expressions) == 1 and _is_whole(level)
            named = () if everything and select.is_star else tuple(Named(n, spark_text(e)) for n, e in outputs)
            rows = Rows(name, (level.stream.name,), named, self.where(level), ordered)
        except LanguageError:
            raise
        except DeclarationError as error:
            raise self.source.error(str(error), blamed(str(error), select)) from error
        columns = tuple(Column(n, level.type_of(e)) for n, e in outputs)
        return rows, columns, clock_of(outputs, level)

    def check(self, select: exp.Select, level: Scope) -> None:
        """Refuse what rows cannot have."""
        refuse_over(select, self.source, frozenset())
        if not select.expressions:
            raise self.source.error("this SELECT has no columns", select, "write SELECT *, or name columns")
        if (having := select.args.get("having")) is not None:
            raise self.source.error("HAVING chooses among groups, and this has none", having, "put this into WHERE")
        if (limit := select.args.get("limit")) is not None:
            raise self.source.error(
                "LIMIT is for the results of a window, and rows have none", limit, "leave it out, or add aggregates"
            )
        asked = [str(clause.this) for clause in level.window.expressions] if level.window is not None else []
        if set(asked) - set(IN_WINDOWS):
            if (mistyped := aggregate_meant(select)) is not None:
                call, close = mistyped
                raise self.source.error(f"{call.name!r} is no aggregate", call, f"did you mean {close}?")
            raise self.source.error(
                "this SELECT has a window and no aggregate",
                level.window,
                "leave the window out to get the rows, add count(*) or another aggregate, or write SELECT DISTINCT",
            )
        if (order := select.args.get("order")) is not None:
            self._check_order(order, select, level)

    def _check_order(self, order: exp.Expr, select: exp.Select, level: Scope) -> None:
        if level.pending is not None:
            raise self.source.error(
                "pairs of a join are emitted as they are found, in no order", order, "leave ORDER BY out"
            )
        aliases = {item.alias.lower(): item.this for item in select.expressions if isinstance(item, exp.Alias)}
        [first, *others] = order.expressions
        inner = first.this if isinstance(first, exp.Ordered) else first
        if isinstance(inner, exp.Column) and len(inner.parts) == 1 and inner.name.lower() not in level.columns:
            inner = aliases.get(inner.name.lower(), inner)
        time = level.clock.of(self.origin.spelled_out(inner, level))
        down = isinstance(first, exp.Ordered) and bool(first.args.get("desc"))
        if others or time is None or time.shifted is None or down:
            names = [name for name, one in level.times.items() if one.shifted == 0]
            raise self.source.error(
                "rows come in the order of time and in no other",
                others[0] if others else first,
                f"write ORDER BY {names[0]}, or leave it out" if names else "leave ORDER BY out",
            )

    def outputs(self, select: exp.Select, level: Scope) -> list[tuple[str, exp.Expr]]:
        """The columns by their names."""
        outputs: list[tuple[str, exp.Expr]] = []
        given = {item.alias.lower() for item in select.expressions if isinstance(item, exp.Alias)}
        for item in select.expressions:
            if (stars := stars_in(item, level, self.source)) is not None:
                for name, expression in stars:
                    outputs.append((self._free(name, expression, outputs, given, item), expression))
                continue
            if _is_edge(item, level):
                continue
            inner = item.this if isinstance(item, exp.Alias) else item
            expression = self.origin.spelled_out(inner, level)
            if isinstance(item, exp.Alias):
                outputs.append((item.alias, expression))
            else:
                called = inner.this if isinstance(inner, exp.Window) else inner
                name = inner.name if isinstance(inner, exp.Column) else name_for(called)
                outputs.append((self._free(name, expression, outputs, given, item), expression))
        if not outputs:
            raise self.source.error("this SELECT has no column of its own", select, "select a column of the rows")
        return outputs

    def _free(
        self, name: str, expression: exp.Expr, outputs: list[tuple[str, exp.Expr]], given: set[str], item: exp.Expr
    ) -> str:
        """A name for a column that was given none: its own, or with that of its input before it."""
        used = {*given, *(other.lower() for other, _ in outputs)}
        bare = expression.unnest()
        if isinstance(bare, exp.Column) and bare.table and (name.lower() in used or name.lower() in RESERVED):
            name = f"{bare.table}_{name}" if name == bare.name else bare.name
        if name.lower() in RESERVED:
            raise self.source.error(
                f"{name!r} is a column of every result",
                item,
                f"name the columns, and give this one another name: {name} AS my_{name}",
            )
        return unused(name, used)

    def where(self, level: Scope) -> str | None:
        """The condition on the rows that are read."""
        conditions = all_of(level.where)
        if level.sample is None:
            return conditions
        share = sampled(level.stream, level.sample)
        return f"{conditions} AND {share}" if conditions and share else conditions or share


def clock_of(outputs: list[tuple[str, exp.Expr]], level: Scope) -> Clock:
    """Which of these columns carry the time of their rows; the ends of results below do, too."""
    carried = {edge: level.clock.carried[edge] for edge in EDGES if edge in level.clock.carried}
    carried.setdefault(WINDOW_END, exp.column(TIME))
    follow: dict[str, exp.Expr] = {}
    for name, expression in outputs:
        if level.clock.of(expression) is not None and (over_time := level.clock.over_time(expression)) is not None:
            carried[name.lower()] = over_time
        elif level.clock.of(expression, following=True) is not None:
            over_time = level.clock.over_time(expression, following=True)
            follow |= {name.lower(): over_time} if over_time is not None else {}
    return Clock(level.clock.kind, carried, follow)


def _is_whole(level: Scope) -> bool:
    """Whether the columns are those of the stream or query below, just as they are."""
    below: Mapping[str, tuple[str, exp.Expr]] = {
        c.name.lower(): (c.name, column_of(c.name)) for c in level.stream.columns
    }
    return level.columns == below


def _is_edge(item: exp.Expr, level: Scope) -> bool:
    """Whether this is an end of the row's own window, which is in every result."""
    named = isinstance(item, exp.Column) and item.name.lower() in EDGES and len(item.parts) == 1
    return named and (isinstance(level.stream, Derived) or item.name.lower() not in level.columns)


def blamed(message: str, select: exp.Select) -> exp.Expr:
    """The selected column that an error speaks of, or the whole query."""
    return next((e for e in select.expressions if e.alias_or_name and f"'{e.alias_or_name}'" in message), select)


@dataclass(frozen=True)
class Branch:
    """One SELECT of a UNION ALL: what it reads as an input of the merge, and its columns."""

    input: str
    columns: tuple[Column, ...]
    clock: Clock
    tree: exp.Expr


@dataclass(frozen=True)
class UnionReader:
    """Reads the SELECTs of a UNION ALL as merged rows."""

    source: SourceText
    origin: FromReader

    def read(
        self, name: str, tree: exp.SetOperation, above: Mapping[str, exp.Expr] | None, ordered: bool
    ) -> tuple[Rows, tuple[Column, ...], Clock]:
        """The merge, its columns, and which of them carry time."""
        ctes = with_queries(tree, above, self.source)
        self._check_end(tree)
        branches: list[Branch] = []
        for select in self._selects(tree):
            branch = self._branch(_named_as(branches[0].columns, select) if branches else select, ctes)
            branches.append(self._fitting(branch, branches) if branches else branch)
        clock = common_clock([branch.clock for branch in branches], tree, self.source)
        if tree.args.get("order") is not None:
            self._check_order(tree.args["order"], clock)
        first = branches[0].columns
        columns = tuple(
            Column(column.name, next((b.columns[n].type for b in branches if b.columns[n].type), ""))
            for n, column in enumerate(first)
        )
        return Rows(name, tuple(branch.input for branch in branches), ordered=ordered), columns, clock

    def _selects(self, tree: exp.Expr) -> list[exp.Expr]:
        """The SELECTs from left to right."""
        found: list[exp.Expr] = []
        rest: list[exp.Expr] = [tree]
        while rest:
            node = rest.pop()
            bare = node
            while isinstance(bare, exp.Subquery | exp.Paren):
                bare = bare.this
            if not isinstance(bare, exp.SetOperation):
                found.append(bare)
                continue
            if not isinstance(bare, exp.Union):
                raise self.source.error(
                    f"{bare.key.upper()} cannot be run yet", bare, "a join finds the rows that both have"
                )
            if bare.args.get("distinct"):
                raise self.source.error(
                    "UNION without ALL would have to remember every row for ever",
                    bare,
                    "write UNION ALL; each row once in a window: SELECT DISTINCT .. FROM (.. UNION ALL ..) [RANGE ..]",
                )
            if bare.args.get("by_name"):
                raise self.source.error("UNION ALL BY NAME cannot be run yet", bare, "give both the same order")
            rest += [bare.expression, bare.this]
        return found

    def _check_end(self, tree: exp.SetOperation) -> None:
        for key in ("limit", "offset", "sort", "cluster", "distribute"):
            if (part := tree.args.get(key)) is not None:
                raise self.source.error(
                    f"{key.upper()} is for the results of a window, and rows have none", part, "leave it out"
                )

    def _check_order(self, order: exp.Expr, clock: Clock) -> None:
        [first, *others] = order.expressions
        inner = first.this if isinstance(first, exp.Ordered) else first
        time = clock.of(inner)
        down = isinstance(first, exp.Ordered) and bool(first.args.get("desc"))
        if others or time is None or time.shifted is None or down:
            raise self.source.error(
                "rows come in the order of time and in no other", others[0] if others else first, "leave ORDER BY out"
            )

    def _branch(self, select: exp.Expr, ctes: Mapping[str, exp.Expr]) -> Branch:
        table = _whole_table(select)
        if table is not None and table.name.lower() not in ctes:
            level = self.origin.table(table, ctes)
            columns = level.below.outputs if level.below is not None else level.stream.columns
            return Branch(level.stream.name, columns, level.clock, select)
        known = self.origin.made(select, ctes)
        return Branch(known.query.name, known.outputs, known.clock, select)

    def _fitting(self, branch: Branch, before: list[Branch]) -> Branch:
        """The branch with the names of the first, and no input twice."""
        first = before[0]
        if len(branch.columns) != len(first.columns):
            raise self.source.error(
                f"this SELECT has {len(branch.columns)} columns and the first one has {len(first.columns)}",
                branch.tree,
                "select the same columns in both",
            )
        for number, (mine, theirs) in enumerate(zip(branch.columns, first.columns, strict=True)):
            if mine.type and theirs.type and mine.type != theirs.type:
                items = branch.tree.expressions if isinstance(branch.tree, exp.Select) else []
                raise self.source.error(
                    f"column {number + 1} is {mine.name} {mine.type} here, and {theirs.name} {theirs.type} in the "
                    "first SELECT",
                    items[number] if len(items) == len(branch.columns) else branch.tree,
                    f"cast one of them: CAST({mine.name} AS {theirs.type}) AS {theirs.name}",
                )
        same = [mine.name.lower() for mine in branch.columns] == [theirs.name.lower() for theirs in first.columns]
        if same and branch.input not in (other.input for other in before):
            return branch
        names = [theirs.name for theirs in first.columns]
        outputs = [(new, column_of(old.name)) for new, old in zip(names, branch.columns, strict=True)]
        rows = Rows("", (branch.input,), tuple(Named(new, spark_text(old)) for new, old in outputs), ordered=False)
        carried, follow = (
            {new.lower(): carried_as for new, old in outputs if (carried_as := known.get(old.name.lower())) is not None}
            for known in (branch.clock.carried, branch.clock.follow)
        )
        clock = Clock(branch.clock.kind, {WINDOW_END: exp.column(TIME), **carried}, follow)
        columns = tuple(Column(new, old.type) for new, old in zip(names, branch.columns, strict=True))
        known = self.origin.hide(rows, columns, clock, branch.tree)
        return Branch(known.query.name, columns, clock, branch.tree)


def _named_as(columns: tuple[Column, ...], select: exp.Expr) -> exp.Expr:
    """The SELECT with these names for its columns, where it names as many."""
    if not isinstance(select, exp.Select) or len(select.expressions) != len(columns):
        return select
    if any(item.is_star for item in select.expressions):
        return select
    found = select.copy()
    items = []
    for item, column in zip(found.expressions, columns, strict=True):
        inner = item.this if isinstance(item, exp.Alias) else item
        same = item.alias_or_name.lower() == column.name.lower()
        items.append(item if same else exp.Alias(this=inner, alias=exp.to_identifier(column.name, quoted=True)))
    found.set("expressions", items)
    return found


def _whole_table(select: exp.Expr) -> exp.Table | None:
    """The table of a `SELECT * FROM table` with nothing else in it."""
    if not isinstance(select, exp.Select) or len(select.expressions) != 1:
        return None
    star, origin = select.expressions[0], select.args.get("from_")
    more = [key for key, part in select.args.items() if part and key not in ("expressions", "from_")]
    if more or not isinstance(star, exp.Star) or any(star.args.values()) or origin is None:
        return None
    table = origin.this
    is_table = isinstance(table, exp.Table) and isinstance(table.this, exp.Identifier)
    more = [key for key, part in table.args.items() if part and key not in ("this", "db", "alias")]
    return table if is_table and not more and origin.args.get("join_kind") is None else None
