"""UNION ALL: the rows of several SELECTs, each once, in the order of time.

Laws. Columns belong together by their places, and go by the names of the first SELECT. A SELECT of all columns of a
stream or query, as they are, is that stream or query itself; any other is an operator or query of its own. A column
carries time where it does in every SELECT, in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sqlglot import exp

from eventide.language.from_clause.read import FromReader, with_queries
from eventide.language.grammar.source_text import SourceText
from eventide.language.scope.expression_text import column_of, spark_text
from eventide.language.scope.relations import TIME, Clock, common_clock
from eventide.plan.declared.query import Named
from eventide.plan.declared.rows import Rows
from eventide.plan.declared.stream import WINDOW_END
from eventide.plan.expressions.columns import Column


@dataclass(frozen=True)
class Branch:
    """One SELECT of a UNION ALL: what it reads as an input of the merge, and its columns."""

    input: str
    columns: tuple[Column, ...]
    clock: Clock
    tree: exp.Expr


@dataclass(frozen=True)
class UnionReader:
    """Reads UNION ALL."""

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
